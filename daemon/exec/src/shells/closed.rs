//! Remembers for a while how shells were closed, so that a late question gets a true answer.

use std::collections::VecDeque;

use loopd_proto::id::ShellId;

use super::error::Closed;

/// How many closed shells are remembered.
const KEPT: usize = 64;

/// The shells closed last, oldest first.
#[derive(Debug, Default)]
pub(super) struct ClosedShells {
    closed: VecDeque<(ShellId, Closed)>,
}

impl ClosedShells {
    pub(super) fn remember(&mut self, id: ShellId, how: Closed) {
        self.forget(&id);
        self.closed.push_back((id, how));
        while self.closed.len() > KEPT {
            self.closed.pop_front();
        }
    }

    pub(super) fn forget(&mut self, id: &ShellId) {
        self.closed.retain(|(known, _)| known != id);
    }

    pub(super) fn how(&self, id: &ShellId) -> Option<Closed> {
        let found = self.closed.iter().find(|(known, _)| known == id)?;
        Some(found.1)
    }
}
