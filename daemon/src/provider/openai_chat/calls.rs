//! Collects the tool calls of a reply, whole or in pieces, and gives each a usable id.
//!
//! Only `openai_chat/reply` uses it. Servers number pieces differently or not at all, send
//! arguments as text or as an object, and leave ids out or repeat them; the calls that come out
//! here are complete and their ids are unique in the conversation.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use loopd_proto::id::ToolCallId;

use crate::kernel::model::{ModelMessage, ModelRequest, ToolCall};

/// A call or a piece of one, as it stands in the JSON.
#[derive(Debug, Deserialize)]
pub(super) struct WireCall {
    index: Option<usize>,
    id: Option<String>,
    function: Option<WireFunction>,
}

#[derive(Debug, Deserialize)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<Value>,
}

/// The calls of one choice, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct CallList(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<usize>,
    id: String,
    name: String,
    arguments: String,
}

impl CallList {
    /// Takes a call that came at once.
    pub(super) fn take_whole(&mut self, wire: WireCall) {
        self.0.push(Call::from(wire));
    }

    /// Takes a piece: the beginning of a call or more of its arguments.
    pub(super) fn take_piece(&mut self, wire: WireCall) {
        let piece = Call::from(wire);
        let Some(call) = self.continued_by(&piece) else {
            self.0.push(piece);
            return;
        };
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if call.name.is_empty() {
            call.name = piece.name;
        }
        call.arguments.push_str(&piece.arguments);
    }

    /// Finishes the calls.
    pub(super) fn build(self, ids: &mut CallIds) -> impl Iterator<Item = ToolCall> {
        self.0.into_iter().map(|call| ToolCall {
            id: ids.take(&call.id),
            name: call.name,
            arguments: parse_arguments(call.arguments),
        })
    }

    fn continued_by(&mut self, piece: &Call) -> Option<&mut Call> {
        if piece.index.is_none() && piece.id.is_empty() && piece.name.is_empty() {
            return self.0.last_mut();
        }
        self.0.iter_mut().rev().find(|call| match piece.index {
            // Some servers number all calls 0 and only the id tells them apart.
            Some(_) => {
                let same_id = piece.id.is_empty() || call.id.is_empty() || call.id == piece.id;
                call.index == piece.index && same_id
            }
            None => !piece.id.is_empty() && call.id == piece.id,
        })
    }
}

impl From<WireCall> for Call {
    fn from(wire: WireCall) -> Self {
        let (name, arguments) = match wire.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(parsed) => parsed.to_string(),
        };
        Self {
            index: wire.index,
            id: wire.id.unwrap_or_default(),
            name: name.unwrap_or_default(),
            arguments,
        }
    }
}

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

    fn take(&mut self, wanted: &str) -> ToolCallId {
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

fn parse_arguments(raw: String) -> Value {
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
