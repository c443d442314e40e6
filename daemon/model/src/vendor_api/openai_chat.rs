//! The chat completions format of OpenAI: also spoken by Ollama, llama.cpp, vLLM and the Copilot API.
//!
//! `request` writes what goes out, `reply` reads what comes back, with `calls` for the tool calls.

mod calls;
mod reply;
mod request;

use serde_json::Value;

use loopd_kernel::model::{ModelInfo, ModelRequest};

use super::{Vendor, openai};
use reply::ChatReply;
use request::OutputLimit;

/// The dialects of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// What every compatible server understands.
    Plain,
    /// The Copilot API: its own headers, richer model list, thinking sent back.
    Copilot,
}

/// The vendors that speak chat completions.
pub(super) struct OpenAiChat {
    flavor: Flavor,
    /// The longest reply, as configured.
    max_output_tokens: Option<u64>,
    /// The name of the limit in requests.
    limit_name: OutputLimit,
}

impl OpenAiChat {
    pub(super) fn new(flavor: Flavor, address: &str, max_output_tokens: Option<u64>) -> Self {
        // OpenAI and Azure renamed the limit; other servers know the old name only.
        let renamed = ["api.openai.com", ".azure.com"]
            .iter()
            .any(|host| address.contains(host));
        let limit_name = if renamed {
            OutputLimit::MaxCompletionTokens
        } else {
            OutputLimit::MaxTokens
        };
        Self {
            flavor,
            max_output_tokens,
            limit_name,
        }
    }
}

impl Vendor for OpenAiChat {
    type Reply = ChatReply;
    const PROVIDER_TYPE: &'static str = "openai";
    const WIRE_API: Option<&'static str> = Some("completions");
    const PATH: &'static str = "/chat/completions";

    fn headers(&self, request: Option<&ModelRequest>) -> Vec<(&'static str, String)> {
        match self.flavor {
            Flavor::Plain => Vec::new(),
            Flavor::Copilot => request::copilot_headers(request),
        }
    }

    fn body(&self, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        let limit = request.output_limit(self.max_output_tokens);
        let limit = limit.map(|tokens| (self.limit_name, tokens));
        request::body(request, self.flavor, limit)
    }

    fn model_info(id: &str, entry: &Value) -> Option<ModelInfo> {
        openai::models::model_info(id, entry)
    }
}
