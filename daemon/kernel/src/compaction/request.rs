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

    /// Returns the messages of the request for a summary. `room` is how many tokens the conversation may
    /// have there, by our own count. The request begins with the same bytes as the last one of the turn,
    /// as long as the conversation fits.
    pub fn messages(&self, room: u64, instructions: &[String]) -> Vec<ModelMessage> {
        let room = room.saturating_sub(PROMPT_TOKENS);
        let system = self.system.as_deref();
        let mut messages = if self.history.tokens() <= room {
            context::messages_of(system, &self.history)
        } else {
            context::messages_of(system, &fitting(&self.history, room))
        };
        let asked = texts::compaction::prompt(instructions);
        messages.push(ModelMessage::User(vec![Part::Text(asked)]));
        messages
    }
}

/// Makes a conversation fit: shortens all long results, then leaves out what is oldest.
fn fitting(history: &History, room: u64) -> History {
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
        return short;
    }
    let mut kept = 0;
    let entries = short.stored();
    // Results without the message that asked for them are left out when the request is made.
    let first = entries.iter().rposition(|stored| {
        kept += stored.tokens();
        kept > room
    });
    let through = first.and_then(|first| entries.get(first));
    if let Some(through) = through.map(|stored| stored.seq) {
        short.replace_through(
            through,
            Entry::User(vec![Part::Text(
                texts::compaction::EARLIER_LEFT_OUT.to_owned(),
            )]),
        );
    }
    short
}
