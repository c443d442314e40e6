//! Model requests that a client sends in the daemon's place: the messages in both directions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Header values by name; a name may have several.
pub type Headers = BTreeMap<String, Vec<String>>;

/// `llmInference.httpRequestStart`: the head of a request for the client to make.
#[skip_serializing_none]
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestStart<'a> {
    pub request_id: &'a str,
    pub method: &'a str,
    pub url: &'a str,
    pub headers: &'a Headers,
    pub transport: &'a str,
    pub session_id: Option<&'a str>,
    pub agent_id: Option<&'a str>,
    /// The parent agent, or the top session.
    pub parent_agent_id: Option<&'a str>,
    pub interaction_type: Option<&'a str>,
}

/// `llmInference.httpRequestChunk`: a part of the request's body, its end, or its cancellation.
#[skip_serializing_none]
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestChunk<'a> {
    pub request_id: &'a str,
    pub data: &'a str,
    pub binary: bool,
    pub end: bool,
    pub cancel: bool,
    pub cancel_reason: Option<&'a str>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseStart {
    pub request_id: String,
    pub status: u16,
    #[serde(default)]
    pub headers: Headers,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseChunk {
    pub request_id: String,
    #[serde(default)]
    pub data: String,
    /// Whether the data is base64 of bytes instead of text.
    #[serde(default)]
    pub binary: bool,
    #[serde(default)]
    pub end: bool,
    #[serde(default)]
    pub error: Option<TransportError>,
}

/// Why the client could not send the request.
#[derive(Debug, Clone, Deserialize)]
pub struct TransportError {
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub code: Option<String>,
}

/// Whether the daemon was still waiting for the response.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Accepted {
    pub accepted: bool,
}
