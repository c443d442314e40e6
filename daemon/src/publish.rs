//! Fans events out to the clients attached to one session.
//!
//! The session's actor publishes what is committed; a running model call publishes its deltas
//! through a clone. Each event is serialised once; its bytes are made once per session and shared
//! by everyone who listens to that session.

pub mod recent;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use loopd_proto::id::{AgentId, SessionId};

use crate::client::{Class, Client, ClientId, Notice};

/// Those who listen to one session.
#[derive(Clone)]
pub struct Audience {
    // Locked only to copy or change short lists.
    state: Arc<Mutex<AudienceState>>,
}

struct AudienceState {
    session: SessionId,
    clients: Vec<Arc<dyn Client>>,
    /// What effects say while the events they follow from are not committed yet.
    held: Option<Vec<OutgoingEvent<'static>>>,
    /// Set in the session of an agent: those who listen to the session at the top hear it, too.
    upstream: Option<Upstream>,
}

/// The session at the top of a tree of agents, as one of them sees it.
#[derive(Clone)]
pub struct Upstream {
    pub session: SessionId,
    pub audience: Audience,
    pub agent: AgentId,
    /// Whether what an agent says is passed on word by word.
    pub streaming: bool,
}

/// One event on its way to those who listen.
#[derive(Debug)]
pub struct OutgoingEvent<'a> {
    pub class: Class,
    pub kind: &'static str,
    pub line: Cow<'a, str>,
}

impl Upstream {
    /// Whether the clients at the top are shown this event of an agent. Its beginning and end they
    /// learn from its parent; that it rests or has failed must not look like the session's own.
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
        ];
        let own = [
            "user.message",
            "system.message",
            "abort",
            "session.usage_info",
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
        self.tell(event.class, &Notice::event(&self.session, &event.line));
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

    fn state(&self) -> std::sync::MutexGuard<'_, AudienceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn join(&self, client: Arc<dyn Client>) {
        let mut state = self.state();
        if !state.clients.iter().any(|known| known.id() == client.id()) {
            state.clients.push(client);
        }
    }

    pub fn leave(&self, id: ClientId) {
        self.state().clients.retain(|client| client.id() != id);
    }

    /// Queues a notice for everyone; who is too slow is cut off by their own queue.
    pub fn tell(&self, class: Class, notice: &Notice<'_>) {
        self.state().tell(class, notice);
    }

    /// Queues an event for everyone.
    pub fn publish(&self, event: &OutgoingEvent<'_>) {
        self.state().deliver(event);
    }

    /// Queues what an effect says, after the events that the effect follows from.
    pub fn say(&self, event: OutgoingEvent<'static>) {
        let mut state = self.state();
        match &mut state.held {
            // Bounded by the time of one commit.
            Some(held) => held.push(event),
            None => state.deliver(&event),
        }
    }

    /// Lets those who listen to the session at the top hear this one, too.
    pub fn pass_on_to(&self, upstream: Upstream) {
        self.state().upstream = Some(upstream);
    }

    /// Names the agent whose session this is.
    pub fn agent(&self) -> Option<AgentId> {
        let state = self.state();
        state
            .upstream
            .as_ref()
            .map(|upstream| upstream.agent.clone())
    }

    /// Keeps back what effects say until [`Audience::release`].
    pub fn hold(&self) {
        self.state().held.get_or_insert_default();
    }

    pub fn release(&self) {
        let mut state = self.state();
        for held in state.held.take().unwrap_or_default() {
            state.deliver(&held);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
