//! Writes a model request as chat completions JSON, with the headers of its dialect.
//!
//! It borrows the conversation and never changes, repairs or shortens
//! it: what `kernel::context` built is what goes out.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::opaque;
use crate::vendor_api::openai;
use loopd_kernel::model::{
    AssistantTurn, Delivery, ModelMessage, ModelRequest, Part, ToolCall, ToolSpec,
};

use super::Flavor;

/// The name under which a server knows how long a reply may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLimit {
    MaxTokens,
    MaxCompletionTokens,
}

/// Writes the body of a request.
pub(super) fn body(
    request: &ModelRequest,
    flavor: Flavor,
    limit: Option<(OutputLimit, u64)>,
) -> serde_json::Result<Vec<u8>> {
    let streamed = request.delivery == Delivery::Streamed;
    let document = Document {
        model: &request.model,
        messages: request
            .messages
            .iter()
            .map(|message| SentMessage { message, flavor })
            .collect(),
        tools: request.tools.iter().map(|spec| SentTool(spec)).collect(),
        tool_choice: request.forbids_tools().then_some("none"),
        reasoning_effort: request.reasoning_effort.as_deref(),
        max_tokens: match limit {
            Some((OutputLimit::MaxTokens, tokens)) => Some(tokens),
            Some((OutputLimit::MaxCompletionTokens, _)) | None => None,
        },
        max_completion_tokens: match limit {
            Some((OutputLimit::MaxCompletionTokens, tokens)) => Some(tokens),
            Some((OutputLimit::MaxTokens, _)) | None => None,
        },
        stream: streamed.then_some(true),
        stream_options: streamed.then(|| json!({ "include_usage": true })),
    };
    serde_json::to_vec(&document)
}

/// Lists the headers of the Copilot API; some of them depend on the conversation.
pub(super) fn copilot_headers(request: Option<&ModelRequest>) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("copilot-integration-id", "loopd".to_owned()),
        (
            "editor-version",
            concat!("loopd/", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
        ("openai-intent", "conversation-agent".to_owned()),
    ];
    if let Some(request) = request {
        let initiator = match request.messages.last() {
            Some(ModelMessage::ToolResult { .. }) => "agent",
            _ => "user",
        };
        headers.push(("x-initiator", initiator.to_owned()));
        if request.messages.iter().any(has_image) {
            headers.push(("copilot-vision-request", "true".to_owned()));
        }
    }
    headers
}

fn has_image(message: &ModelMessage) -> bool {
    matches!(message, ModelMessage::User(parts) if parts.iter().any(|part| matches!(part, Part::Image { .. })))
}

#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    messages: Vec<SentMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<SentTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
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

struct SentMessage<'a> {
    message: &'a ModelMessage,
    flavor: Flavor,
}

impl Serialize for SentMessage<'_> {
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
                        &parts.iter().map(SentPart).collect::<Vec<_>>(),
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
            &turn.calls.iter().map(SentCall).collect::<Vec<_>>(),
        )?;
    }
    Ok(())
}

struct SentPart<'a>(&'a Part);

impl Serialize for SentPart<'_> {
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
                    &json!({ "url": openai::data_url(media_type, base64) }),
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

struct SentCall<'a>(&'a ToolCall);

impl Serialize for SentCall<'_> {
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

struct SentTool<'a>(&'a ToolSpec);

impl Serialize for SentTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
        }
        let tool = self.0;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &openai::parameters(tool),
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
