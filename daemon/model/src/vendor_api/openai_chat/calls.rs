//! Collects the tool calls of a reply, whole or in pieces.
//!
//! Only `openai_chat/reply` uses it. Servers number the pieces differently or not at all and send
//! arguments as text or as an object.

use serde::Deserialize;
use serde_json::Value;

use crate::call_ids::parse_arguments;
use loopd_kernel::model::ToolCall;

/// A call or a piece of one, as it stands in the JSON.
#[derive(Debug, Deserialize)]
pub(super) struct ReceivedCall {
    index: Option<usize>,
    id: Option<String>,
    function: Option<ReceivedFunction>,
}

#[derive(Debug, Deserialize)]
struct ReceivedFunction {
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
    pub(super) fn take_whole(&mut self, wire: ReceivedCall) {
        self.0.push(Call::from(wire));
    }

    /// Takes a piece: the beginning of a call or more of its arguments.
    pub(super) fn take_piece(&mut self, wire: ReceivedCall) {
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
    pub(super) fn build(self) -> impl Iterator<Item = ToolCall> {
        self.0.into_iter().map(|call| ToolCall {
            id: call.id.into(),
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

impl From<ReceivedCall> for Call {
    fn from(wire: ReceivedCall) -> Self {
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
