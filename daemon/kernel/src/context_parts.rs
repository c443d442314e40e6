//! What takes how much of the context: the parts of the next request by where they come from.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use loopd_proto::id::{Seq, ToolCallId};
use serde_json::Value;

use super::history::{Entry, Stored};
use super::model::{Part, ToolCall};
use super::state::State;

/// The tags around the instructions of users and projects in the system message.
const INSTRUCTIONS: (&str, &str) = ("<custom_instructions>", "</custom_instructions>");

/// The tools whose results come from somewhere else than the tool itself.
const SKILL: &str = "skill";
const TASK: &str = "task";

/// Where a part of the conversation comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartSource {
    User,
    Assistant,
    /// The calls of a tool and their results.
    Tool(String),
    /// What a skill told the model.
    Skill(String),
    /// What agents of a type were told and answered.
    Subagent(String),
}

/// One part of the conversation: its messages of one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartTokens {
    pub messages: u64,
    pub tokens: u64,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageTokens {
    pub seq: Seq,
    pub source: PartSource,
    /// The beginning of its text, in one line.
    pub shown: String,
    pub tokens: u64,
}

/// Returns the parts of the conversation by their source.
pub fn parts(state: &State) -> BTreeMap<PartSource, PartTokens> {
    let mut parts: BTreeMap<PartSource, PartTokens> = BTreeMap::new();
    for (stored, source) in with_sources(state) {
        let part = parts.entry(source).or_default();
        part.messages += 1;
        part.tokens += stored.tokens();
    }
    parts
}

/// Returns the messages with the most tokens, the largest first.
pub fn heaviest(state: &State, most: usize) -> Vec<MessageTokens> {
    let mut all: Vec<_> = with_sources(state).collect();
    // Of equal ones the newer one comes first: it stays longer.
    all.sort_by_key(|(stored, _)| std::cmp::Reverse((stored.tokens(), stored.seq)));
    let all = all.into_iter().take(most);
    all.map(|(stored, source)| MessageTokens {
        seq: stored.seq,
        source,
        shown: shown(&stored.entry),
        tokens: stored.tokens(),
    })
    .collect()
}

/// Returns the instructions of users and projects in a system message.
pub fn instructions(system: &str) -> Option<&str> {
    let from = system.find(INSTRUCTIONS.0)?;
    let to = system.rfind(INSTRUCTIONS.1)? + INSTRUCTIONS.1.len();
    system.get(from..to)
}

fn with_sources(state: &State) -> impl Iterator<Item = (&Stored, PartSource)> {
    let mut calls: HashMap<&ToolCallId, &ToolCall> = HashMap::new();
    let mut last_tool = PartSource::Assistant;
    state.history.stored().iter().map(move |stored| {
        let source = match &stored.entry {
            Entry::User(_) => PartSource::User,
            Entry::Assistant(turn) => {
                calls.extend(turn.calls.iter().map(|call| (&call.id, call)));
                PartSource::Assistant
            }
            Entry::Result { call, .. } => {
                let call = calls.get(call);
                last_tool = call.map_or(PartSource::Assistant, |call| source_of(call));
                last_tool.clone()
            }
            Entry::Image { .. } => last_tool.clone(),
        };
        (stored, source)
    })
}

fn source_of(call: &ToolCall) -> PartSource {
    let argument = |name: &str| {
        let value = call.arguments.get(name).and_then(Value::as_str);
        value.unwrap_or("unknown").to_owned()
    };
    match call.name.as_str() {
        SKILL => PartSource::Skill(argument("skill")),
        TASK => PartSource::Subagent(argument("agent_type")),
        other => PartSource::Tool(other.to_owned()),
    }
}

/// How many characters of a message are shown.
const SHOWN_CHARS: usize = 60;

fn shown(entry: &Entry) -> String {
    let text = match entry {
        Entry::User(parts) => parts.iter().find_map(|part| match part {
            Part::Text(text) => Some(without_time(text)),
            Part::Image { .. } | Part::Document { .. } => None,
        }),
        Entry::Assistant(turn) if turn.text.trim().is_empty() => {
            let names: Vec<&str> = turn.calls.iter().map(|call| call.name.as_str()).collect();
            return format!("calls {}", names.join(", "));
        }
        Entry::Assistant(turn) => Some(turn.text.as_str()),
        Entry::Result { text, .. } => Some(text.as_str()),
        Entry::Image { .. } => None,
    };
    let words = text.unwrap_or("an image").split_whitespace();
    let line = words.take(SHOWN_CHARS).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(&line)),
        None => line,
    }
}

/// Returns what a person wrote, without what was put before it for the model.
pub fn without_time(text: &str) -> &str {
    let own = text.split_once("</current_datetime>");
    own.map_or(text, |(_, own)| own).trim()
}
