//! What a session does while its log cannot be written: it goes back to what is stored, keeps what
//! has happened since, and stores that when writing works again.
//!
//! A request whose commit failed is undone and answered with an error. A report is kept, because
//! nobody would say it again: its transaction is tried again with growing pauses, and before each
//! further request. Clients stay attached and read the state that is stored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::session::Failure;
use loopd_proto::id::{MessageId, RequestId, Seq, ToolCallId};
use loopd_store::{SessionRecord, StoreError};
use tokio::time::Instant;

use super::actor::{Actor, Flow};
use super::transaction::Transaction;
use super::waits::Whose;
use super::{Done, SessionError, journal};
use crate::client::{Class, Notice};
use loopd_exec::keep_alive::KeepAliveGuard;
use loopd_kernel::command::{CallOutcome, Command, Effect, ModelFailure};
use loopd_kernel::state::{State, TurnKey};

/// The pause before the first retry; each pause is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a transaction is tried again by itself, which takes about ten minutes. After that the
/// next request tries it.
const RETRIES: u32 = 120;
/// The most reports that may wait for the disk.
const MOST_REPORTS: usize = 1_024;

/// Whether the log of a session can be written, and what waits for it.
#[derive(Default)]
pub(super) struct Storage {
    /// Why the last commit failed; `None` while commits work.
    failing: Option<Arc<StoreError>>,
    /// Set if the log could not be read after a failed commit. The state is then not known.
    unread: Option<Arc<StoreError>>,
    /// The oldest report that is not stored.
    unstored: Option<Box<Unstored>>,
    /// The reports since then, in order.
    reports: VecDeque<Command>,
    /// Work of stored transactions that an abort among the reports may make needless.
    held: Vec<Effect>,
    retries: u32,
    retry_at: Option<Instant>,
    at_work: Option<KeepAliveGuard>,
}

/// A transaction whose commit failed.
struct Unstored {
    transaction: Transaction,
    /// The state and the record after the transaction.
    state: State,
    record: SessionRecord,
}

/// What becomes of a command whose commit fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFailure {
    Undo,
    Keep,
}

/// What follows from a failed commit, for whoever is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// A request was refused and changed nothing.
    Refused,
    /// What has happened is kept, and stored later.
    Kept,
    /// It is kept, but was tried so often that only the next request tries it again.
    GivenUp,
    /// What has happened cannot be stored, ever.
    Lost,
}

impl Follows {
    fn told(self, error: &StoreError) -> String {
        let what = match self {
            Self::Refused => {
                "A request was refused and changed nothing. The session can be read meanwhile, and takes requests again as soon as its log can be written"
            }
            Self::Kept => {
                "What has happened since is kept in memory, and the session goes on by itself when its log can be written again; until then it can be read, and new requests are refused"
            }
            Self::GivenUp => {
                "What has happened since is still kept in memory, but nothing is tried again by itself any more: the next request to the session tries it, and it is lost if the daemon ends before"
            }
            Self::Lost => {
                "What had happened last could not be stored and is lost; the session goes on from what is in its log"
            }
        };
        format!("the session's log could not be written: {error}. {what}.")
    }
}

impl Storage {
    /// Returns whether something waits to be stored, or the state is not known.
    pub(super) fn is_blocked(&self) -> bool {
        self.unread.is_some() || self.unstored.is_some() || !self.reports.is_empty()
    }

    /// Returns why the state is not known, if it is not.
    pub(super) fn unread(&self) -> Option<SessionError> {
        let error = self.unread.as_ref()?;
        Some(SessionError::Unreadable(error.clone()))
    }

    /// Takes out the effects that must not start before an abort that waits to be stored.
    pub(super) fn hold_back(&mut self, effects: &mut Vec<Effect>) {
        let is_abort = |report: &Command| matches!(report, Command::Abort(_));
        if self.reports.iter().any(is_abort) {
            let held = effects.extract_if(.., |effect| effect.turn().is_some());
            self.held.extend(held);
        }
    }

