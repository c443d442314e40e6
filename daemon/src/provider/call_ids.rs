//! Tool calls of a reply made usable: ids that are unique in the conversation, arguments as JSON.
//!
//! The wire formats use it when they build a turn. Servers leave ids out, repeat them, and send
//! arguments that are empty or broken; what comes out here never is.

use std::collections::HashSet;

use serde_json::Value;

use loopd_proto::id::ToolCallId;

use loopd_kernel::model::{ModelMessage, ModelRequest};

/// Gives out ids that are unique in the conversation, the server's own where possible.
pub(super) struct CallIds {
    taken: HashSet<ToolCallId>,
    /// Where the turn will stand in the conversation, which makes our own ids repeatable.
    position: usize,
}

impl CallIds {
    pub(super) fn of(request: &ModelRequest) -> Self {
        let mut taken = HashSet::new();
        for message in &request.messages {
            if let ModelMessage::Assistant(turn) = message {
                taken.extend(turn.calls.iter().map(|call| call.id.clone()));
            }
        }
        Self {
            taken,
            position: request.messages.len(),
        }
    }

    /// Takes an id, the wanted one unless it is empty or taken.
    pub(super) fn take(&mut self, wanted: &str) -> ToolCallId {
        let mut id = ToolCallId::new(wanted);
        let mut number = 0;
        while id.as_str().is_empty() || self.taken.contains(&id) {
            id = ToolCallId::from(format!("call_{}_{number}", self.position));
            number += 1;
        }
        self.taken.insert(id.clone());
        id
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
