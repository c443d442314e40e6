//! The work of a session that no single message stands for, such as that of a fleet: its events until
//! the session is idle.

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::session::Failure;
use loopd_proto::event::{Body, Durable, Event};
use loopd_proto::method;

use crate::events::Events;
use crate::{Error, Session};

/// The events of a session until it is idle. The daemon decides when that is.
///
/// Dropping it ends the wait, not the work.
pub struct UntilIdle {
    events: Events,
    /// `None` once it has resolved.
    idle: Option<BoxFuture<'static, Result<(), Error>>>,
    ended: Result<(), Error>,
    /// The last error of the session meanwhile.
    failure: Option<Box<Failure>>,
}

impl Session {
    /// Waits until the session is idle: its loop, its agents and its fleet have ended. Whoever wants
    /// every event opens the stream before the work begins.
    pub fn until_idle(&self, events: Events) -> UntilIdle {
        let (shared, of) = (self.client().shared.clone(), self.of());
        let idle = async move {
            let idle = shared.call::<method::LoopdWaitIdle>(&of).await;
            idle.map(|_| ())
        };
        UntilIdle {
            events,
            idle: Some(idle.boxed()),
            ended: Ok(()),
            failure: None,
        }
    }
}

impl UntilIdle {
    /// Returns the next event of the session; `None` after the last one.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(idle) = &mut self.idle {
            tokio::select! {
                biased;
                event = self.events.next() => {
                    let event = event?;
                    self.note(&event);
                    return Some(event);
                }
                ended = idle => {
                    self.ended = ended;
                    self.idle = None;
                }
            }
        }
        // The events that were sent before the daemon's reply are in the queue by now.
        if self.events.waiting() == 0 {
            return None;
        }
        let event = self.events.next().await?;
        self.note(&event);
        Some(event)
    }

    /// Returns how the work ended: with the last error of the session, if it failed.
    pub fn finish(self) -> Result<(), Error> {
        self.ended?;
        match (self.failure, self.events.end()) {
            (Some(failure), _) => Err(Error::Failed(failure)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }

    fn note(&mut self, event: &Event) {
        match &event.body {
            Body::Durable(Durable::SessionError(failure)) if event.head.agent_id.is_none() => {
                self.failure = Some(Box::new(failure.clone()));
            }
            // The work has gone on after it.
            Body::Durable(Durable::AssistantMessage(_)) if event.head.agent_id.is_none() => {
                self.failure = None;
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }
}
