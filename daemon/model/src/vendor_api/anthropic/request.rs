//! Writes a model request as messages JSON.
//!
//! The conversation is kept as it is; only its form changes: messages of
//! the same side that follow each other become one, so that all results of a turn stand together.

use serde_json::{Map, Value, json};

use crate::vendor_api::system_texts;
use loopd_kernel::model::{
    AssistantTurn, Delivery, ModelMessage, ModelRequest, Part, ToolCall, ToolSpec,
};

use super::{Citations, thinking};

/// Stands for a message without any text, which the server would refuse.
const NOTHING: &str = "(no text)";

/// Writes the body of a request.
pub(super) fn body(
    request: &ModelRequest,
    max_output_tokens: Option<u64>,
    citations: Citations,
) -> serde_json::Result<Vec<u8>> {
    let limits = thinking::limits(request, max_output_tokens);
    let mut document = Map::new();
    document.insert("model".to_owned(), request.model.clone().into());
    document.insert("max_tokens".to_owned(), limits.max_tokens.into());
    let mut system: Vec<Value> = system_texts(&request.messages)
        .filter_map(text_block)
        .collect();
    mark_for_cache(&mut system);
    if !system.is_empty() {
        document.insert("system".to_owned(), system.into());
    }
    document.insert(
        "messages".to_owned(),
        messages(&request.messages, citations).into(),
    );
    if !request.tools.is_empty() {
        document.insert(
            "tools".to_owned(),
            request.tools.iter().map(|spec| tool(spec)).collect(),
        );
    }
    if request.forbids_tools() {
        document.insert("tool_choice".to_owned(), json!({ "type": "none" }));
    }
    if let Some(thinking) = limits.thinking {
        document.insert("thinking".to_owned(), thinking);
    }
    if let Some(config) = limits.output_config {
        document.insert("output_config".to_owned(), config);
    }
    if request.delivery == Delivery::Streamed {
        document.insert("stream".to_owned(), true.into());
    }
    serde_json::to_vec(&document)
}

/// Which side of the conversation speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

impl Side {
    fn role(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

fn messages(messages: &[ModelMessage], citations: Citations) -> Vec<Value> {
    let mut sides: Vec<(Side, Vec<Value>)> = Vec::new();
    for message in messages {
        let (side, blocks) = match message {
            ModelMessage::System(_) => continue,
            ModelMessage::User(parts) => (Side::User, user(parts, citations)),
            ModelMessage::Assistant(turn) => (Side::Assistant, assistant(turn)),
            ModelMessage::ToolResult { call, text } => {
                (Side::User, vec![tool_result(call.as_str(), text)])
            }
        };
        if blocks.is_empty() {
            continue;
        }
        match sides.last_mut() {
            Some((last, known)) if *last == side => known.extend(blocks),
            _ => sides.push((side, blocks)),
        }
    }
    if let Some((_, blocks)) = sides.last_mut() {
        mark_for_cache(blocks);
    }
    sides
        .into_iter()
        .map(|(side, content)| json!({ "role": side.role(), "content": content }))
        .collect()
}

/// Lets the server keep everything up to here, so that the next request costs a part of it.
fn mark_for_cache(blocks: &mut [Value]) {
    if let Some(Value::Object(block)) = blocks.last_mut()
        && !block
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.ends_with("thinking"))
    {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn user(parts: &[Part], citations: Citations) -> Vec<Value> {
    let blocks: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => text_block(text),
            Part::Image { media_type, base64 } => Some(json!({
                "type": "image",
                "source": { "type": "base64", "media_type": media_type, "data": base64 },
            })),
            Part::Document {
                title,
                media_type,
                base64,
            } => Some(document(title.as_deref(), media_type, base64, citations)),
        })
        .collect();
    if blocks.is_empty() {
        return vec![json!({ "type": "text", "text": NOTHING })];
    }
    blocks
}

fn document(title: Option<&str>, media_type: &str, base64: &str, citations: Citations) -> Value {
    let mut block = Map::new();
    block.insert("type".to_owned(), "document".into());
    block.insert(
        "source".to_owned(),
        json!({ "type": "base64", "media_type": media_type, "data": base64 }),
    );
    if let Some(title) = title {
        block.insert("title".to_owned(), title.into());
    }
    if citations == Citations::Wanted {
        block.insert("citations".to_owned(), json!({ "enabled": true }));
    }
    block.into()
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    let mut blocks = thinking::blocks(turn);
    blocks.extend(text_block(&turn.text));
    blocks.extend(turn.calls.iter().map(tool_use));
    // Thinking alone is no message.
    if turn.calls.is_empty() && turn.text.trim().is_empty() {
        return Vec::new();
    }
    blocks
}

/// A text that says something; the server refuses blank ones.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn tool_use(call: &ToolCall) -> Value {
    // Arguments that are no object were never valid; the server wants one all the same.
    let input = match &call.arguments {
        Value::Object(arguments) => Value::Object(arguments.clone()),
        Value::Null => json!({}),
        other => json!({ "arguments": other }),
    };
    json!({ "type": "tool_use", "id": plain_id(call.id.as_str()), "name": call.name, "input": input })
}

fn tool_result(call: &str, text: &str) -> Value {
    json!({ "type": "tool_result", "tool_use_id": plain_id(call), "content": text })
}

/// Ids of other vendors may hold letters that this one refuses.
fn plain_id(id: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    id.chars()
        .map(|letter| if plain(letter) { letter } else { '_' })
        .collect()
}

fn tool(spec: &ToolSpec) -> Value {
    let schema = match &spec.parameters {
        Value::Object(schema) if schema.contains_key("type") => Value::Object(schema.clone()),
        Value::Object(schema) => {
            let mut schema = schema.clone();
            schema.insert("type".to_owned(), "object".into());
            Value::Object(schema)
        }
        _ => json!({ "type": "object", "properties": {} }),
    };
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
