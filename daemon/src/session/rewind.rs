//! Takes a session back: the conversation by an event in its log, files by what was captured of them.
//!
//! The kernel decides whether the session may go back. Files are restored on a blocking thread, after
//! the intent is stored; who asked waits until the event of the rewind is stored, too.

use std::sync::{Arc, OnceLock};

use loopd_proto::id::RewindId;
use loopd_proto::visible::for_person;
use tokio::sync::{Mutex, oneshot};

use super::actor::{Actor, Flow};
use super::effects::Reporter;
use super::work::Work;
use super::{Message, SessionError, SessionHandle};
use crate::tool::capture::{
    Captures, ModelCallPlace, ReadRules, RestoreFailure, RestoreReport, SkippedFile, Workspace,
};
use loopd_kernel::command::{Command, LogLevel, RestoreOutcome, RewindOrder};
use loopd_kernel::state::{Phase, Rewinding, TurnKey};

/// The most files that a message names.
const NAMED_FILES: usize = 20;

/// How a rewind went.
#[derive(Debug, Clone)]
pub enum RewindDone {
    Rewound {
        events_removed: u64,
        files: RestoreReport,
    },
    /// The files could not be restored, and the conversation is as it was.
    NotRestored(RestoreFailure),
}

pub(super) type RewindReply = oneshot::Sender<Result<RewindDone, SessionError>>;

/// A rewind and what was done to files.
type Restored = (RewindId, Result<RestoreReport, RestoreFailure>);

/// Earlier versions of files, and the rewind that is being carried out.
#[derive(Default)]
pub(super) struct RewindWork {
    captures: OnceLock<Captures>,
    /// Who waits for the rewind.
    waiting: Option<(RewindId, RewindReply)>,
    /// What was done to files, until the log says so.
    restored: Arc<parking_lot::Mutex<Option<Restored>>>,
    /// Held while files are being restored.
    at_work: Arc<Mutex<()>>,
    /// Whether this daemon was asked for the rewind, and did not find it in the log.
    is_ours: bool,
}

impl SessionHandle {
    /// Takes the session back; resolves when the log says so.
    pub fn rewind(
        &self,
        order: RewindOrder,
    ) -> impl Future<Output = Result<RewindDone, SessionError>> + Send + use<> {
        let (reply, done) = oneshot::channel();
        let posted = self.post(Message::Rewind {
            order: Box::new(order),
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            done.await.unwrap_or(Err(SessionError::Ended(id)))
        }
    }
}

impl Actor {
    /// Returns where earlier versions of files are kept: sub-agents share that of the session at the
    /// top.
    pub(super) fn captures(&self) -> Captures {
        if let Some(parent) = self.subagents.parent() {
            let captures = &parent.tree().captures;
            let subagent = self.state.subagent.as_ref();
            return match subagent.and_then(|own| own.profile.worktree.as_ref()) {
                Some(worktree) => captures.without(worktree.into()),
                None => captures.clone(),
            };
        }
        let is_on = self.state.options.enable_file_change_tracking == Some(true);
        // If somebody opened the session of a sub-agent, its files are those of another session.
        if !is_on || self.state.subagent.is_some() {
            return Captures::off();
        }
        let captures = self.rewinding.captures.get_or_init(|| {
            let services = &self.services;
            let reporter = self.reporter();
            Captures::new(
                &services.session_folder(&self.state.id),
                &services.home,
                services.config.rewind.bounds(),
                Box::new(move |text| tell(&reporter, text)),
            )
        });
        captures.clone()
    }

    /// Says to whom changes of files belong from now on.
    pub(super) fn turn_began(&self) {
        if self.subagents.is_child() {
            return;
        }
        let message = self.state.history.last_user().unwrap_or_default();
        let rewound = self.state.rewinds.last().map(|last| last.began);
        self.captures()
            .turn_began(message.max(rewound.unwrap_or_default()));
    }

    /// Copies or compares the workspace beside a model call, if that has to be.
    pub(super) fn look_at_files(&mut self, turn: &TurnKey) {
        let place = ModelCallPlace {
            is_first_of_run: turn.number == 0,
            is_subagent: self.subagents.is_child(),
            commands_run: self.has_commands(),
        };
        let captures = self.captures();
        if let Some(work) = captures.beside_model_call(place, || self.workspace()) {
            self.running.spawn(work);
        }
    }

    fn has_commands(&self) -> bool {
        let mut running = self.state.tasks.running();
        running.any(|task| task.shell().is_some())
    }

    /// Returns where the session at the top works.
    pub(super) fn workspace(&self) -> Workspace {
        let home = self.clients.launch().and_then(|it| it.variable("HOME"));
        Workspace {
            cwd: self.state.cwd.clone().into(),
            user_home: home.map(Into::into),
            unread: ReadRules::of(&self.effective_permissions().permissions),
        }
    }

