//! The messages format of Anthropic.
//!
//! `request` writes what goes out, with `thinking` for how much the model may think; `reply` reads
//! what comes back; `models` knows the models.

mod models;
mod reply;
mod request;
mod thinking;

use serde_json::Value;

use loopd_kernel::model::{ModelInfo, ModelRequest};

use super::Vendor;
use reply::MessagesReply;

/// The version of the format, which the server wants to be told.
const VERSION: &str = "2023-06-01";

/// Whether the model is to say where in a document it found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Citations {
    Wanted,
    Unwanted,
}

/// The vendors that speak the messages format.
pub(super) struct Anthropic {
    pub(super) citations: Citations,
    /// Limits the length of replies to something else than the model's usual limit.
    pub(super) max_output_tokens: Option<u64>,
}

impl Vendor for Anthropic {
    type Reply = MessagesReply;
    const PROVIDER_TYPE: &'static str = "anthropic";
    const WIRE_API: Option<&'static str> = None;
    const PATH: &'static str = "/v1/messages";
    const MODELS_PATH: &'static str = "/v1/models";
    /// One page holds all models: there are far fewer than this.
    const MODELS_QUERY: &'static [(&'static str, &'static str)] = &[("limit", "1000")];

    fn headers(&self, _request: Option<&ModelRequest>) -> Vec<(&'static str, String)> {
        vec![("anthropic-version", VERSION.to_owned())]
    }

    fn body(&self, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
        let limit = request.output_limit(self.max_output_tokens);
        request::body(request, limit, self.citations)
    }

    fn model_info(id: &str, entry: &Value) -> Option<ModelInfo> {
        Some(models::model_info(id, entry))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
