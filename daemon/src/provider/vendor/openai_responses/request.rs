//! Writes a model request as responses JSON.
//!
//! Only `openai_responses` calls it. The server keeps nothing, so every request brings the whole
//! conversation, the model's sealed thinking included.

use serde_json::{Map, Value, json};

use crate::kernel::model::{
    AssistantTurn, Delivery, ModelMessage, ModelRequest, Part, ToolCall, ToolSpec,
};
use crate::provider::error::ProviderError;
use crate::provider::opaque::{self, Format};

/// How the names of models begin that cannot think and refuse to be asked for sealed thinking.
const PLAIN_MODELS: [&str; 4] = ["gpt-3", "gpt-4", "chatgpt-4", "gpt-5-chat"];

/// Writes the body of a request.
pub(super) fn body(
    request: &ModelRequest,
    max_output_tokens: Option<u64>,
) -> Result<Vec<u8>, ProviderError> {
    let mut document = Map::new();
    document.insert("model".to_owned(), request.model.clone().into());
    let instructions = instructions(&request.messages);
    if !instructions.is_empty() {
        document.insert("instructions".to_owned(), instructions.into());
    }
    document.insert(
        "input".to_owned(),
        request.messages.iter().flat_map(items).collect(),
    );
    if !request.tools.is_empty() {
        document.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    document.insert("store".to_owned(), false.into());
    if !is_plain(&request.model) {
        document.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(effort) = &request.reasoning_effort {
        document.insert(
            "reasoning".to_owned(),
            json!({ "effort": effort, "summary": "auto" }),
        );
    }
    if let Some(limit) = max_output_tokens {
        document.insert("max_output_tokens".to_owned(), limit.into());
    }
    if request.delivery == Delivery::Streamed {
        document.insert("stream".to_owned(), true.into());
    }
    serde_json::to_vec(&document).map_err(|failure| ProviderError::Misconfigured {
        detail: format!("the conversation cannot be written as JSON: {failure}"),
    })
}

fn is_plain(model: &str) -> bool {
    PLAIN_MODELS.iter().any(|name| model.starts_with(name))
}

fn instructions(messages: &[ModelMessage]) -> String {
    let texts: Vec<&str> = messages
        .iter()
        .filter_map(|message| match message {
            ModelMessage::System(text) => Some(text.as_str()),
            ModelMessage::User(_)
            | ModelMessage::Assistant(_)
            | ModelMessage::ToolResult { .. } => None,
        })
        .collect();
    texts.join("\n\n")
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
            "type": "input_image", "image_url": format!("data:{media_type};base64,{base64}"),
        }),
        Part::Document {
            title,
            media_type,
            base64,
        } => json!({
            "type": "input_file", "filename": title.as_deref().unwrap_or("document"),
            "file_data": format!("data:{media_type};base64,{base64}"),
        }),
    }
}

fn assistant(turn: &AssistantTurn) -> Vec<Value> {
    // The server refuses thinking that leads to nothing.
    if turn.text.is_empty() && turn.calls.is_empty() {
        return Vec::new();
    }
    let sealed = turn
        .reasoning
        .as_ref()
        .and_then(|reasoning| reasoning.opaque.as_deref());
    let mut items = opaque::unwrap(Format::Responses, sealed);
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
    let parameters = if spec.parameters.is_null() {
        json!({ "type": "object", "properties": {} })
    } else {
        spec.parameters.clone()
    };
    json!({
        "type": "function", "name": spec.name, "description": spec.description,
        "parameters": parameters, "strict": false,
    })
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
