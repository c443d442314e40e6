//! What each turn changed, for the list of points that a session can go back to.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use loopd_proto::id::Seq;

use super::Captures;
use super::journal::Journal;

/// What one turn changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnChanges {
    pub files: BTreeSet<PathBuf>,
    pub added: u64,
    pub removed: u64,
}

/// What the turns of a session changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackedTurns {
    /// The position from which on changes are kept.
    pub begins: Seq,
    /// By the position of the user message, or of the rewind, that the changes belong to.
    pub turns: BTreeMap<Seq, TurnChanges>,
}

impl Captures {
    /// Reads what each turn changed. Blocks.
    pub fn turns(&self) -> io::Result<TrackedTurns> {
        let Some(inner) = &self.inner else {
            return Ok(TrackedTurns::default());
        };
        let recorded = inner.journal.lock().read()?;
        let mut tracked = TrackedTurns {
            begins: recorded.begins.unwrap_or_default(),
            turns: BTreeMap::new(),
        };
        for record in recorded.with_interrupted() {
            let turn = tracked.turns.entry(record.turn).or_default();
            for change in record.changes {
                // Folders come and go with the files in them.
                if change.before.is_folder() || change.after.is_folder() {
                    continue;
                }
                turn.files.insert(change.path);
                turn.added += change.added;
                turn.removed += change.removed;
            }
            let missed = record.missed.into_iter().map(|missed| missed.path);
            turn.files.extend(missed);
        }
        Ok(tracked)
    }

    /// Says that changes are kept from a position of the log on only. Blocks.
    pub fn begin_at(session_folder: &std::path::Path, position: Seq) -> io::Result<()> {
        let path = session_folder.join("rewind").join("changes.jsonl");
        Journal::new(path).begins(position)
    }
}
