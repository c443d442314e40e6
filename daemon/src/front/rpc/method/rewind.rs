//! Taking a session back: what it can go back to, what that would do, and doing it.

mod lost;
mod target;

use std::collections::BTreeSet;

use loopd_proto::event::rewind::RewindMode;
use loopd_proto::event::{Durable, read_durable};
use loopd_proto::id::{RewindId, Seq};
use loopd_proto::params::rewind::{
    EventParams, FileChangeType, FilePreview, LeftFile, LoopdRewindParams, LoopdRewound,
    OnConflict, Preview, RewindOutcome, RewindParams, RewindPoint, RewindPoints, RewindResult,
    SkipReason, SkippedRestore, Truncated, UnavailableReason,
};
use loopd_proto::params::session::Of;

use super::discover::look;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{RewindDone, SessionError, SessionHandle};
use crate::tool::capture::{
    self, Captures, PlannedChange, RestoreReport, RewindPreview, SkippedFile, TrackedTurns,
};
use loopd_kernel::command::{Refusal, RewindOrder};
use loopd_kernel::decide::rewind::work_in_the_way;
use target::Located;
pub(super) use target::{LogMoment, LogView};

const USER_MESSAGE: &str = "user.message";

/// What is known of files of the session.
struct Files {
    captures: Captures,
    tracked: TrackedTurns,
}

impl Files {
    /// Reads what was captured, after what commands changed was found.
    async fn of(session: &SessionHandle) -> Result<Self, RpcError> {
        let (captures, workspace) = session.view(|view| (view.captures)()).await?;
        captures.settle(workspace).await;
        let reading = captures.clone();
        let tracked = look(move || reading.turns()).await?;
        let tracked = tracked.map_err(|error| {
            RpcError::Failed(format!(
                "the record of changed files cannot be read: {error}"
            ))
        })?;
        Ok(Self { captures, tracked })
    }

    /// Returns whether files can be restored as they were at a position.
    fn reach(&self, position: Seq) -> bool {
        self.captures.is_on() && position >= self.tracked.begins
    }
}

async fn busy(session: &SessionHandle) -> Result<Option<String>, RpcError> {
    Ok(session.state(work_in_the_way).await?)
}

pub(super) async fn points(context: Context, params: Of) -> Result<RewindPoints, RpcError> {
    let session = context.session(&params.session_id)?;
    let (captures, _) = session.view(|view| (view.captures)()).await?;
    if captures.is_on()
        && let Some(work) = busy(&session).await?
    {
        return Ok(RewindPoints {
            file_change_tracking_enabled: true,
            unavailable_reason: Some(UnavailableReason::SessionBusy),
            work: Some(work),
            points: Vec::new(),
        });
    }
    let files = Files::of(&session).await?;
    let log = LogView::of(context.app.services.store.as_ref(), &session).await?;
    let mut messages: Vec<(Seq, RewindPoint)> = Vec::new();
    log.each_counted(|event| {
        if &*event.kind == USER_MESSAGE
            && let Ok((head, Durable::UserMessage(message))) = read_durable(&event.json)
        {
            messages.push((
                event.seq,
                RewindPoint {
                    event_id: head.id,
                    timestamp: head.timestamp,
                    is_autopilot_continuation: message.is_autopilot_continuation == Some(true),
                    user_message: message.content,
                    can_restore_files: false,
                    file_count: 0,
                    turn_changed_files: false,
                    lines_added: 0,
                    lines_removed: 0,
                },
            ));
        }
    })
    .await?;
    let first = messages.first().map(|(seq, _)| *seq);
    let enabled = files.captures.is_on() && first.is_none_or(|first| files.reach(first));
    let mut changed = BTreeSet::new();
    let mut next = Seq(u64::MAX);
    for (seq, point) in messages.iter_mut().rev() {
        let turns = files.tracked.turns.range(*seq..next);
        for (_, turn) in turns {
            point.turn_changed_files |= !turn.files.is_empty();
            point.lines_added += turn.added;
            point.lines_removed += turn.removed;
            changed.extend(&turn.files);
        }
        point.file_count = changed.len() as u64;
        point.can_restore_files = !changed.is_empty() && files.reach(*seq);
        next = *seq;
    }
    Ok(RewindPoints {
        file_change_tracking_enabled: enabled,
        unavailable_reason: None,
        work: None,
        points: messages.into_iter().map(|(_, point)| point).collect(),
    })
}

