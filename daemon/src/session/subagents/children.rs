//! The child sessions of a session, and what their parent hands down to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd_proto::id::SessionId;
use parking_lot::Mutex;

use super::parent::Inheritance;
use crate::session::{Message, SessionHandle};

/// The child sessions that live now or are on their way.
#[derive(Clone, Default)]
pub(super) struct Children(Arc<Mutex<ChildTable>>);

#[derive(Default)]
struct ChildTable {
    live: BTreeMap<SessionId, SessionHandle>,
    /// How many may be made from what the parent had at an earlier moment.
    starting: usize,
    /// What was handed down last, for those.
    latest: Option<Inheritance>,
}

impl Children {
    pub(super) fn remove(&self, id: &SessionId) {
        self.0.lock().live.remove(id);
    }

    /// Whether anybody wants to know what the parent hands down.
    pub(super) fn is_empty(&self) -> bool {
        let table = self.0.lock();
        table.live.is_empty() && table.starting == 0
    }

    /// Hands something down to live children, and keeps it for those on their way.
    pub(super) fn hand_down(&self, inheritance: Inheritance) {
        let mut table = self.0.lock();
        for child in table.live.values() {
            let message = Message::Inherit(Box::new(inheritance.clone()));
            if let Err(error) = child.post(message) {
                tracing::warn!(session = %child.id(), %error, "an agent did not learn what its parent has");
            }
        }
        if table.starting > 0 {
            table.latest = Some(inheritance);
        }
    }

    /// From now on what is handed down is kept, until the guard is dropped.
    pub(super) fn starting(&self) -> Starting {
        self.0.lock().starting += 1;
        Starting(self.clone())
    }

    /// Takes in a child that is made from what the parent had at an earlier moment. Returns what the
    /// child is to be given: that, or what was handed down since.
    pub(super) fn take_in(&self, child: &SessionHandle, earlier: &Inheritance) -> Inheritance {
        let mut table = self.0.lock();
        table.live.insert(child.id().clone(), child.clone());
        let latest = table.latest.as_ref();
        let latest = latest.filter(|latest| latest.is_later_than(earlier));
        latest.unwrap_or(earlier).clone()
    }
}

/// Held while a child may be made from what the parent had when this was made.
pub(super) struct Starting(Children);

impl Drop for Starting {
    fn drop(&mut self) {
        let mut table = self.0.0.lock();
        table.starting -= 1;
        if table.starting == 0 {
            table.latest = None;
        }
    }
}
