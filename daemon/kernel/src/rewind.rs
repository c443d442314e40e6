//! Which events of the log still count for the conversation after rewinds.
//!
//! A rewind leaves its log as it is. Each rewind says to which position the session went back; what
//! counts then is what counted just before that position, and what came after the rewind. So an undo
//! is a rewind to the place where the other rewind began.

use loopd_proto::event::rewind::{RewindMode, Rewound};
use loopd_proto::id::{RewindId, Seq};

/// The rewinds of a session, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewinds {
    /// Those that took the conversation back.
    turns: Vec<Turnback>,
    last: Option<LastRewind>,
    /// Those that can be undone. The next undo takes the last one.
    undoable: Vec<Undoable>,
}

/// A rewind that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Undoable {
    rewind: LastRewind,
    /// What can be undone again after this one, which is an undo, was undone itself.
    undid: Option<Box<Undoable>>,
}

/// A rewind of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turnback {
    /// The position of the event that records the rewind.
    at: Seq,
    /// The first position that no longer counts.
    to: Seq,
}

/// A rewind as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRewind {
    pub id: RewindId,
    pub mode: RewindMode,
    /// Where the rewind began. The changes that it made to files belong to this position.
    pub began: Seq,
    pub events_removed: u64,
}

/// A range of positions that do not count: from the first to before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenRange {
    pub from: Seq,
    pub to: Seq,
}

impl HiddenRange {
    pub fn has(&self, seq: Seq) -> bool {
        self.from <= seq && seq < self.to
    }
}

impl Rewinds {
    /// Records a rewind whose event is at `at` and which began at `began`.
    pub fn push(&mut self, rewound: &Rewound, at: Seq, began: Seq) {
        if rewound.mode.has_conversation() {
            let to = rewound.target.position;
            self.turns.push(Turnback { at, to });
        }
        let rewind = LastRewind {
            id: rewound.rewind.clone(),
            mode: rewound.mode,
            began,
            events_removed: rewound.events_removed,
        };
        self.last = Some(rewind.clone());
        if let Some(undone) = &rewound.undoes {
            self.undone(undone, rewind, rewound.took_work == Some(true));
        } else if rewound.events_removed > 0 || rewound.restored > 0 {
            let undid = None;
            self.undoable.push(Undoable { rewind, undid });
        }
    }

    /// Records that `undo` took a rewind back. It can be undone itself only if it took work back that
    /// was done after that rewind, and so would be lost. Otherwise the next undo goes one rewind further
    /// back.
    fn undone(&mut self, undone: &RewindId, undo: LastRewind, took_work: bool) {
        let last = self.undoable.pop_if(|last| last.rewind.id == *undone);
        let Some(last) = last else {
            return;
        };
        let has = |part: fn(RewindMode) -> bool| part(undo.mode) || !part(last.rewind.mode);
        if !has(RewindMode::has_conversation) || !has(RewindMode::has_files) {
            // A part of it was undone, and the next undo takes the rest.
            self.undoable.push(last);
        } else if took_work {
            self.undoable.push(Undoable {
                rewind: undo,
                undid: Some(Box::new(last)),
            });
        } else if let Some(undid) = last.undid {
            self.undoable.push(*undid);
        }
    }

    /// Returns the newest rewind.
    pub fn last(&self) -> Option<&LastRewind> {
        self.last.as_ref()
    }

    /// Returns the rewind that the next undo takes back.
    pub fn undoable(&self) -> Option<&LastRewind> {
        self.undoable.last().map(|undoable| &undoable.rewind)
    }

    /// Returns how many times the conversation was taken back.
    pub fn count(&self) -> usize {
        self.turns.len()
    }

    /// Returns what does not count now, the newest range first.
    pub fn hidden(&self) -> Vec<HiddenRange> {
        self.hidden_before(Seq(u64::MAX))
    }

    /// Returns what did not count just before a position, the newest range first.
    pub fn hidden_before(&self, position: Seq) -> Vec<HiddenRange> {
        let mut hidden = Vec::new();
        let mut before = position;
        for turn in self.turns.iter().rev() {
            // What came between belongs to a past that was itself left.
            if turn.at < before {
                hidden.push(HiddenRange {
                    from: turn.to,
                    to: turn.at,
                });
                before = before.min(turn.to);
            }
        }
        hidden
    }
}

/// Returns whether a position is in none of the ranges.
pub fn counts(hidden: &[HiddenRange], seq: Seq) -> bool {
    !hidden.iter().any(|range| range.has(seq))
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
