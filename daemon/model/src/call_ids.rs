//! Makes the tool calls of a reply usable: ids that are unique in the conversation, arguments as
//! JSON.
//!
//! `vendor_api` and `replay` call it. Servers leave ids out, repeat them, and send arguments that are
//! empty or broken.

use std::collections::HashSet;

use serde_json::Value;

use loopd_proto::id::ToolCallId;

use loopd_kernel::model::{ModelMessage, ModelRequest, ToolCall};

/// Replaces the ids that are empty or taken; the others stay as the server gave them.
///
/// A new id names the position of the turn in the conversation, so the same reply to the same
/// request gets the same ids.
pub(super) fn make_unique(calls: &mut [ToolCall], request: &ModelRequest) {
    let mut taken: HashSet<ToolCallId> = HashSet::new();
    for message in &request.messages {
        if let ModelMessage::Assistant(turn) = message {
            taken.extend(turn.calls.iter().map(|call| call.id.clone()));
        }
    }
    let position = request.messages.len();
    for call in calls {
        let mut number = 0;
        while call.id.as_str().is_empty() || taken.contains(&call.id) {
            call.id = ToolCallId::from(format!("call_{position}_{number}"));
            number += 1;
        }
        taken.insert(call.id.clone());
    }
}

/// Reads arguments; nothing means none, and what is not JSON stays a text.
pub(super) fn parse_arguments(raw: String) -> Value {
    let no_arguments = Value::Object(serde_json::Map::new());
    if raw.trim().is_empty() {
        return no_arguments;
    }
    match serde_json::from_str(&raw) {
        Ok(Value::Null) => no_arguments,
        Ok(arguments) => arguments,
        Err(_) => Value::String(raw),
    }
}
