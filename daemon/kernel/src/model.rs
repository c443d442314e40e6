//! The conversation as a model sees it, independent of any vendor's format.
//!
//! `kernel::context` builds it from the state. `provider/*` turns it into vendor JSON and back.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use loopd_proto::id::ToolCallId;

/// One request to a model: everything that a provider needs besides its own address and keys.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub model: String,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<Arc<ToolSpec>>,
    pub delivery: Delivery,
    pub reasoning_effort: Option<String>,
    /// How the reasoning is summarised; the vendor's own way when absent.
    pub reasoning_summary: Option<String>,
    /// The most tokens that the reply may have; the provider's own limit holds beside it.
    pub max_output_tokens: Option<u64>,
    pub tool_use: ToolUse,
    /// Extra HTTP headers that a client asked for with `session.send`.
    pub headers: Vec<(String, String)>,
}

impl ModelRequest {
    /// Returns the most tokens that the reply may have, by the request and by what is configured.
    pub fn output_limit(&self, configured: Option<u64>) -> Option<u64> {
        let limits = [self.max_output_tokens, configured];
        limits.into_iter().flatten().min()
    }

    /// Returns whether the request has tools that the model must not call.
    pub fn forbids_tools(&self) -> bool {
        self.tool_use == ToolUse::Forbidden && !self.tools.is_empty()
    }
}

/// Whether the model may call the tools of a request. A request that forbids it has the tools all the
/// same, so that it begins with the same bytes as others and the provider can reuse its cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolUse {
    #[default]
    Free,
    Forbidden,
}

/// Whether the reply arrives in pieces or at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    Streamed,
    Whole,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelMessage {
    System(String),
    User(Vec<Part>),
    Assistant(AssistantTurn),
    /// The result of one call. Every call of an assistant turn gets exactly one.
    ToolResult {
        call: ToolCallId,
        text: String,
    },
}

/// A piece of a user message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    Text(String),
    Image {
        media_type: String,
        base64: String,
    },
    /// A document such as a PDF, for providers that read them.
    Document {
        title: Option<String>,
        media_type: String,
        base64: String,
    },
}

/// What a model said in one reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AssistantTurn {
    pub text: String,
    pub reasoning: Option<Reasoning>,
    pub calls: Vec<ToolCall>,
}

/// A model's thinking, readable or opaque. It is sent back to the model that produced it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: Option<String>,
    pub opaque: Option<String>,
}

/// A tool call as the model asked for it. Arguments that are not valid JSON arrive as a string.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub arguments: Value,
}

/// The description of a tool for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// A JSON schema of the arguments.
    pub parameters: Value,
    /// The number of its tokens, once somebody counted them. A changed copy is counted anew, so set this
    /// to its default there.
    pub counted: CountedOnce,
}

/// A number that is found once and kept. It says nothing about whether two values are equal.
#[derive(Debug, Clone, Default)]
pub struct CountedOnce(OnceLock<u64>);

impl CountedOnce {
    pub fn get_or(&self, count: impl FnOnce() -> u64) -> u64 {
        *self.0.get_or_init(count)
    }
}

impl PartialEq for CountedOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The whole reply of one model call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelReply {
    pub turn: AssistantTurn,
    pub usage: Usage,
    pub finish: Finish,
    /// The provider's own id of the reply.
    pub api_call_id: Option<String>,
    /// The tracing id of the request, from the response headers.
    pub provider_call_id: Option<String>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    #[default]
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    /// For a reason that is not known here.
    Unknown,
}

/// The tokens of one model call, zero where the provider reports none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
    /// The charge that the provider reports, in billionths of a credit.
    pub nano_credits: u64,
}

/// The cause of a change of the model whose provider did not answer.
pub(crate) const FALLBACK: &str = "fallback";

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    pub vision: bool,
    pub images: ImageLimits,
    pub max_context_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub reasoning_efforts: Vec<String>,
}

/// What a model takes of images, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageLimits {
    /// The most bytes of one image.
    pub bytes: Option<u64>,
    /// The most images of a request.
    pub count: Option<u64>,
    pub formats: Option<ImageFormats>,
}

impl ImageLimits {
    /// Returns these limits, with gaps filled from `others`.
    #[must_use]
    pub fn over(self, others: Self) -> Self {
        Self {
            bytes: self.bytes.or(others.bytes),
            count: self.count.or(others.count),
            formats: self.formats.or(others.formats),
        }
    }
}

/// Formats of images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageFormats(u8);

impl ImageFormats {
    const KNOWN: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

    /// Reads a list of media types; `None` if none of them is known.
    pub fn of<'a>(types: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let bits = types.into_iter().filter_map(Self::bit);
        let formats = Self(bits.fold(0, |all, bit| all | bit));
        (formats.0 != 0).then_some(formats)
    }

    pub fn has(self, media_type: &str) -> bool {
        Self::bit(media_type).is_some_and(|bit| self.0 & bit != 0)
    }

    fn bit(media_type: &str) -> Option<u8> {
        let media_type = match media_type {
            "image/jpg" => "image/jpeg",
            other => other,
        };
        let at = Self::KNOWN.iter().position(|known| *known == media_type)?;
        Some(1 << at)
    }
}
