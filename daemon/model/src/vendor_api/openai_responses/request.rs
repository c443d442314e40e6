//! Writes a model request as responses JSON.
//!
//! The server keeps nothing, so every request brings the whole
//! conversation, the model's sealed thinking included.

use serde_json::{Map, Value, json};

use crate::opaque::{self, Format};
use crate::vendor_api::{openai, system_texts};
use loopd_kernel::model::{
    AssistantTurn, Delivery, ModelMessage, ModelRequest, Part, ToolCall, ToolSpec,
};

/// How the names of models begin that cannot think and refuse to be asked for sealed thinking.
const PLAIN_MODELS: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-4", "gpt-5-chat"];

/// Writes the body of a request.
pub(super) fn body(
    request: &ModelRequest,
    max_output_tokens: Option<u64>,
) -> serde_json::Result<Vec<u8>> {
    let mut document = Map::new();
    document.insert("model".to_owned(), request.model.clone().into());
    let instructions: Vec<&str> = system_texts(&request.messages).collect();
    let instructions = instructions.join("\n\n");
    if !instructions.is_empty() {
        document.insert("instructions".to_owned(), instructions.into());
    }
    document.insert(
        "input".to_owned(),
        request.messages.iter().flat_map(items).collect(),
    );
    if !request.tools.is_empty() {
        document.insert(
            "tools".to_owned(),
            request.tools.iter().map(|spec| tool(spec)).collect(),
        );
    }
    if request.forbids_tools() {
        document.insert("tool_choice".to_owned(), "none".into());
    }
    document.insert("store".to_owned(), false.into());
    if !is_plain(&request.model) {
        document.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(reasoning) = reasoning(request) {
        document.insert("reasoning".to_owned(), reasoning);
    }
    if let Some(limit) = max_output_tokens {
        document.insert("max_output_tokens".to_owned(), limit.into());
    }
    if request.delivery == Delivery::Streamed {
        document.insert("stream".to_owned(), true.into());
    }
    serde_json::to_vec(&document)
}

/// Returns what is asked of the reasoning. A session that chooses an effort gets summaries, unless it
/// wants none.
fn reasoning(request: &ModelRequest) -> Option<Value> {
    let effort = request.reasoning_effort.as_deref();
    let summary = match request.reasoning_summary.as_deref() {
        Some("none") => None,
        Some(summary) => Some(summary),
        None => effort.map(|_| "auto"),
    };
    let members = [("effort", effort), ("summary", summary)].into_iter();
    let members: Map<String, Value> = members
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())))
        .collect();
    (!members.is_empty()).then_some(Value::Object(members))
}

fn is_plain(model: &str) -> bool {
    PLAIN_MODELS.iter().any(|name| model.starts_with(name))
}

fn items(message: &ModelMessage) -> Vec<Value> {
    match message {
        ModelMessage::System(_) => Vec::new(),
        ModelMessage::User(parts) => {
            let content: Vec<Value> = parts.iter().map(user_part).collect();
            vec![json!({ "type": "message", "role": "user", "content": content })]
        }
        ModelMessage::Assistant(turn) => assistant(turn),
        ModelMessage::ToolResult { call, text } => vec![json!({
            "type": "function_call_output", "call_id": call.as_str(), "output": text,
        })],
    }
}

fn user_part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
        Part::Image { media_type, base64 } => json!({
            "type": "input_image", "image_url": openai::data_url(media_type, base64),
        }),
        Part::Document {
            title,
            media_type,
            base64,
        } => json!({
            "type": "input_file", "filename": title.as_deref().unwrap_or("document"),
            "file_data": openai::data_url(media_type, base64),
        }),
    }
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    // The server refuses thinking that leads to nothing.
    if turn.text.is_empty() && turn.calls.is_empty() {
        return Vec::new();
    }
    let mut items = opaque::unwrap(Format::Responses, turn.reasoning.as_ref());
    if !turn.text.is_empty() {
        items.push(json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": turn.text }],
        }));
    }
    items.extend(turn.calls.iter().map(function_call));
    items
}

fn function_call(call: &ToolCall) -> Value {
    // Arguments that were never JSON go back as a JSON text: servers that parse them must not fail.
    json!({
        "type": "function_call", "call_id": call.id.as_str(), "name": call.name,
        "arguments": call.arguments.to_string(),
    })
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function", "name": spec.name, "description": spec.description,
        "parameters": openai::parameters(spec), "strict": false,
    })
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
