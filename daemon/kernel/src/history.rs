//! The conversation as the log records it, oldest entry first.
//!
//! Each entry carries the position of its event in the log. Nothing refers to an entry by its
//! index: compaction may remove entries at the front, and positions that others hold must stay
//! valid.

use loopd_proto::id::{Seq, ToolCallId};

use super::model::{AssistantTurn, Part};

/// One item of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    User(Vec<Part>),
    Assistant(AssistantTurn),
    Result {
        call: ToolCallId,
        text: String,
        /// An abort or a crash interrupted the call.
        interrupted: bool,
    },
    /// What a tool returned besides its text. It comes after all results of its turn.
    Image {
        label: Option<String>,
        part: Part,
    },
}

/// The entries of a session's conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    entries: Vec<Stored>,
}

/// An entry and the position of its event.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    seq: Seq,
    entry: Entry,
}

impl History {
    /// Adds an entry of an event. Events come in the order of the log.
    pub(crate) fn push(&mut self, seq: Seq, entry: Entry) {
        self.entries.push(Stored { seq, entry });
    }

    /// Removes the entries of events at a position of the log and after it.
    pub(crate) fn take_back_to(&mut self, seq: Seq) {
        let first = self.entries.partition_point(|stored| stored.seq < seq);
        self.entries.truncate(first);
    }

    /// Returns all entries, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> + ExactSizeIterator {
        self.entries.iter().map(|stored| &stored.entry)
    }

    /// Returns the entries of events after a position in the log, oldest first.
    pub fn after(&self, seq: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        let first = self.entries.partition_point(|stored| stored.seq <= seq);
        self.entries.iter().skip(first).map(|stored| &stored.entry)
    }

    /// Returns the last thing that the model said.
    pub(crate) fn last_assistant_mut(&mut self) -> Option<&mut AssistantTurn> {
        let mut newest = self.entries.iter_mut().rev();
        newest.find_map(|stored| match &mut stored.entry {
            Entry::Assistant(turn) => Some(turn),
            Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        })
    }

    /// Returns the text of the last thing that the model said.
    pub fn last_text(&self) -> Option<&str> {
        let mut newest = self.iter().rev();
        newest.find_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn.text.as_str()),
            Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        })
    }

    /// Returns the position in the log of the last user message.
    pub fn last_user(&self) -> Option<Seq> {
        let mut newest = self.entries.iter().rev();
        let found = newest.find(|stored| matches!(stored.entry, Entry::User(_)));
        found.map(|stored| stored.seq)
    }
}

#[cfg(test)]
mod tests;