    /// Returns when to try again to store what waits.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

/// The command that takes the place of a report that the store refuses for good.
pub(super) enum Substitute {
    ModelFailed(TurnKey),
    PrepareFailed(Vec<MessageId>),
    ToolFailed(TurnKey, ToolCallId),
    AnswerFailed(RequestId),
    Nothing,
}

impl Substitute {
    pub(super) fn of(command: &Command) -> Self {
        match command {
            Command::ModelReplied(replied) => Self::ModelFailed(replied.turn.clone()),
            Command::Prepared(prepared) => {
                let messages = prepared.messages.iter();
                Self::PrepareFailed(messages.map(|message| message.id.clone()).collect())
            }
            Command::ToolFinished { turn, call, .. } => {
                Self::ToolFailed(turn.clone(), call.clone())
            }
            Command::AnswerTool { request, .. } => Self::AnswerFailed(request.clone()),
            _ => Self::Nothing,
        }
    }

    pub(super) fn command(self, error: &StoreError) -> Option<Command> {
        let failure = || ModelFailure {
            kind: "storage".to_owned(),
            code: None,
            message: format!("the answer could not be stored: {error}"),
            status: None,
            provider_call_id: None,
            model: None,
            retry_after_seconds: None,
        };
        let outcome = || {
            let text = format!("The tool ran, but its result could not be stored: {error}.");
            CallOutcome::failure("failure", text)
        };
        Some(match self {
            Self::ModelFailed(turn) => Command::ModelFailed {
                lost: None,
                turn,
                failure: failure(),
            },
            Self::PrepareFailed(messages) => Command::PrepareFailed {
                messages,
                failure: failure(),
            },
            Self::ToolFailed(turn, call) => Command::ToolFinished {
                turn,
                call,
                outcome: outcome(),
            },
            Self::AnswerFailed(request) => Command::AnswerTool {
                request,
                outcome: outcome(),
            },
            Self::Nothing => return None,
        })
    }
}

/// What the log holds after a commit that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// The transaction: the commit took effect although it was reported as failed.
    All,
    /// Nothing of the transaction. The actor has the state before it.
    Nothing,
}

impl Actor {
    /// Makes sure that a command can be decided against the stored state. Keeps a report for later
    /// if it cannot.
    pub(super) async fn make_way(&mut self, command: Command) -> Result<Command, SessionError> {
        if !self.storage.is_blocked() {
            return Ok(command);
        }
        if !command.is_report() {
            // On the heap, like every way that only a failing disk takes.
            Box::pin(self.catch_up()).await?;
            return Ok(command);
        }
        if let Some(request) = command.answered_request()
            && self.has_unstored_answer(request)
        {
            return Err(SessionError::Invalid(format!(
                "the request {request} is answered already: that answer is kept until it can be stored, and this one has no effect"
            )));
        }
        if self.storage.reports.len() >= MOST_REPORTS {
            return Err(SessionError::Overloaded(self.state.id.clone()));
        }
        self.storage.reports.push_back(command);
        Err(self.not_yet_stored())
    }

    /// Returns whether a question has an answer that waits to be stored.
    fn has_unstored_answer(&self, request: &RequestId) -> bool {
        let storage = &self.storage;
        let was_open = self.state.questions.get(request).is_some();
        let unstored = storage.unstored.as_ref();
        let answered = unstored.is_some_and(|it| it.state.questions.get(request).is_none());
        let mut reports = storage.reports.iter();
        (was_open && answered) || reports.any(|it| it.answered_request() == Some(request))
    }

    fn not_yet_stored(&self) -> SessionError {
        let error = self.storage.failing.clone();
        SessionError::NotYetStored(error.unwrap_or_else(|| Arc::new(StoreError::Lost)))
    }

