//! Loads a stored log into a live state.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::rewind::{REWOUND, Rewound};
use loopd_proto::event::task::TaskOutcome;
use loopd_proto::event::{Durable, Head, read_durable};
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::time::Timestamp;
use loopd_store::{Cause, SessionRecord, Store, StoreError, StoredEvent};
use serde::de::IgnoredAny;

use super::SessionError;
use super::actor::Actor;
use super::subagents::{is_at_work, result};
use loopd_kernel::command::{Command, RecoveredOutcome, Shutdown, TaskAnswer, TaskEnd};
use loopd_kernel::fold::Fold;
use loopd_kernel::rewind::{HiddenRange, Rewinds};
use loopd_kernel::state::State;
use loopd_kernel::tasks::Task;
use loopd_kernel::texts;

/// How many levels of sub-agents are searched for one that waits for an answer.
const DEEPEST: usize = 16;

/// How the actor gets its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    New,
    Load,
    /// The log is a copy of another session's log; that session is about to adopt this one.
    Copy,
    /// The log is a copy that a client made; the session is on its own.
    Fork,
}

impl Actor {
    /// Applies the log to the state; closes what was running at its end, unless it runs elsewhere.
    pub(super) async fn load(&mut self, start: Start) -> Result<(), SessionError> {
        let stored = self
            .stored_state()
            .await
            .map_err(SessionError::Unreadable)?;
        let Some((record, state)) = stored else {
            return Err(SessionError::NotFound(self.state.id.clone()));
        };
        self.record = record;
        self.state = state;
        self.options = self.state.options.clone();
        self.hooks.transcript.take_back(self.state.rewinds.hidden());
        self.turn_began();
        let close = match start {
            Start::Copy => return Ok(()),
            Start::Fork => Command::CloseCopied,
            Start::New | Start::Load => Command::Recover(self.recovered().await),
        };
        match self.execute(close).await {
            // What was running is closed when the log can be written; until then it can be read.
            Ok(_) | Err(SessionError::NotYetStored(_)) => {}
            Err(error) => return Err(error),
        }
        self.shells.restore(&self.state);
        self.wait_for_answers();
        Ok(())
    }

    /// Reads the record and the state of this session from its log; `None` if there is no log.
    pub(super) async fn stored_state(
        &self,
    ) -> Result<Option<(SessionRecord, State)>, Arc<StoreError>> {
        let id = &self.state.id;
        let stored = self.services.store.load(id).await.map_err(Arc::new)?;
        let Some((record, events)) = stored else {
            return Ok(None);
        };
        let state = fold(id, &events, |_, _| {}).map_err(Arc::new)?;
        Ok(Some((record, state)))
    }
}

/// Folds the events of a log, oldest first, and shows each to `look`.
fn fold(
    id: &SessionId,
    events: &[StoredEvent],
    mut look: impl FnMut(&Head, &Durable),
) -> Result<State, StoreError> {
    let rewinds = rewinds(events);
    let mut fold = Fold::new(id.clone(), rewinds.iter().map(|(seq, it)| (*seq, it)));
    for stored in events {
        match read_durable(&stored.json) {
            Ok((head, event)) => {
                fold.apply(stored.seq, &head, &event);
                look(&head, &event);
            }
            Err(error) if serde_json::from_str::<IgnoredAny>(&stored.json).is_err() => {
                return Err(StoreError::Corrupt {
                    place: format!("event {} of session {id}", stored.seq.0),
                    cause: Cause::new(error),
                });
            }
            Err(error) => {
                // A later version wrote it: skipped, so that the rest loads.
                tracing::warn!(session = %id, kind = %stored.kind, %error, "an event could not be read");
            }
        }
    }
    Ok(fold.finish(events.last().map_or(Seq::START, |last| last.seq)))
}

/// Returns the state that a log comes to.
pub fn state_of(id: &SessionId, events: &[StoredEvent]) -> Result<State, StoreError> {
    fold(id, events, |_, _| {})
}

/// Returns what rewinds took back of a log.
pub fn hidden_in(events: &[StoredEvent]) -> Vec<HiddenRange> {
    let mut all = Rewinds::default();
    for (at, rewound) in rewinds(events) {
        all.push(&rewound, at, at);
    }
    all.hidden()
}

/// Returns the rewinds of a log with their positions.
fn rewinds(events: &[StoredEvent]) -> Vec<(Seq, Rewound)> {
    let rewinds = events.iter().filter(|stored| &*stored.kind == REWOUND);
    rewinds
        .filter_map(|stored| match read_durable(&stored.json) {
            Ok((_, Durable::Rewound(rewound))) => Some((stored.seq, rewound)),
            // What cannot be read is reported when it is folded.
            Ok(_) | Err(_) => None,
        })
        .collect()
}

