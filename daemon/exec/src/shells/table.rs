//! The shell ids of a session: open, detached and recently closed. Only `shells` uses it, under its
//! lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopd_proto::id::ShellId;

use super::closed::ClosedShells;
use super::detached::DetachedCommand;
use super::error::CloseReason;
use super::slot::ShellSlot;

/// How many shells one session may have open. An idle shell is closed to make room for a new one.
pub(super) const MAX_SHELLS: usize = 32;

/// The shells of a session by their ids.
#[derive(Default)]
pub(super) struct ShellTable {
    pub(super) slots: BTreeMap<ShellId, Arc<ShellSlot>>,
    pub(super) detached: BTreeMap<ShellId, Arc<DetachedCommand>>,
    pub(super) closed: ClosedShells,
    /// The last number that was used as a shell id.
    last_number: u64,
    pub(super) ended: bool,
}

impl ShellTable {
    /// Returns a number that no open, detached or recently closed shell has as its id.
    pub(super) fn next_name(&mut self) -> ShellId {
        loop {
            self.last_number += 1;
            let name = ShellId::from(self.last_number.to_string());
            let taken = self.slots.contains_key(&name)
                || self.detached.contains_key(&name)
                || self.closed.reason(&name).is_some();
            if !taken {
                return name;
            }
        }
    }

    pub(super) fn known(&self) -> Vec<ShellId> {
        let shells = self.slots.keys().chain(self.detached.keys());
        shells.cloned().collect()
    }

    /// The open shells that do not run in a sandbox.
    pub(super) fn not_sandboxed(&self) -> Vec<ShellId> {
        let slots = self.slots.iter().filter(|(_, slot)| !slot.sandboxed);
        slots.map(|(id, _)| id.clone()).collect()
    }

    /// Closes the idle shell whose last command started first; returns whether there was one.
    pub(super) fn make_room(&mut self) -> bool {
        let mut resting: Vec<(_, ShellId)> = self
            .slots
            .iter()
            .filter(|(_, slot)| !slot.is_busy())
            .filter_map(|(id, slot)| Some((slot.command()?.started_at, id.clone())))
            .collect();
        resting.sort();
        let Some((_, id)) = resting.into_iter().next() else {
            return false;
        };
        self.slots.remove(&id);
        self.closed.remember(id, CloseReason::MadeRoom);
        true
    }
}
