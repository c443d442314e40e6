//! The conversation for the model, as a pure function of the state.
//!
//! The history may be cut short by a crash, an abort or a fork. The result is always a conversation
//! that a provider accepts: every tool call has exactly one result, directly after the message that
//! asked for it and in the order of the calls.

use std::collections::HashMap;

use loopd_proto::id::ToolCallId;

use super::history::{Entry, History, Stored};
use super::model::{ModelMessage, Part};
use super::state::State;
use super::texts;

/// Builds the message list of the next model request.
pub fn messages(state: &State) -> Vec<ModelMessage> {
    messages_of(state.system.as_deref(), &state.history)
}

/// Builds the message list of a request with this conversation.
pub(crate) fn messages_of(system: Option<&str>, history: &History) -> Vec<ModelMessage> {
    let mut out = Vec::with_capacity(history.iter().len() + 1);
    if let Some(system) = system {
        out.push(ModelMessage::System(system.to_owned()));
    }
    let mut entries = history.iter().peekable();
    while let Some(entry) = entries.next() {
        match entry {
            Entry::User(parts) => out.push(ModelMessage::User(parts.clone())),
            Entry::Assistant(turn) => {
                let mut results: HashMap<&ToolCallId, &String> = HashMap::new();
                let mut images: Vec<(&Option<String>, &Part)> = Vec::new();
                while let Some(Entry::Result { .. } | Entry::Image { .. }) = entries.peek() {
                    match entries.next() {
                        Some(Entry::Result { call, text, .. }) => {
                            results.entry(call).or_insert(text);
                        }
                        Some(Entry::Image { label, part }) => images.push((label, part)),
                        Some(Entry::User(_) | Entry::Assistant(_)) | None => {}
                    }
                }
                if turn.text.is_empty() && turn.calls.is_empty() {
                    continue;
                }
                out.push(ModelMessage::Assistant(turn.clone()));
                for call in &turn.calls {
                    let text = results
                        .get(&call.id)
                        .map_or_else(|| texts::INTERRUPTED.to_owned(), |text| (*text).clone());
                    out.push(ModelMessage::ToolResult {
                        call: call.id.clone(),
                        text,
                    });
                }
                for (label, image) in images {
                    let label = label.clone().map(Part::Text);
                    let parts = label.into_iter().chain([image.clone()]).collect();
                    out.push(ModelMessage::User(parts));
                }
            }
            // A result without the message that asked for it is left out, because no provider
            // accepts one.
            Entry::Result { .. } | Entry::Image { .. } => {}
        }
    }
    out
}

/// Returns how many tokens came into the conversation after the model last answered; `None` if it has
/// not answered yet.
pub fn tokens_since_answer(state: &State) -> Option<u64> {
    let entries = state.history.stored();
    let is_answer = |stored: &Stored| matches!(stored.entry, Entry::Assistant(_));
    let last = entries.iter().rposition(is_answer)?;
    Some(entries.iter().skip(last + 1).map(Stored::tokens).sum())
}