impl Actor {
    /// Returns the outcomes of sub-agents that are still running according to this log. Their own
    /// logs may have an answer that the last daemon had no time to deliver.
    async fn recovered(&self) -> Vec<RecoveredOutcome> {
        let multi_turn = self.services.config.agents.multi_turn;
        let mut recovered = Vec::new();
        for task in self.state.tasks.running() {
            let Some(work) = task.agent() else {
                continue;
            };
            match self.services.store.load(&work.session_id).await {
                Ok(Some((_, events))) => {
                    let own = folded(&work.session_id, &events);
                    if waits_for_answer(self.services.store.as_ref(), &own.state, DEEPEST).await {
                        recovered.push(RecoveredOutcome::Waits(task.id.clone()));
                    } else {
                        recovered.extend(recovered_outcome(task, &own, multi_turn));
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(session = %work.session_id, %error, "an agent's log could not be read");
                }
            }
        }
        recovered
    }
}

impl Actor {
    /// Ends the session; `error` says why, if an error is the reason. Its log stays.
    pub(super) async fn shut_down(&mut self, error: Option<String>) -> Result<(), SessionError> {
        let shutdown = Command::Shutdown(Shutdown::because_of(error));
        self.execute(shutdown).await.map(|_| ())
    }

    /// Adds to a command that stops all work how far the sub-agents got that are at work.
    pub(super) async fn with_agents(&self, command: Command) -> Command {
        match command {
            Command::Suspend(_) => Command::Suspend(self.stopped_agents().await),
            Command::Shutdown(shutdown) => Command::Shutdown(Shutdown {
                agents: self.stopped_agents().await,
                ..shutdown
            }),
            command => command,
        }
    }

    /// Returns what the logs of working sub-agents say of their work, which is stopped now.
    async fn stopped_agents(&self) -> Vec<RecoveredOutcome> {
        let multi_turn = self.services.config.agents.multi_turn;
        let mut stopped = Vec::new();
        for task in self.state.tasks.running() {
            let Some(work) = task.agent() else {
                continue;
            };
            match self.services.store.load(&work.session_id).await {
                Ok(Some((_, events))) => {
                    let own = folded(&work.session_id, &events);
                    let mut outcome = recovered_outcome(task, &own, multi_turn);
                    if let Some(RecoveredOutcome::Ended(_, end)) = &mut outcome
                        && end.lost
                    {
                        end.outcome = TaskOutcome::Cancelled;
                        end.reason = Some(texts::AGENT_CLOSED.to_owned());
                    }
                    stopped.extend(outcome);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(session = %work.session_id, %error, "an agent's log could not be read");
                }
            }
        }
        stopped
    }
}

/// Returns whether a sub-agent waits for an answer that can still come: it has asked itself, or it
/// waits for a sub-agent that has. Answers survive a restart in the log of who asked.
fn waits_for_answer<'a>(
    store: &'a dyn Store,
    state: &'a State,
    levels: usize,
) -> BoxFuture<'a, bool> {
    async move {
        let Some(turn) = state.turn().filter(|turn| !turn.aborting) else {
            return false;
        };
        if turn.waits_for_clients() || turn.waits_until().is_some() {
            return true;
        }
        let Some(levels) = levels.checked_sub(1) else {
            return false;
        };
        for task in state.tasks.running().filter(|task| task.is_waited_for()) {
            let calls = turn.calls().iter().filter(|call| call.may_run());
            let mut calls = calls.map(|call| &call.call.id);
            let (Some(call), Some(work)) = (&task.call, task.agent()) else {
                continue;
            };
            if !calls.any(|id| id == call) {
                continue;
            }
            // A log that cannot be read is reported when its own parent loads it.
            if let Ok(Some((_, events))) = store.load(&work.session_id).await {
                let own = folded(&work.session_id, &events);
                if waits_for_answer(store, &own.state, levels).await {
                    return true;
                }
            }
        }
        false
    }
    .boxed()
}

/// A sub-agent according to its own log.
struct Own {
    state: State,
    /// When the sub-agent last received a message.
    spoken_to: Option<Timestamp>,
}

fn folded(id: &SessionId, events: &[StoredEvent]) -> Own {
    let mut spoken_to = None;
    let state = fold(id, events, |head, event| {
        if let Durable::UserMessage(_) = event {
            spoken_to = Some(head.timestamp);
        }
    });
    let state = state.unwrap_or_else(|error| {
        tracing::warn!(session = %id, %error, "an agent's log could not be read");
        State::new(id.clone())
    });
    Own { state, spoken_to }
}

/// Returns the outcome in a sub-agent's own log, unless the log says no more than that the
/// sub-agent was interrupted.
fn recovered_outcome(task: &Task, own: &Own, multi_turn: bool) -> Option<RecoveredOutcome> {
    let state = &own.state;
    if own.spoken_to < task.active_since {
        // Its last response does not answer the latest message, which it has not received.
        return None;
    }
    let spoken = state.history.last_user().unwrap_or(Seq::START);
    let at_work = is_at_work(state);
    let result = result(state, spoken);
    let done = !at_work && result.outcome == Some(LoopOutcome::Done);
    if done && multi_turn && !task.is_waited_for() {
        let answer = TaskAnswer {
            response: result.response.unwrap_or_default(),
            usage: result.usage,
            delivered: false,
        };
        return Some(RecoveredOutcome::Answered(task.id.clone(), answer));
    }
    let (outcome, reason) = if done {
        (TaskOutcome::Completed, None)
    } else {
        let lost = texts::AGENT_LOST.to_owned();
        let error = result.error.filter(|_| !at_work);
        (TaskOutcome::Failed, Some(error.unwrap_or(lost)))
    };
    let end = TaskEnd {
        reason,
        result: result.response,
        usage: Some(result.usage),
        lost: at_work,
        ..TaskEnd::new(outcome)
    };
    Some(RecoveredOutcome::Ended(task.id.clone(), end))
}
