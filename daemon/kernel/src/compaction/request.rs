//! The request for a summary: the conversation as the model knows it, and what it is asked for.

use crate::context;
use crate::history::{Entry, History};
use crate::model::{ModelMessage, Part};
use crate::prune;
use crate::state::State;
use crate::texts;

/// The tokens of what the model is asked, about.
const PROMPT_TOKENS: u64 = 700;

/// A result with fewer tokens stays as it is.
const LEAST_TOKENS: u64 = 200;

/// If less than one part in so many fits, there is nothing to summarise.
const LEAST_SHARE: u64 = 20;

/// The request for a summary.
#[derive(Debug)]
pub struct SummaryRequest {
    pub messages: Vec<ModelMessage>,
    /// How many messages of the conversation did not fit.
    pub left_out: u64,
}

/// The conversation that is summarised, apart from the session, which goes on meanwhile.
#[derive(Debug, Clone)]
pub struct Summarisable {
    system: Option<String>,
    history: History,
}

impl Summarisable {
    pub fn of(state: &State) -> Self {
        Self {
            system: state.system.clone(),
            history: state.history.clone(),
        }
    }

    /// Returns the messages of the request for a summary that takes the place of the conversation. See
    /// [`Self::question`].
    pub fn request(&self, room: u64, instructions: &[String]) -> Option<SummaryRequest> {
        self.question(room, texts::compaction::prompt(instructions))
    }

    /// Returns the messages of a request that ends with a question about the conversation. `room` is how many tokens the conversation may
    /// have there, by our own count. The request begins with the same bytes as the last one of the turn,
    /// as long as the conversation fits. `None` if next to nothing of the conversation fits.
    pub fn question(&self, room: u64, asked: String) -> Option<SummaryRequest> {
        let room = room.saturating_sub(PROMPT_TOKENS);
        let system = self.system.as_deref();
        let (mut messages, left_out) = if self.history.tokens() <= room {
            (context::messages_of(system, &self.history), 0)
        } else {
            let (history, left_out) = fitting(&self.history, room)?;
            (context::messages_of(system, &history), left_out)
        };
        messages.push(ModelMessage::User(vec![Part::Text(asked)]));
        Some(SummaryRequest { messages, left_out })
    }
}

/// Makes a conversation fit: shortens all long results, then leaves out what is oldest. Returns also how
/// many messages were left out; `None` if next to nothing is left.
fn fitting(history: &History, room: u64) -> Option<(History, u64)> {
    let mut short = history.clone();
    for stored in history.stored() {
        if let Entry::Result { text, .. } = &stored.entry
            && stored.tokens() >= LEAST_TOKENS
        {
            let whole = prune::WholeText::Unsaved("it is in the log".to_owned());
            short.shorten(stored.seq, prune::shortened(text, &whole));
        }
    }
    let total = short.tokens();
    if total <= room {
        return Some((short, 0));
    }
    let mut kept = 0;
    let entries = short.stored();
    let first = entries.iter().rposition(|stored| {
        kept += stored.tokens();
        kept > room
    });
    let Some(first) = first else {
        return Some((short, 0));
    };
    // Results without the message that asked for them are left out when the request is made.
    let rest = entries.iter().skip(first + 1);
    let rest = rest.skip_while(|stored| match stored.entry {
        Entry::Result { .. } | Entry::Image { .. } => true,
        Entry::User(_) | Entry::Assistant(_) => false,
    });
    let (count, tokens) = rest.fold((0, 0), |(count, tokens), stored| {
        (count + 1, tokens + stored.tokens())
    });
    if count == 0 || tokens * LEAST_SHARE < total {
        return None;
    }
    let left_out = entries.len() as u64 - count;
    let through = entries.get(first).map(|stored| stored.seq)?;
    let note = Part::Text(texts::compaction::EARLIER_LEFT_OUT.to_owned());
    short.replace_through(through, Entry::User(vec![note]));
    Some((short, left_out))
}