pub(super) async fn preview(context: Context, params: EventParams) -> Result<Preview, RpcError> {
    let session = context.session(&params.session_id)?;
    let unavailable = |reason| Preview {
        available: false,
        reason: Some(reason),
        file_count: 0,
        files: Vec::new(),
        skipped: Vec::new(),
        warning: None,
    };
    let log = LogView::of(context.app.services.store.as_ref(), &session).await?;
    let located = log.event(&params.event_id).await?;
    if busy(&session).await?.is_some() {
        return Ok(unavailable(UnavailableReason::SessionBusy));
    }
    let files = Files::of(&session).await?;
    let position = located.target.position;
    if !files.reach(position) {
        return Ok(unavailable(UnavailableReason::FileChangeTrackingDisabled));
    }
    let captures = files.captures;
    let preview = look(move || captures.preview(position)).await?;
    let preview = preview.map_err(unreadable)?;
    let files = previews(&preview);
    Ok(Preview {
        available: true,
        reason: None,
        file_count: files.len() as u64,
        files,
        skipped: left(&preview.skipped),
        warning: lost::warning(&preview.skipped),
    })
}

pub(super) async fn truncate(context: Context, params: EventParams) -> Result<Truncated, RpcError> {
    let session = context.session(&params.session_id)?;
    let log = LogView::of(context.app.services.store.as_ref(), &session).await?;
    let located = log.event(&params.event_id).await?;
    let order = order(&context, located, RewindMode::Conversation);
    match session.rewind(order).await? {
        RewindDone::Rewound { events_removed, .. } => Ok(Truncated {
            events_removed,
            checkpoint_cleanup_failed: false,
        }),
        RewindDone::NotRestored(failure) => Err(RpcError::Failed(failure.error)),
    }
}

pub(super) async fn rewind(
    context: Context,
    params: RewindParams,
) -> Result<RewindResult, RpcError> {
    let rewound = carry_out(
        &context,
        LoopdRewindParams {
            session_id: params.session_id,
            event_id: Some(params.event_id),
            mode: Some(params.mode),
            on_conflict: OnConflict::Skip,
            dry_run: false,
        },
    )
    .await?;
    let done = rewound.outcome == RewindOutcome::Success;
    let skipped = rewound.skipped.into_iter().map(|left| SkippedRestore {
        path: left.path,
        reason: left.reason,
    });
    Ok(RewindResult {
        outcome: rewound.outcome,
        events_removed: done.then_some(rewound.events_removed),
        restored_files: rewound.files.into_iter().map(|file| file.path).collect(),
        skipped_files: skipped.collect(),
        error: rewound.error,
        warning: rewound.warning,
    })
}

pub(super) async fn loopd_rewind(
    context: Context,
    params: LoopdRewindParams,
) -> Result<LoopdRewound, RpcError> {
    carry_out(&context, params).await
}

async fn carry_out(context: &Context, params: LoopdRewindParams) -> Result<LoopdRewound, RpcError> {
    let session = context.session(&params.session_id)?;
    let log = LogView::of(context.app.services.store.as_ref(), &session).await?;
    let located = match &params.event_id {
        Some(event) => {
            let located = log.event(event).await?;
            if &*located.kind != USER_MESSAGE {
                return Err(RpcError::InvalidParams(format!(
                    "eventId: {event} is no user message but {}; session.history.truncate takes any event",
                    located.kind
                )));
            }
            located
        }
        None => log.before_last_rewind().await?,
    };
    let undone = located.undoes.as_ref().map(|(_, mode)| *mode);
    let mode = params.mode.or(undone);
    let mode = mode.unwrap_or(RewindMode::ConversationAndFiles);
    let mut answer = LoopdRewound {
        outcome: RewindOutcome::Success,
        dry_run: params.dry_run,
        rewind_id: None,
        mode,
        events_removed: if mode.has_conversation() {
            located.seen.removed
        } else {
            0
        },
        files: Vec::new(),
        skipped: Vec::new(),
        error: None,
        warning: None,
    };
    if let Some(work) = busy(&session).await? {
        let refusal = Refusal::RewindBusy { work };
        return Ok(answer.failed(RewindOutcome::SessionBusy, Some(refusal.to_string())));
    }
    let position = located.target.position;
    let order = order(context, located, mode);
    let mut planned = RewindPreview::default();
    let mut captures = Captures::off();
    if mode.has_files() {
        let files = Files::of(&session).await?;
        if !files.reach(position) {
            return Ok(answer.failed(RewindOutcome::FileChangeTrackingDisabled, None));
        }
        captures = files.captures;
        planned = prepare(&captures, &order.id, position, params.dry_run).await?;
        answer.show(&planned);
        let has_conflicts = !answer.skipped.is_empty();
        if has_conflicts && params.on_conflict == OnConflict::Refuse {
            if !params.dry_run {
                forget(&captures, &order.id).await?;
            }
            let why = "some files cannot be restored; nothing was touched";
            return Ok(answer.failed(RewindOutcome::Conflicts, Some(why.to_owned())));
        }
    }
    if params.dry_run {
        return Ok(answer);
    }
    let id = order.id.clone();
    answer.rewind_id = Some(id.clone());
    match session.rewind(order).await {
        Ok(RewindDone::Rewound {
            events_removed,
            files,
        }) => {
            answer.events_removed = events_removed;
            if mode.has_files() {
                answer.done(&planned, &files);
            }
            Ok(answer)
        }
        Ok(RewindDone::NotRestored(failure)) => {
            let outcome = if failure.rolled_back {
                RewindOutcome::FilesRolledBack
            } else {
                RewindOutcome::RollbackIncomplete
            };
            Ok(answer.failed(outcome, Some(failure.error)))
        }
        Err(error) => {
            if mode.has_files() && matches!(error, SessionError::Refused(_)) {
                forget(&captures, &id).await?;
            }
            match error {
                SessionError::Refused(refusal @ Refusal::RewindBusy { .. }) => {
                    let why = refusal.to_string();
                    Ok(answer.failed(RewindOutcome::SessionBusy, Some(why)))
                }
                error => Err(error.into()),
            }
        }
    }
}

