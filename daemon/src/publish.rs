//! Fans events out to the connections attached to one session.
//!
//! The session's actor publishes what is committed; a running model call publishes its deltas
//! through a clone. Each event is serialised once and shared by everyone.

pub mod recent;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use loopd_proto::id::SessionId;
use loopd_proto::wire::{Class, Peer, PeerId};

/// Those who listen to one session.
#[derive(Clone, Default)]
pub struct Audience {
    // Held only to copy or change a short list.
    peers: Arc<Mutex<Vec<Peer>>>,
}

impl Audience {
    fn peers(&self) -> std::sync::MutexGuard<'_, Vec<Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn join(&self, peer: Peer) {
        let mut peers = self.peers();
        if !peers.iter().any(|known| known.id() == peer.id()) {
            peers.push(peer);
        }
    }

    pub fn leave(&self, id: PeerId) {
        self.peers().retain(|peer| peer.id() != id);
    }

    /// Queues a message for everyone; who is too slow is cut off by their own queue.
    pub fn send(&self, class: Class, message: &Bytes) {
        for peer in self.peers().iter() {
            // A closed peer leaves the audience when its connection's end is handled.
            peer.push(class, message.clone()).ok();
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
