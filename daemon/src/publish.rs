//! Sends events to the clients that are attached to one session.
//!
//! The session's actor publishes committed events; a running model call publishes its deltas
//! through a clone. Each event is serialised once. Its bytes are made once per session and shared
//! by all clients of that session.

pub mod recent;

use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;

use loopd_exec::clock::Clock;
use loopd_proto::event::{self, Ephemeral, Head};
use loopd_proto::id::{AgentId, EventId, Seq, SessionId};

use crate::client::{Class, Client, ClientId, Notice};

/// The clients that receive the events of one session.
#[derive(Clone)]
pub struct Audience {
    // Locked only to copy or change short lists.
    state: Arc<Mutex<AudienceState>>,
}

struct AudienceState {
    session: SessionId,
    clients: Vec<Arc<dyn Client>>,
    /// Events of effects, held back until the events that caused them are committed.
    held: Option<Vec<OutgoingEvent<'static>>>,
    /// Set for a sub-agent: the clients of the session at the top receive its events, too.
    upstream: Option<Upstream>,
}

/// The session at the top of a tree of sub-agents, for one of them.
#[derive(Clone)]
pub struct Upstream {
    pub session: SessionId,
    pub audience: Audience,
    pub agent: AgentId,
    /// Whether the deltas of a sub-agent are passed on.
    pub streaming: bool,
}

/// An event that is about to be sent to clients.
#[derive(Debug)]
pub struct OutgoingEvent<'a> {
    pub class: Class,
    pub kind: &'static str,
    pub line: Cow<'a, str>,
    /// Its place in the log, if it is stored.
    pub seq: Option<Seq>,
}

impl Upstream {
    /// Returns whether the clients at the top receive this event of a sub-agent. They learn about
    /// its start and end from its parent. That a sub-agent is idle or has failed must not look like
    /// an event of the session at the top.
    fn passes(&self, event: &OutgoingEvent<'_>) -> bool {
        let streamed = matches!(
            event.kind,
            "assistant.message_start"
                | "assistant.message_delta"
                | "assistant.reasoning_delta"
                | "assistant.streaming_delta"
        );
        if streamed {
            return self.streaming;
        }
        let shown = [
            "assistant.",
            "tool.",
            "permission.",
            "external_tool.",
            "subagent.",
            "model.",
            "hook.",
        ];
        let own = [
            "user.message",
            "system.message",
            "abort",
            "session.usage_info",
            "session.warning",
        ];
        event.kind != "assistant.idle"
            && !event.kind.starts_with("subagent.selected")
            && !event.kind.starts_with("subagent.deselected")
            && (shown.iter().any(|prefix| event.kind.starts_with(prefix))
                || own.contains(&event.kind)
                || event.kind.starts_with("user_input."))
    }
}

impl AudienceState {
    fn tell(&self, class: Class, notice: &Notice<'_>) {
        for client in &self.clients {
            client.tell(class, notice);
        }
    }

    fn deliver(&self, event: &OutgoingEvent<'_>) {
        let notice = Notice::stored_event(&self.session, &event.line, event.seq);
        self.tell(event.class, &notice);
        if let Some(upstream) = self.upstream.as_ref().filter(|up| up.passes(event)) {
            let notice = Notice::event(&upstream.session, &event.line);
            upstream.audience.tell(event.class, &notice);
        }
    }
}

impl Audience {
    pub fn new(session: SessionId) -> Self {
        let state = AudienceState {
            session,
            clients: Vec::new(),
            held: None,
            upstream: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, AudienceState> {
        self.state.lock()
    }

    pub fn join(&self, client: Arc<dyn Client>) {
        let mut state = self.state();
        if !state.clients.iter().any(|known| known.id() == client.id()) {
            state.clients.push(client);
        }
    }

    pub fn has(&self, id: ClientId) -> bool {
        self.state().clients.iter().any(|known| known.id() == id)
    }

    pub fn leave(&self, id: ClientId) {
        self.state().clients.retain(|client| client.id() != id);
    }

    /// Queues a notification for all clients; a client whose queue is full is disconnected.
    pub fn tell(&self, class: Class, notice: &Notice<'_>) {
        self.state().tell(class, notice);
    }

    /// Queues an event for all clients.
    pub fn publish(&self, event: &OutgoingEvent<'_>) {
        self.state().deliver(event);
    }

    /// Queues an event of an effect, after the events that caused the effect.
    pub fn say(&self, event: OutgoingEvent<'static>) {
        let mut state = self.state();
        match &mut state.held {
            // The list is short: it grows only during one commit.
            Some(held) => held.push(event),
            None => state.deliver(&event),
        }
    }

    /// Passes the events of this session on to the clients of the session at the top.
    pub fn pass_on_to(&self, upstream: Upstream) {
        self.state().upstream = Some(upstream);
    }

    /// Returns the sub-agent that owns this session, if there is one.
    pub fn agent(&self) -> Option<AgentId> {
        let state = self.state();
        state
            .upstream
            .as_ref()
            .map(|upstream| upstream.agent.clone())
    }

    /// Holds back the events of effects until [`Audience::release`].
    pub fn hold(&self) {
        self.state().held.get_or_insert_default();
    }

    /// Drops the events that were held back: what caused them was not stored.
    pub fn drop_held(&self) {
        self.state().held = None;
    }

    pub fn release(&self) {
        let mut state = self.state();
        for held in state.held.take().unwrap_or_default() {
            state.deliver(&held);
        }
    }
}

/// Publishes an ephemeral event from outside the actor.
pub fn say(
    clock: &Clock,
    audience: &Audience,
    session: &SessionId,
    tip: Option<EventId>,
    event: &Ephemeral,
) {
    let head = Head {
        id: clock.id().into(),
        timestamp: clock.now(),
        parent_id: tip,
        agent_id: audience.agent(),
        ephemeral: Some(true),
    };
    match event::write(&head, event) {
        Ok(line) => {
            let class = if event.is_delta() {
                Class::Delta
            } else {
                Class::Event
            };
            audience.say(OutgoingEvent {
                class,
                kind: event.kind(),
                line: line.into(),
                seq: None,
            });
        }
        Err(error) => tracing::error!(%session, %error, "an event could not be written as JSON"),
    }
}

#[cfg(test)]
mod tests;