    /// Goes back to the stored state after a failed commit. Keeps the transaction of a report, and
    /// undoes that of a request.
    pub(super) async fn commit_failed(
        &mut self,
        transaction: Transaction,
        error: StoreError,
        on_failure: OnFailure,
    ) -> Result<Done, SessionError> {
        let error = Arc::new(error);
        let after = State::new(self.state.id.clone());
        let after = std::mem::replace(&mut self.state, after);
        let record = self.record.clone();
        let read = self.read_back(&after).await;
        if read == Stored::All && !error.loses_what_is_read() {
            // A rewind leaves the state that was read, which knows what came back.
            if !transaction.rewinds() {
                self.state = after;
            }
            return Ok(self.finish(transaction));
        }
        let keep = on_failure == OnFailure::Keep && error.may_pass();
        if keep {
            if transaction.cancels_turn() {
                // The work stops now; the log says so later.
                self.running.cancel_turn();
            }
            self.storage.unstored = Some(Box::new(Unstored {
                transaction,
                state: after,
                record,
            }));
        } else {
            self.undo().await;
        }
        self.note_failure(
            &error,
            if keep {
                Follows::Kept
            } else {
                Follows::Refused
            },
        );
        if keep {
            Err(self.not_yet_stored())
        } else {
            Err(SessionError::Store(error))
        }
    }

    /// Ends what the transaction has started, and forgets what it would have told.
    async fn undo(&mut self) {
        self.running.undo_transaction().await;
        self.clients.audience().drop_held();
        self.waits.forget_unstored(self.state.seq);
        if !self.state.is_busy() {
            self.shells.drop_spare();
        }
    }

    /// Reads the state from the log. `after` is the state after the transaction that failed.
    async fn read_back(&mut self, after: &State) -> Stored {
        match self.stored_state().await {
            Ok(Some((record, state))) => {
                let has_all = state.seq == after.seq && state.tip == after.tip;
                self.record = record;
                self.state = state;
                self.storage.unread = None;
                if has_all {
                    Stored::All
                } else {
                    Stored::Nothing
                }
            }
            Ok(None) => {
                self.storage.unread = None;
                Stored::Nothing
            }
            Err(error) => {
                self.storage.unread = Some(error);
                Stored::Nothing
            }
        }
    }

    /// Stores what waits. Fails if the log still cannot be written or read.
    pub(super) async fn catch_up(&mut self) -> Result<(), SessionError> {
        loop {
            if self.storage.unread.is_some() {
                let nothing = State::new(self.state.id.clone());
                self.read_back(&nothing).await;
                if let Some(error) = &self.storage.unread {
                    let error = error.clone();
                    self.note_failure(&error, Follows::Kept);
                    return Err(SessionError::Unreadable(error));
                }
            }
            if let Some(unstored) = self.storage.unstored.take() {
                self.try_again(unstored).await?;
            }
            let Some(report) = self.storage.reports.pop_front() else {
                let mut held = std::mem::take(&mut self.storage.held);
                self.commits_work();
                held.retain(|effect| {
                    let turn = effect.turn().and_then(|turn| self.state.turn_named(turn));
                    turn.is_some_and(|turn| !turn.aborting)
                });
                self.start_all(held);
                return Ok(());
            };
            if let Err(SessionError::NotYetStored(error)) = self.execute_now(report).await {
                return Err(SessionError::Store(error));
            }
        }
    }

    async fn try_again(&mut self, unstored: Box<Unstored>) -> Result<(), SessionError> {
        let batch = unstored.transaction.batch(unstored.record.clone());
        let Err(error) = self.services.store.append(batch).await else {
            self.take_over(*unstored).await;
            return Ok(());
        };
        if error.may_pass() {
            let error = Arc::new(error);
            self.storage.unstored = Some(unstored);
            self.note_failure(&error, Follows::Kept);
            return Err(SessionError::Store(error));
        }
        // The store refuses it for good, or the failed commit took effect after all.
        let read = self.read_back(&unstored.state).await;
        if read == Stored::All && !error.loses_what_is_read() {
            self.take_over(*unstored).await;
            return Ok(());
        }
        tracing::error!(session = %self.state.id, %error, "what had happened could not be stored");
        self.undo().await;
        self.tell_storage_error(&error, Follows::Lost);
        Ok(())
    }

