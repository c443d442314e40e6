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
}

/// A rewind of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turnback {
    /// The position of the event that records the rewind.
    at: Seq,
    /// The first position that no longer counts.
    to: Seq,
}

/// The newest rewind, which can be undone.
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
        self.last = Some(LastRewind {
            id: rewound.rewind.clone(),
            mode: rewound.mode,
            began,
            events_removed: rewound.events_removed,
        });
    }

    /// Returns the rewind that can be undone.
    pub fn last(&self) -> Option<&LastRewind> {
        self.last.as_ref()
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
