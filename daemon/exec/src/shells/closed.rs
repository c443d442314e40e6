//! Remembers why recent shells were closed, so that a later tool call gets an exact error.

use std::collections::VecDeque;

use loopd_proto::id::ShellId;

use super::error::CloseReason;

/// How many closed shells are remembered.
const KEPT: usize = 64;

/// The most recently closed shells, oldest first.
#[derive(Debug, Default)]
pub(super) struct ClosedShells {
    closed: VecDeque<(ShellId, CloseReason)>,
}

impl ClosedShells {
    pub(super) fn remember(&mut self, id: ShellId, reason: CloseReason) {
        self.forget(&id);
        self.closed.push_back((id, reason));
        while self.closed.len() > KEPT {
            self.closed.pop_front();
        }
    }

    pub(super) fn forget(&mut self, id: &ShellId) {
        self.closed.retain(|(known, _)| known != id);
    }

    pub(super) fn reason(&self, id: &ShellId) -> Option<CloseReason> {
        let found = self.closed.iter().find(|(known, _)| known == id)?;
        Some(found.1)
    }
}
