//! What comes of one message: its events until the end, and the answer.
//!
//! The daemon says when a message was dealt with; here are only the events that come meanwhile.

use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::session::Failure;
use loopd_proto::event::{self, Body, Durable, Ephemeral, Event};
use loopd_proto::id::{EventId, MessageId};
use loopd_proto::params::session::{Completed, Until};

use crate::Error;
use crate::events::Events;

/// How long to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wait {
    /// Until the session has nothing left to do: whatever the message set off has ended, too.
    #[default]
    Session,
    /// Until the agent that was spoken to has answered.
    Foreground,
}

impl From<Wait> for Until {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Session => Self::Idle,
            Wait::Foreground => Self::Answer,
        }
    }
}

/// What came of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub message_id: MessageId,
    /// The last thing the agent said.
    pub text: String,
}

/// The daemon's word on what became of the message.
type Completion = BoxFuture<'static, Result<Completed, Error>>;

/// The events of the session until what a message set off has ended. Dropping it ends the wait and
/// nothing else.
pub struct Turn {
    message_id: MessageId,
    events: Events,
    /// Taken when it has been given.
    completion: Option<Completion>,
    completed: Option<Result<Completed, Error>>,
    /// What the message's run failed with.
    failure: Option<Box<Failure>>,
    /// The rests that were passed on; one of them may be the end.
    rests: Vec<EventId>,
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
    /// Begins the wait; the message is on its way when this returns.
    pub(crate) fn new(message_id: MessageId, events: Events, mut completion: Completion) -> Self {
        // Polled once, so that what the caller sends next comes after the message.
        let completed = completion.as_mut().now_or_never();
        Self {
            message_id,
            events,
            completion: completed.is_none().then_some(completion),
            completed,
            failure: None,
            rests: Vec::new(),
        }
    }

    pub fn message_id(&self) -> &MessageId {
        &self.message_id
    }

    /// The next event of the session; `None` after the one that ended the turn.
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
        // What came before the daemon's word is here by now.
        if self.has_ended() || self.events.waiting() == 0 {
            return None;
        }
        let event = self.events.next().await?;
        self.note(&event);
        Some(event)
    }

    /// What came of it; asked before its end, what is known so far.
    pub fn finish(self) -> Result<Reply, Error> {
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
        let said = response.and_then(|line| event::read(line.get()).ok());
        let text = said.and_then(|said| match said.body {
            Body::Durable(Durable::AssistantMessage(message)) => Some(message.content),
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => None,
        });
        Ok(Reply {
            message_id: self.message_id,
            text: text.unwrap_or_default(),
        })
    }

    fn note(&mut self, event: &Event) {
        match &event.body {
            Body::Durable(Durable::SessionError(failure))
                if failure.originating_message_id.as_ref() == Some(&self.message_id) =>
            {
                self.failure = Some(Box::new(failure.clone()));
            }
            Body::Ephemeral(Ephemeral::SessionIdle(_) | Ephemeral::AssistantIdle(_)) => {
                self.rests.push(event.head.id.clone());
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }

    /// Whether the event that ended the wait was passed on.
    fn has_ended(&self) -> bool {
        let end = match &self.completed {
            Some(Ok(completed)) => completed.completion_event_id.as_ref(),
            Some(Err(_)) | None => None,
        };
        end.is_some_and(|end| self.rests.contains(end))
    }
}
