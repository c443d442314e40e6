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
    // Locked only to copy or change short lists.
    hall: Arc<Mutex<Hall>>,
}

#[derive(Default)]
struct Hall {
    peers: Vec<Peer>,
    /// What effects say while the events they follow from are not committed yet.
    held: Option<Vec<(Class, Bytes)>>,
}

impl Hall {
    fn send(&self, class: Class, message: &Bytes) {
        for peer in &self.peers {
            // A closed peer leaves the audience when its connection's end is handled.
            peer.push(class, message.clone()).ok();
        }
    }
}

impl Audience {
    fn hall(&self) -> std::sync::MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn join(&self, peer: Peer) {
        let mut hall = self.hall();
        if !hall.peers.iter().any(|known| known.id() == peer.id()) {
            hall.peers.push(peer);
        }
    }

    pub fn leave(&self, id: PeerId) {
        self.hall().peers.retain(|peer| peer.id() != id);
    }

    /// Queues a message for everyone; who is too slow is cut off by their own queue.
    pub fn send(&self, class: Class, message: &Bytes) {
        self.hall().send(class, message);
    }

    /// Queues what an effect says, after the events that the effect follows from.
    pub fn say(&self, class: Class, message: Bytes) {
        let mut hall = self.hall();
        match &mut hall.held {
            // Bounded by the time of one commit.
            Some(held) => held.push((class, message)),
            None => hall.send(class, &message),
        }
    }

    /// Keeps back what effects say until [`Audience::release`].
    pub fn hold(&self) {
        self.hall().held.get_or_insert_default();
    }

    pub fn release(&self) {
        let mut hall = self.hall();
        for (class, message) in hall.held.take().unwrap_or_default() {
            hall.send(class, &message);
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
