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
    /// What the target was looked up in.
    pub seen: SeenHistory,
}

/// The history as it was when a target was looked up.
#[derive(Debug, Clone, Copy)]
pub struct SeenHistory {
    /// How often the conversation had been taken back.
    pub rewinds: usize,
    /// How many visible events counted.
    pub visible: u64,
    /// How many of them the rewind takes back.
    pub removed: u64,
}

/// How restoring the files of a rewind ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    Restored {
        restored: u64,
        skipped: u64,
        /// The files that were left as they are, or the first of them.
        left: Vec<String>,
    },
    /// Nothing is taken back.
    Failed {
        error: String,
        /// Whether every file is as it was before.
        rolled_back: bool,
    },
}