    async fn take_over(&mut self, unstored: Unstored) {
        self.state = unstored.state;
        self.record = unstored.record;
        if unstored.transaction.rewinds() {
            self.fold_again().await;
        }
        self.finish(unstored.transaction);
    }

    /// Reads the state from the log after a rewind, whose event alone cannot bring back what was taken
    /// back before.
    pub(super) async fn fold_again(&mut self) {
        match self.stored_state().await {
            Ok(Some((_, state))) => self.state = state,
            // The log was deleted; the next commit says so.
            Ok(None) => {}
            Err(error) => {
                self.note_failure(&error, Follows::Kept);
                self.storage.unread = Some(error);
            }
        }
        self.hooks.transcript.take_back(self.state.rewinds.hidden());
    }

    /// Tries again because the time has come; what fails is tried again later.
    pub(super) async fn retry(&mut self) {
        if let Err(error) = Box::pin(self.catch_up()).await {
            tracing::debug!(session = %self.state.id, %error, "the log cannot be written yet");
        }
    }

    /// Records that a commit failed: clients are told once, and what waits is tried again.
    fn note_failure(&mut self, error: &Arc<StoreError>, follows: Follows) {
        if self.storage.failing.is_none() {
            tracing::error!(session = %self.state.id, error = &**error as &dyn std::error::Error, "the log cannot be written");
            self.tell_storage_error(error, follows);
        }
        let storage = &mut self.storage;
        storage.failing = Some(error.clone());
        if !storage.is_blocked() {
            return;
        }
        let tried = storage.retries;
        if tried >= RETRIES {
            storage.retry_at = None;
            storage.at_work = None;
            // Nothing is tried again by itself, so nobody waits for it any longer.
            self.waits
                .refuse(Whose::All, &SessionError::NotYetStored(error.clone()));
            if tried == RETRIES {
                self.storage.retries += 1;
                self.tell_storage_error(error, Follows::GivenUp);
            }
            return;
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(storage.retries.min(16));
        storage.retry_at = Some(Instant::now() + pause.min(LONGEST_PAUSE));
        storage.retries += 1;
        let keep_alive = &self.services.keep_alive;
        storage.at_work.get_or_insert_with(|| keep_alive.work());
    }

    /// Records that a commit worked and nothing waits.
    pub(super) fn commits_work(&mut self) {
        if self.storage.failing.is_some() && !self.storage.is_blocked() {
            tracing::info!(session = %self.state.id, "the log can be written again");
            self.storage = Storage::default();
        }
    }

    /// Tells clients that the log cannot be written; the log cannot say it.
    fn tell_storage_error(&mut self, error: &StoreError, follows: Follows) {
        let event = Ephemeral::SessionError(Failure {
            error_type: "storage".to_owned(),
            message: follows.told(error),
            ..Failure::default()
        });
        self.tell(&event);
        // Clients at the top do not get such events of sub-agents.
        let above = self.subagents.parent();
        let line = journal::pass(&self.state, &self.services.clock, &event);
        if let (Some(parent), Ok(outgoing)) = (above, line) {
            let notice = Notice::event(parent.top(), &outgoing.line);
            parent.tree().audience.tell(Class::Event, &notice);
        }
    }

    /// Returns whether the actor goes on after an error.
    pub(super) fn flow_after(&self, error: &SessionError) -> Flow {
        match error {
            SessionError::Faulted(_) => Flow::Stop,
            SessionError::Store(error) if matches!(**error, StoreError::Closed) => Flow::Stop,
            // The session was never created, or its log was deleted.
            SessionError::Store(_)
                if self.state.seq == Seq::START && self.storage.unread.is_none() =>
            {
                Flow::Stop
            }
            SessionError::Store(_)
            | SessionError::NotYetStored(_)
            | SessionError::Unreadable(_)
            | SessionError::NotFound(_)
            | SessionError::Refused(_)
            | SessionError::Overloaded(_)
            | SessionError::FileNotChanged(_)
            | SessionError::Ended(_)
            | SessionError::Left(_)
            | SessionError::Invalid(_) => Flow::Go,
        }
    }
}
