//! Fans events out to the connections attached to one session.
//!
//! The session's actor publishes what is committed; a running model call publishes its deltas
//! through a clone. Each event is serialised once and shared by everyone.

pub mod recent;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use loopd_proto::id::{AgentId, SessionId};
use loopd_proto::wire::{Class, Peer, PeerId};

/// Those who listen to one session.
#[derive(Clone, Default)]
pub struct Audience {
    // Locked only to copy or change short lists.
    state: Arc<Mutex<AudienceState>>,
}

#[derive(Default)]
struct AudienceState {
    peers: Vec<Peer>,
    /// What effects say while the events they follow from are not committed yet.
    held: Option<Vec<Held>>,
    /// Set in the session of an agent: those who listen to the session at the top hear it, too.
    upstream: Option<Upstream>,
}

/// What waits for a commit: for those who listen here, and for those at the top.
struct Held {
    class: Class,
    here: Option<Bytes>,
    above: Option<Bytes>,
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
#[derive(Debug, Clone, Copy)]
pub struct OutgoingEvent<'a> {
    pub session: &'a SessionId,
    pub class: Class,
    pub kind: &'a str,
    pub line: &'a str,
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
    fn send(&self, class: Class, message: &Bytes) {
        for peer in &self.peers {
            // A closed peer leaves the audience when its connection's end is handled.
            peer.push(class, message.clone()).ok();
        }
    }

    fn framed(&self, event: &OutgoingEvent<'_>) -> Held {
        let upstream = self.upstream.as_ref().filter(|up| up.passes(event));
        Held {
            class: event.class,
            here: (!self.peers.is_empty()).then(|| frame(event.session, event.line)),
            above: upstream.map(|up| frame(&up.session, event.line)),
        }
    }

    fn deliver(&self, held: &Held) {
        if let Some(here) = &held.here {
            self.send(held.class, here);
        }
        if let (Some(above), Some(upstream)) = (&held.above, &self.upstream) {
            upstream.audience.send(held.class, above);
        }
    }
}

impl Audience {
    fn state(&self) -> std::sync::MutexGuard<'_, AudienceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn join(&self, peer: Peer) {
        let mut state = self.state();
        if !state.peers.iter().any(|known| known.id() == peer.id()) {
            state.peers.push(peer);
        }
    }

    pub fn leave(&self, id: PeerId) {
        self.state().peers.retain(|peer| peer.id() != id);
    }

    /// Queues a message for everyone; who is too slow is cut off by their own queue.
    pub fn send(&self, class: Class, message: &Bytes) {
        self.state().send(class, message);
    }

    /// Queues an event for everyone.
    pub fn publish(&self, event: &OutgoingEvent<'_>) {
        let state = self.state();
        let framed = state.framed(event);
        state.deliver(&framed);
    }

    /// Queues what an effect says, after the events that the effect follows from.
    pub fn say(&self, event: &OutgoingEvent<'_>) {
        let mut state = self.state();
        let framed = state.framed(event);
        match &mut state.held {
            // Bounded by the time of one commit.
            Some(held) => held.push(framed),
            None => state.deliver(&framed),
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

/// Wraps an event's line into the notification that carries it.
pub fn frame(session: &SessionId, line: &str) -> Bytes {
    let id = serde_json::to_string(session.as_str()).unwrap_or_default();
    let mut frame = String::with_capacity(line.len() + id.len() + 80);
    frame.push_str(r#"{"jsonrpc":"2.0","method":"session.event","params":{"sessionId":"#);
    frame.push_str(&id);
    frame.push_str(r#","event":"#);
    frame.push_str(line);
    frame.push_str("}}");
    Bytes::from(frame)
}
