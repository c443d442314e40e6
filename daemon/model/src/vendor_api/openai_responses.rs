//! The responses format of OpenAI, used without any state on the server.
//!
//! `request` writes what goes out, `reply` reads what comes back.

mod reply;
mod request;

use serde_json::Value;

use loopd_kernel::model::{ModelInfo, ModelRequest};

use super::{Vendor, openai};
use reply::ResponsesReply;

/// The vendors that speak the responses format.
pub(super) struct OpenAiResponses {
    /// Limits the length of replies, thinking included.
    pub(super) max_output_tokens: Option<u64>,
}

impl Vendor for OpenAiResponses {
    type Reply = ResponsesReply;
    const PROVIDER_TYPE: &'static str = "openai";
    const WIRE_API: Option<&'static str> = Some("responses");
    const PATH: &'static str = "/responses";

    fn body(&self, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        request::body(request, request.output_limit(self.max_output_tokens))
    }

    fn model_info(id: &str, entry: &Value) -> Option<ModelInfo> {
        openai::models::model_info(id, entry)
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