fn order(context: &Context, located: Located, mode: RewindMode) -> RewindOrder {
    RewindOrder {
        id: context.app.services.clock.id().into(),
        mode,
        target: located.target,
        undoes: located.undoes.map(|(id, _)| id),
        seen: located.seen,
    }
}

/// Finds out what a rewind does to files, and writes it down unless it is only asked about.
async fn prepare(
    captures: &Captures,
    id: &RewindId,
    position: Seq,
    dry_run: bool,
) -> Result<RewindPreview, RpcError> {
    let (captures, id) = (captures.clone(), id.clone());
    let planned = look(move || {
        if dry_run {
            captures.preview(position)
        } else {
            captures.prepare_rewind(&id, position)
        }
    });
    planned.await?.map_err(unreadable)
}

async fn forget(captures: &Captures, id: &RewindId) -> Result<(), RpcError> {
    let (captures, id) = (captures.clone(), id.clone());
    look(move || captures.drop_rewind(&id)).await
}

fn unreadable(error: std::io::Error) -> RpcError {
    RpcError::Failed(format!(
        "what the rewind would do to files cannot be worked out, and nothing was touched: {error}"
    ))
}

fn previews(planned: &RewindPreview) -> Vec<FilePreview> {
    let files = planned.files.iter().map(|file| FilePreview {
        path: file.path.to_string_lossy().into_owned(),
        change_type: match file.change {
            PlannedChange::Created => FileChangeType::Created,
            PlannedChange::Deleted => FileChangeType::Deleted,
            PlannedChange::Modified => FileChangeType::Modified,
        },
        lines_added: file.added,
        lines_removed: file.removed,
    });
    files.collect()
}

fn left(skipped: &[SkippedFile]) -> Vec<LeftFile> {
    let files = skipped.iter().map(|skipped| {
        let (reason, why) = match skipped.reason {
            capture::SkipReason::ChangedSince => (
                SkipReason::UserModified,
                "it is not as a tool left it".to_owned(),
            ),
            capture::SkipReason::NotCaptured(why) => (SkipReason::SkippedCapture, why.to_string()),
        };
        LeftFile {
            path: skipped.path.to_string_lossy().into_owned(),
            reason,
            why,
        }
    });
    files.collect()
}

/// What a rewind answers.
trait Answered {
    fn failed(self, outcome: RewindOutcome, error: Option<String>) -> Self;
    fn show(&mut self, planned: &RewindPreview);
    fn done(&mut self, planned: &RewindPreview, report: &RestoreReport);
}

impl Answered for LoopdRewound {
    /// Makes the answer of a rewind that took nothing back.
    fn failed(mut self, outcome: RewindOutcome, error: Option<String>) -> Self {
        self.outcome = outcome;
        self.events_removed = 0;
        self.files.clear();
        self.error = error;
        if outcome != RewindOutcome::Conflicts {
            self.skipped.clear();
            self.warning = None;
        }
        self
    }

    fn show(&mut self, planned: &RewindPreview) {
        self.files = previews(planned);
        self.skipped = left(&planned.skipped);
        self.warning = lost::warning(&planned.skipped);
    }

    /// Shows what was done, which may be less than was planned.
    fn done(&mut self, planned: &RewindPreview, report: &RestoreReport) {
        let restored = |path: &str| {
            report
                .restored
                .iter()
                .any(|it| it.to_string_lossy() == path)
        };
        self.files = previews(planned);
        self.files.retain(|file| restored(&file.path));
        self.skipped = left(&report.skipped);
        self.warning = lost::warning(&report.skipped);
    }
}
