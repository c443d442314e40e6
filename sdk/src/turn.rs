//! The turn that a message starts: its events until the end, and the reply.
//!
//! The daemon decides when the turn is complete; this module only delivers the events until then.

use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::autopilot::{AutopilotStopped, StopReason, TaskComplete};
use loopd_proto::event::session::Failure;
use loopd_proto::event::{self, Body, Durable, Ephemeral, Event};
use loopd_proto::id::{EventId, MessageId};
use loopd_proto::params::session::{Completed, Until};

use crate::Error;
use crate::events::Events;

/// What "done" means to a caller. [`Reply::outcome`] says what came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wait {
    /// The session is idle: background tasks of the message have ended, too.
    #[default]
    Session,
    /// The main agent has answered. In autopilot mode that is when it is not told to go on any more.
    Foreground,
    /// In autopilot mode, the model has marked the task as complete or blocked, or the autopilot has
    /// stopped for another reason; background tasks may go on. In other modes no task is marked, and
    /// the wait ends when the session is idle.
    Task,
}

impl From<Wait> for Until {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Session => Self::Idle,
            Wait::Foreground => Self::Answer,
            Wait::Task => Self::Task,
        }
    }
}

/// How the work on a message came to its end. An abort and a failure are errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The main agent has answered. Background tasks may go on.
    Answered,
    /// The session is idle. Whether the task is done is for the caller to judge.
    Idle,
    /// The model has marked the task as complete.
    Completed { summary: String },
    /// The model cannot go on without somebody else.
    Blocked { summary: String, needs: String },
    /// The autopilot stopped, and the task is not marked as complete.
    Stopped {
        reason: StopReason,
        /// The reason in words, where it has more to say.
        message: Option<String>,
    },
}

/// The reply to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub message_id: MessageId,
    /// The last message of the agent.
    pub text: String,
    /// Why that message is not complete, in words for people; `None` if it is.
    pub incomplete: Option<String>,
    pub outcome: TurnOutcome,
}

/// The types of the warnings that follow a message that is not complete: a limit or a filter cut it, it
/// ended for a reason that is not known, or the model is not told any more what its background work
/// came to.
pub const CUT_WARNINGS: [&str; 4] = [
    "answer_cut",
    "answer_filtered",
    "answer_end_unknown",
    "wake_limit",
];

/// The daemon's reply when the turn is complete.
type Completion = BoxFuture<'static, Result<Completed, Error>>;

/// The events of the session until the turn of a message is complete.
///
/// Dropping it ends the wait, not the turn.
pub struct Turn {
    message_id: MessageId,
    wait: Wait,
    events: Events,
    /// `None` once it has resolved.
    completion: Option<Completion>,
    completed: Option<Result<Completed, Error>>,
    /// The error with which the turn failed.
    failure: Option<Box<Failure>>,
    /// Why the last message of the main agent is not complete.
    incomplete: Option<String>,
    /// The ids of the events that were delivered and can be the last one of the turn.
    idle_events: Vec<EventId>,
    /// Whether the last message of the main agent answers this message. Others may have sent some, too.
    is_own: bool,
    /// What the model said last about a task, and about that of this message.
    last_task: Option<TaskComplete>,
    task: Option<TaskComplete>,
    /// Why the autopilot stopped with this message.
    stopped: Option<AutopilotStopped>,
}

impl fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("message_id", &self.message_id)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

impl Turn {
    /// Begins the wait. The message has been sent when this returns.
    pub(crate) fn new(
        message_id: MessageId,
        wait: Wait,
        events: Events,
        mut completion: Completion,
    ) -> Self {
        // Polled once, so that the next request of the caller comes after the message.
        let completed = completion.as_mut().now_or_never();
        Self {
            message_id,
            wait,
            events,
            completion: completed.is_none().then_some(completion),
            completed,
            failure: None,
            incomplete: None,
            idle_events: Vec::new(),
            is_own: true,
            last_task: None,
            task: None,
            stopped: None,
        }
    }

    pub fn message_id(&self) -> &MessageId {
        &self.message_id
    }

