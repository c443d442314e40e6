//! Commands that take a session back.

use loopd_proto::event::rewind::{RewindMode, RewindTarget};
use loopd_proto::id::RewindId;

/// An order to go back to an earlier point.
#[derive(Debug)]
pub struct RewindOrder {
    pub id: RewindId,
    pub mode: RewindMode,
    pub target: RewindTarget,
    /// The rewind that this one takes back. It has to be the last one.
    pub undoes: Option<RewindId>,
    /// How often the conversation had been taken back when the target was looked up.
    pub rewinds_seen: usize,
}

/// How restoring the files of a rewind ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    Restored {
        restored: u64,
        skipped: u64,
    },
    /// Nothing is taken back.
    Failed {
        error: String,
        /// Whether every file is as it was before.
        rolled_back: bool,
    },
}
