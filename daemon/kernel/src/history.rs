//! The conversation as the log records it, oldest entry first.
//!
//! Each entry carries the position of its event in the log. Nothing refers to an entry by its
//! index: compaction removes entries at the front, and positions that others hold must stay valid.

use std::sync::OnceLock;

use loopd_proto::id::{Seq, ToolCallId};

use super::model::{AssistantTurn, Part};
use super::{texts, tokens};

/// The tokens that a message takes besides its text, and a call besides its name and arguments.
const MESSAGE_TOKENS: u64 = 4;
const CALL_TOKENS: u64 = 8;

/// The tokens of an image. Vendors count them by their size, up to about twice as many.
const IMAGE_TOKENS: u64 = 1_000;

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
        /// The text is only the beginning and the end of what the log has.
        pruned: bool,
    },
    /// What a tool returned besides its text. It comes after all results of its turn.
    Image {
        label: Option<String>,
        part: Part,
    },
}

impl Entry {
    /// Whether it has an image or a document.
    pub(crate) fn has_file(&self) -> bool {
        let is_file = |part: &Part| match part {
            Part::Text(_) => false,
            Part::Image { .. } | Part::Document { .. } => true,
        };
        match self {
            Self::User(parts) => parts.iter().any(is_file),
            Self::Image { part, .. } => is_file(part),
            Self::Assistant(_) | Self::Result { .. } => false,
        }
    }

    /// Counts the tokens of the entry in a request.
    fn count(&self) -> u64 {
        match self {
            Self::User(parts) => MESSAGE_TOKENS + parts.iter().map(of_part).sum::<u64>(),
            Self::Assistant(turn) => {
                let calls = turn.calls.iter().map(|call| {
                    CALL_TOKENS
                        + tokens::count(&call.name)
                        + tokens::count(&call.arguments.to_string())
                });
                MESSAGE_TOKENS + tokens::count(&turn.text) + calls.sum::<u64>()
            }
            Self::Result { text, .. } => MESSAGE_TOKENS + tokens::count(text),
            Self::Image { label, part } => {
                let label = label.as_deref().map_or(0, tokens::count);
                MESSAGE_TOKENS + label + of_part(part)
            }
        }
    }
}

fn of_part(part: &Part) -> u64 {
    match part {
        Part::Text(text) => tokens::count(text),
        Part::Image { .. } => IMAGE_TOKENS,
        // Four bytes of base64 are three bytes of the file, and most of those are not text.
        Part::Document { base64, .. } => (base64.len() as u64).div_ceil(16),
    }
}

/// Replaces an image or a document by a note for the model.
fn leave_out(part: &mut Part) {
    let note = match part {
        Part::Text(_) => return,
        Part::Image { .. } => texts::room::IMAGE_REFUSED,
        Part::Document { .. } => texts::room::DOCUMENT_REFUSED,
    };
    *part = Part::Text(note.to_owned());
}

/// The entries of a session's conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    entries: Vec<Stored>,
}

/// An entry and the position of its event.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub seq: Seq,
    pub entry: Entry,
    counted: Counted,
}

impl Stored {
    fn new(seq: Seq, entry: Entry) -> Self {
        Self {
            seq,
            entry,
            counted: Counted::default(),
        }
    }

    /// Returns how many tokens the entry has. They are counted when they are asked for first.
    pub fn tokens(&self) -> u64 {
        *self.counted.0.get_or_init(|| self.entry.count())
    }
}

/// The tokens of an entry, once they were counted. They follow from the entry, so that it does not
/// matter for a comparison whether they were.
#[derive(Debug, Clone, Default)]
struct Counted(OnceLock<u64>);

impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl History {
    /// Adds an entry of an event. Events come in the order of the log.
    pub(crate) fn push(&mut self, seq: Seq, entry: Entry) {
        self.entries.push(Stored::new(seq, entry));
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns whether the last thing that the model said has this call.
    pub(crate) fn last_has_call(&self, id: &ToolCallId) -> bool {
        let mut newest = self.iter().rev();
        let last = newest.find_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn),
            Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        });
        last.is_some_and(|turn| turn.calls.iter().any(|call| call.id == *id))
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

    /// Returns all entries with their positions, oldest first.
    pub fn stored(&self) -> &[Stored] {
        &self.entries
    }

    /// Returns the entries of events after a position in the log, oldest first.
    pub fn after(&self, seq: Seq) -> impl DoubleEndedIterator<Item = &Entry> {
        self.stored_after(seq).iter().map(|stored| &stored.entry)
    }

    fn stored_after(&self, seq: Seq) -> &[Stored] {
        let first = self.entries.partition_point(|stored| stored.seq <= seq);
        self.entries.get(first..).unwrap_or_default()
    }

    /// Returns how many tokens all entries have.
    pub fn tokens(&self) -> u64 {
        self.entries.iter().map(Stored::tokens).sum()
    }

    /// Returns how many tokens the entries of events after a position in the log have.
    pub fn tokens_after(&self, seq: Seq) -> u64 {
        self.stored_after(seq).iter().map(Stored::tokens).sum()
    }

    /// Replaces all entries through a position in the log by one.
    pub(crate) fn replace_through(&mut self, through: Seq, entry: Entry) {
        let end = self.entries.partition_point(|stored| stored.seq <= through);
        self.entries.splice(..end, [Stored::new(through, entry)]);
    }

    /// Replaces the text of the result at a position in the log by a shorter one.
    pub(crate) fn shorten(&mut self, at: Seq, shorter: String) {
        let first = self.entries.partition_point(|stored| stored.seq < at);
        let same = self.entries.iter_mut().skip(first);
        let mut same = same.take_while(|stored| stored.seq == at);
        let found = same.find(|stored| matches!(stored.entry, Entry::Result { .. }));
        if let Some(stored) = found
            && let Entry::Result { text, pruned, .. } = &mut stored.entry
        {
            (*text, *pruned) = (shorter, true);
            stored.counted = Counted::default();
        }
    }

    /// Replaces the images and documents at a position in the log by notes.
    pub(crate) fn leave_out_files(&mut self, at: Seq) {
        let first = self.entries.partition_point(|stored| stored.seq < at);
        let same = self.entries.iter_mut().skip(first);
        for stored in same.take_while(|stored| stored.seq == at) {
            match &mut stored.entry {
                Entry::User(parts) => parts.iter_mut().for_each(leave_out),
                Entry::Image { part, .. } => leave_out(part),
                Entry::Assistant(_) | Entry::Result { .. } => continue,
            }
            stored.counted = Counted::default();
        }
    }

    /// Changes the last thing that the model said; `change` says whether it did.
    pub(crate) fn change_last_assistant(
        &mut self,
        change: impl FnOnce(&mut AssistantTurn) -> bool,
    ) {
        let mut newest = self.entries.iter_mut().rev();
        let last = newest.find_map(|stored| match &mut stored.entry {
            Entry::Assistant(turn) => Some((turn, &mut stored.counted)),
            Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        });
        if let Some((turn, counted)) = last
            && change(turn)
        {
            *counted = Counted::default();
        }
    }

    /// Returns the text of the last thing that the model said.
    pub fn last_text(&self) -> Option<&str> {
        let mut newest = self.iter().rev();
        newest.find_map(|entry| match entry {
            Entry::Assistant(turn) => Some(turn.text.as_str()),
            Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
        })
    }

    /// Returns whether the conversation ends with something that the model has not answered.
    pub fn waits_for_model(&self) -> bool {
        match self.iter().last() {
            Some(Entry::User(_) | Entry::Result { .. } | Entry::Image { .. }) => true,
            Some(Entry::Assistant(_)) | None => false,
        }
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
