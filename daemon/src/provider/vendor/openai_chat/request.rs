//! Writes a model request as chat completions JSON, with the headers of its dialect.
//!
//! Only `openai_chat` calls it. It borrows the conversation and never changes, repairs or shortens
//! it: what `kernel::context` built is what goes out.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::kernel::model::{
    AssistantTurn, Delivery, ModelMessage, ModelRequest, Part, ToolCall, ToolSpec,
};
use crate::provider::body;
use crate::provider::error::ProviderError;
use crate::provider::opaque;

use super::Flavor;

/// How long a reply may be, under the name that the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Plain(u64),
    Completion(u64),
}

/// Writes the body of a request.
pub(super) fn body(
    request: &ModelRequest,
    flavor: Flavor,
    limit: Option<Limit>,
) -> Result<Vec<u8>, ProviderError> {
    let streamed = request.delivery == Delivery::Streamed;
    let document = Document {
        model: &request.model,
        messages: request
            .messages
            .iter()
            .map(|message| WireMessage { message, flavor })
            .collect(),
        tools: request.tools.iter().map(WireTool).collect(),
        reasoning_effort: request.reasoning_effort.as_deref(),
        max_tokens: match limit {
            Some(Limit::Plain(tokens)) => Some(tokens),
            Some(Limit::Completion(_)) | None => None,
        },
        max_completion_tokens: match limit {
            Some(Limit::Completion(tokens)) => Some(tokens),
            Some(Limit::Plain(_)) | None => None,
        },
        stream: streamed.then_some(true),
        stream_options: streamed.then(|| json!({ "include_usage": true })),
    };
    serde_json::to_vec(&document).map_err(|failure| ProviderError::Misconfigured {
        detail: format!("the conversation cannot be written as JSON: {failure}"),
    })
}

/// Lists the headers of a dialect that depend on the conversation, and its fixed ones.
pub(super) fn headers(request: &ModelRequest, flavor: Flavor) -> Vec<(&'static str, String)> {
    let mut headers = vec![("accept", body::accept(request.delivery).to_owned())];
    if flavor == Flavor::Copilot {
        let initiator = match request.messages.last() {
            Some(ModelMessage::ToolResult { .. }) => "agent",
            _ => "user",
        };
        headers.extend(copilot_headers());
        headers.push(("x-initiator", initiator.to_owned()));
        if request.messages.iter().any(has_image) {
            headers.push(("copilot-vision-request", "true".to_owned()));
        }
    }
    headers
}

/// Lists the headers of a dialect for requests without a conversation.
pub(super) fn listing_headers(flavor: Flavor) -> Vec<(&'static str, String)> {
    let mut headers = vec![("accept", "application/json".to_owned())];
    if flavor == Flavor::Copilot {
        headers.extend(copilot_headers());
    }
    headers
}

fn copilot_headers() -> [(&'static str, String); 3] {
    [
        ("copilot-integration-id", "loopd".to_owned()),
        (
            "editor-version",
            concat!("loopd/", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
        ("openai-intent", "conversation-agent".to_owned()),
    ]
}

fn has_image(message: &ModelMessage) -> bool {
    matches!(message, ModelMessage::User(parts) if parts.iter().any(|part| matches!(part, Part::Image { .. })))
}

#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

struct WireMessage<'a> {
    message: &'a ModelMessage,
    flavor: Flavor,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.message {
            ModelMessage::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            ModelMessage::User(parts) => {
                map.serialize_entry("role", "user")?;
                match parts.as_slice() {
                    [] => map.serialize_entry("content", "")?,
                    [Part::Text(text)] => map.serialize_entry("content", text)?,
                    parts => map.serialize_entry(
                        "content",
                        &parts.iter().map(WirePart).collect::<Vec<_>>(),
                    )?,
                }
            }
            ModelMessage::Assistant(turn) => assistant(&mut map, turn, self.flavor)?,
            ModelMessage::ToolResult { call, text } => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", call.as_str())?;
                map.serialize_entry("content", text)?;
            }
        }
        map.end()
    }
}

fn assistant<M: SerializeMap>(
    map: &mut M,
    turn: &AssistantTurn,
    flavor: Flavor,
) -> Result<(), M::Error> {
    map.serialize_entry("role", "assistant")?;
    if turn.text.is_empty() && !turn.calls.is_empty() {
        map.serialize_entry("content", &Value::Null)?;
    } else {
        map.serialize_entry("content", &turn.text)?;
    }
    if let Some(reasoning) = &turn.reasoning
        && flavor == Flavor::Copilot
    {
        if let Some(text) = &reasoning.text {
            map.serialize_entry("reasoning_text", text)?;
        }
        if let Some(opaque) = &reasoning.opaque
            && !opaque::is_wrapped(opaque)
        {
            map.serialize_entry("reasoning_opaque", opaque)?;
        }
    }
    if !turn.calls.is_empty() {
        map.serialize_entry(
            "tool_calls",
            &turn.calls.iter().map(WireCall).collect::<Vec<_>>(),
        )?;
    }
    Ok(())
}

struct WirePart<'a>(&'a Part);

impl Serialize for WirePart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self.0 {
            Part::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Part::Image { media_type, base64 } => {
                map.serialize_entry("type", "image_url")?;
                map.serialize_entry(
                    "image_url",
                    &json!({ "url": format!("data:{media_type};base64,{base64}") }),
                )?;
            }
            // Few servers of this format take documents, and the others refuse the whole request.
            Part::Document { title, .. } => {
                let title = title.as_deref().unwrap_or("document");
                map.serialize_entry("type", "text")?;
                map.serialize_entry(
                    "text",
                    &format!(
                        "[The document {title} was attached here. It could not be passed on.]"
                    ),
                )?;
            }
        }
        map.end()
    }
}

struct WireCall<'a>(&'a ToolCall);

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = self.0;
        // Arguments that were never JSON go back as a JSON text: servers that parse them must not fail.
        let arguments = call.arguments.to_string();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", call.id.as_str())?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &json!({ "name": call.name, "arguments": arguments }),
        )?;
        map.end()
    }
}

struct WireTool<'a>(&'a ToolSpec);

impl Serialize for WireTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
        }
        let tool = self.0;
        let no_parameters = json!({ "type": "object", "properties": {} });
        let parameters = if tool.parameters.is_null() {
            &no_parameters
        } else {
            &tool.parameters
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: &tool.name,
                description: &tool.description,
                parameters,
            },
        )?;
        map.end()
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
