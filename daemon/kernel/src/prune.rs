//! Which old results of tools are shortened to make room, and to what.
//!
//! Pruning changes what the model has read before, so that its provider has to read the conversation
//! again from there on. Hence it happens in steps: nothing is shortened before a good part of the
//! window can be won at once.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use loopd_proto::id::{Seq, ToolCallId};

use super::history::{Entry, Stored};
use super::state::State;
use super::texts;

/// The newest results keep their texts, up to so many tokens and three tenths of the window.
const NEWEST_KEPT: u64 = 40_000;

/// A result with fewer tokens stays as it is.
const LEAST_TOKENS: u64 = 400;

/// How many tokens a shortened result has, about.
const SHORT_TOKENS: u64 = 220;

/// How many characters of a shortened result are kept at its beginning and at its end.
const HEAD_CHARS: usize = 400;
const TAIL_CHARS: usize = 200;

/// The tools whose results are never shortened: what a skill says holds until the end, and what a
/// person has answered cannot be asked again.
const EXEMPT: [&str; 6] = [
    "skill",
    "ask_user",
    "exit_plan_mode",
    "todowrite",
    "todoread",
    "task_complete",
];

/// Returns the results to shorten now, oldest first; none if that would win less than a tenth of the
/// window. `limit` is the most tokens that a request may have, by our own count.
pub fn candidates(state: &State, limit: u64) -> Vec<Seq> {
    let entries = state.history.stored();
    let is_answer = |stored: &Stored| matches!(stored.entry, Entry::Assistant(_));
    // The model has not read what came after its last message.
    let read = entries.iter().rposition(is_answer).unwrap_or(0);
    let names = tool_names(entries);
    let kept = NEWEST_KEPT.min(limit / 10 * 3);
    let (mut newest, mut won, mut found) = (0, 0, Vec::new());
    for (at, stored) in entries.iter().enumerate().rev() {
        let Entry::Result { call, pruned, .. } = &stored.entry else {
            continue;
        };
        let tokens = stored.tokens();
        let is_new = at > read || newest < kept;
        newest += tokens;
        let exempt = names.get(call).is_some_and(|name| EXEMPT.contains(name));
        if !is_new && !pruned && !exempt && tokens >= LEAST_TOKENS {
            won += tokens - SHORT_TOKENS;
            found.push(stored.seq);
        }
    }
    if won < (limit / 10).max(1) {
        return Vec::new();
    }
    found.reverse();
    found
}

/// Returns the names of the tools by their calls. A later call of the same id hides an earlier one,
/// which at worst is kept.
fn tool_names(entries: &[Stored]) -> HashMap<&ToolCallId, &str> {
    let turns = entries.iter().filter_map(|stored| match &stored.entry {
        Entry::Assistant(turn) => Some(turn),
        Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
    });
    let calls = turns.flat_map(|turn| &turn.calls);
    calls.map(|call| (&call.id, call.name.as_str())).collect()
}

/// Where the whole text of a result is that was shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WholeText {
    /// In this file.
    File(String),
    /// It could not be saved, for this reason.
    Unsaved(String),
}

/// Returns the beginning and the end of a text, with its size and where the whole is in between.
pub fn shortened(text: &str, whole: &WholeText) -> String {
    let head = text.char_indices().nth(HEAD_CHARS);
    let head = head.map_or(text, |(end, _)| text.get(..end).unwrap_or(text));
    let tail = text.char_indices().rev().nth(TAIL_CHARS - 1);
    let tail = tail.map_or("", |(start, _)| text.get(start..).unwrap_or_default());
    let left_out = text.len().saturating_sub(head.len() + tail.len());
    let note = texts::left_out(left_out, text.len(), whole);
    format!("{head}\n{note}\n{tail}")
}