    /// Waits for what is being done to files, and removes what nobody needs after this session.
    pub(super) async fn close_captures(&self) {
        // A rewind is not cut off: the next actor of this session would do the rest beside it.
        drop(self.rewinding.at_work.lock().await);
        if let Some(captures) = self.rewinding.captures.get() {
            captures.close().await;
        }
    }

    pub(super) async fn rewind(&mut self, order: RewindOrder, reply: RewindReply) -> Flow {
        let id = order.id.clone();
        self.rewinding.is_ours = true;
        if let Err(error) = self.execute(Command::Rewind(Box::new(order))).await {
            let flow = self.flow_after(&error);
            // The send fails if the caller has stopped waiting.
            reply.send(Err(error)).ok();
            return flow;
        }
        self.rewinding.waiting = Some((id, reply));
        Flow::Go
    }

    /// Restores the files of a rewind.
    pub(super) fn restore_files(&mut self, rewinding: Rewinding) -> Work {
        let captures = self.captures();
        let later = !self.rewinding.is_ours;
        let at_work = self.rewinding.at_work.clone();
        let restored = self.rewinding.restored.clone();
        let id = rewinding.started.rewind.clone();
        let failed = id.clone();
        Work::new(
            async move {
                let guard = at_work.lock_owned().await;
                let rewind = id.clone();
                let work = tokio::task::spawn_blocking(move || {
                    let _guard = guard;
                    captures.carry_out_rewind(&rewind, rewinding.began)
                });
                let done = work.await.unwrap_or_else(|error| {
                    tracing::error!(%error, "a rewind failed");
                    Err(crashed())
                });
                let outcome = match &done {
                    Ok(report) => RestoreOutcome::Restored {
                        restored: report.restored.len() as u64,
                        skipped: report.skipped.len() as u64,
                        left: named(&report.skipped),
                    },
                    Err(failure) => RestoreOutcome::Failed {
                        error: failure.error.clone(),
                        rolled_back: failure.rolled_back,
                    },
                };
                *restored.lock() = Some((id.clone(), done));
                Some(Command::FilesRestored {
                    rewind: id,
                    outcome,
                    later,
                })
            },
            move || Command::FilesRestored {
                rewind: failed,
                outcome: RestoreOutcome::Failed {
                    error: crashed().error,
                    rolled_back: false,
                },
                later,
            },
        )
    }

    /// Answers who waits for a rewind that has ended, and takes up what came meanwhile.
    pub(super) async fn settle_rewind(&mut self) -> Flow {
        let Some((id, reply)) = self.ended_rewind() else {
            return Flow::Go;
        };
        self.turn_began();
        let restored = self.rewinding.restored.lock().take();
        let files = restored.filter(|(of, _)| *of == id).map(|(_, done)| done);
        let last = self.state.rewinds.last().filter(|last| last.id == id);
        let done = match (last, files) {
            (Some(last), files) => RewindDone::Rewound {
                events_removed: last.events_removed,
                files: files.and_then(Result::ok).unwrap_or_default(),
            },
            (None, Some(Err(failure))) => RewindDone::NotRestored(failure),
            (None, Some(Ok(_)) | None) => RewindDone::NotRestored(crashed()),
        };
        if let Some(reply) = reply {
            reply.send(Ok(done)).ok();
        }
        if self.is_attended() {
            return self.report(Command::TakeUp).await;
        }
        Flow::Go
    }

    /// Returns a rewind that has ended according to the log, and who waits for it.
    fn ended_rewind(&mut self) -> Option<(RewindId, Option<RewindReply>)> {
        if matches!(self.state.phase, Phase::Rewinding(_)) {
            return None;
        }
        if let Some((id, reply)) = self.rewinding.waiting.take() {
            return Some((id, Some(reply)));
        }
        // A rewind of an earlier daemon, which nobody waits for.
        let restored = self.rewinding.restored.lock();
        restored.as_ref().map(|(id, _)| (id.clone(), None))
    }
}

/// Names files that were left alone, as far as a message has room for them.
fn named(left: &[SkippedFile]) -> Vec<String> {
    let first = left.iter().take(NAMED_FILES);
    first
        .map(|it| for_person(&it.path.to_string_lossy()))
        .collect()
}

fn crashed() -> RestoreFailure {
    RestoreFailure {
        error: "The rewind crashed inside the daemon; this is a bug of loopd. Look at the files before you go on.".to_owned(),
        rolled_back: false,
    }
}

fn tell(reporter: &Reporter, text: String) {
    let warning = Command::Log {
        level: LogLevel::Warning,
        kind: "rewind".to_owned(),
        message: text,
        url: None,
        tip: None,
        stored: false,
    };
    // The send fails if the session has ended or has too much to do; the log of the daemon has it.
    if reporter
        .0
        .try_send(Message::Report(Box::new(warning)))
        .is_err()
    {
        tracing::warn!("a session could not be told about its captured files");
    }
}
