//! Collects the tool calls of a reply, whole or in pieces, and gives each a usable id.
//!
//! Only `openai_chat/reply` uses it. Servers number pieces differently or not at all, send
//! arguments as text or as an object, and leave ids out or repeat them; the calls that come out
//! here are complete and their ids are unique in the conversation.

use serde::Deserialize;
use serde_json::Value;

use crate::kernel::model::ToolCall;
use crate::provider::call_ids::{CallIds, parse_arguments};

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
