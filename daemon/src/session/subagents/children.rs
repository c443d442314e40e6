//! The child sessions of a session, and what the session hands down to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd_proto::id::SessionId;
use parking_lot::Mutex;

use super::as_child::Inheritance;
use crate::session::{Message, SessionHandle};

/// The child sessions that are live or about to start.
#[derive(Clone, Default)]
pub(super) struct Children(Arc<Mutex<ChildTable>>);

#[derive(Default)]
struct ChildTable {
    live: BTreeMap<SessionId, SessionHandle>,
    /// How many children are starting from an earlier snapshot of the parent.
    starting: usize,
    /// What was handed down last; kept for the children that are starting.
    latest: Option<Inheritance>,
}

impl Children {
    pub(super) fn remove(&self, id: &SessionId) {
        self.0.lock().live.remove(id);
    }

    /// Returns whether there is no child that the parent must hand changes down to.
    pub(super) fn is_empty(&self) -> bool {
        let table = self.0.lock();
        table.live.is_empty() && table.starting == 0
    }

    /// Hands a change down to the live children and to those that clients opened directly, and keeps it
    /// for those that are starting.
    pub(super) fn hand_down(&self, inheritance: Inheritance, opened: Vec<SessionHandle>) {
        let mut table = self.0.lock();
        let others = opened.iter().filter(|it| !table.live.contains_key(it.id()));
        for child in table.live.values().chain(others) {
            let message = Message::Inherit(Box::new(inheritance.clone()));
            if let Err(error) = child.post(message) {
                tracing::warn!(session = %child.id(), %error, "an agent did not learn what its parent has");
            }
        }
        if table.starting > 0 {
            table.latest = Some(inheritance);
        }
    }

    /// Keeps what is handed down from now on, until the guard is dropped.
    pub(super) fn starting(&self) -> Starting {
        self.0.lock().starting += 1;
        Starting(self.clone())
    }

    /// Adds a child that starts from an earlier snapshot of the parent. Returns what the child
    /// inherits: that snapshot, or what was handed down since.
    pub(super) fn take_in(&self, child: &SessionHandle, earlier: &Inheritance) -> Inheritance {
        let mut table = self.0.lock();
        table.live.insert(child.id().clone(), child.clone());
        let latest = table.latest.as_ref();
        let latest = latest.filter(|latest| latest.is_later_than(earlier));
        latest.unwrap_or(earlier).clone()
    }
}

/// A guard that is held while a child may start from an earlier snapshot of the parent.
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