    /// Returns the next event of the session; `None` after the last event of the turn.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(completion) = &mut self.completion {
            tokio::select! {
                biased;
                event = self.events.next() => {
                    let event = event?;
                    self.note(&event);
                    return Some(event);
                }
                completed = completion => {
                    self.completed = Some(completed);
                    self.completion = None;
                }
            }
        }
        // The events that were sent before the daemon's reply are in the queue by now.
        if self.has_ended() || self.events.waiting() == 0 {
            return None;
        }
        let event = self.events.next().await?;
        self.note(&event);
        Some(event)
    }

    /// Returns the reply. Before the end of the turn, its text is empty.
    pub fn finish(self) -> Result<Reply, Error> {
        let outcome = self.outcome();
        let response = match (self.completed, self.failure) {
            (Some(Err(Error::Refused { .. })), Some(failure)) => {
                return Err(Error::Failed(failure));
            }
            (Some(Err(error)), _) => return Err(error),
            (Some(Ok(completed)), _) if completed.aborted => return Err(Error::Aborted),
            (Some(Ok(completed)), _) => completed.response,
            (None, _) => match self.events.end() {
                Some(error) => return Err(error),
                None => None,
            },
        };
        let message = response.and_then(|line| event::read(line.get()).ok());
        let text = match message.map(|message| message.body) {
            Some(Body::Durable(Durable::AssistantMessage(message))) => message.content,
            _ => String::new(),
        };
        Ok(Reply {
            message_id: self.message_id,
            text,
            incomplete: self.incomplete,
            outcome,
        })
    }

    /// Returns what came, as far as it has come.
    fn outcome(&self) -> TurnOutcome {
        let Some(stopped) = &self.stopped else {
            return match self.wait {
                Wait::Foreground => TurnOutcome::Answered,
                Wait::Session | Wait::Task => TurnOutcome::Idle,
            };
        };
        let said = self.task.clone().unwrap_or_default();
        let summary = said.summary.unwrap_or_default();
        match stopped.reason {
            StopReason::TaskComplete => TurnOutcome::Completed { summary },
            StopReason::Blocked => TurnOutcome::Blocked {
                summary,
                needs: said.reason.unwrap_or_default(),
            },
            reason @ (StopReason::CapReached
            | StopReason::Aborted
            | StopReason::Error
            | StopReason::Rejected) => TurnOutcome::Stopped {
                reason,
                message: stopped.message.clone(),
            },
        }
    }

    fn note(&mut self, event: &Event) {
        match &event.body {
            Body::Durable(Durable::SessionError(failure))
                if failure.originating_message_id.as_ref() == Some(&self.message_id) =>
            {
                self.failure = Some(Box::new(failure.clone()));
            }
            Body::Durable(Durable::AssistantMessage(message)) if event.head.agent_id.is_none() => {
                // Without an origin, a notification started the run.
                let origin = message.originating_message_id.as_ref();
                self.is_own = origin.is_none_or(|origin| *origin == self.message_id);
                if self.is_own {
                    self.incomplete = None;
                }
            }
            Body::Durable(Durable::SessionWarning(warning))
                if event.head.agent_id.is_none()
                    && self.is_own
                    && CUT_WARNINGS.contains(&warning.warning_type.as_str()) =>
            {
                self.incomplete = Some(warning.message.clone());
            }
            Body::Durable(Durable::TaskComplete(said)) if event.head.agent_id.is_none() => {
                self.last_task = Some(said.clone());
            }
            Body::Durable(Durable::AutopilotStopped(stopped))
                if stopped.request_id.as_ref() == Some(&self.message_id) =>
            {
                // The autopilot stops right after the model has said it.
                self.task = self.last_task.take();
                self.stopped = Some(stopped.clone());
                self.idle_events.push(event.head.id.clone());
            }
            Body::Ephemeral(Ephemeral::SessionIdle(_) | Ephemeral::AssistantIdle(_)) => {
                self.idle_events.push(event.head.id.clone());
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }

    /// Returns whether the last event of the turn was delivered.
    fn has_ended(&self) -> bool {
        let end = match &self.completed {
            Some(Ok(completed)) => completed.completion_event_id.as_ref(),
            Some(Err(_)) | None => None,
        };
        end.is_some_and(|end| self.idle_events.contains(end))
    }
}
