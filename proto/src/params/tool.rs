//! Methods by which clients run their own tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::tool::BinaryResult;
use crate::id::{RequestId, SessionId};

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandleParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    #[serde(default)]
    pub result: Option<ClientToolResult>,
    #[serde(default)]
    pub error: Option<String>,
}

/// What a client's tool brought.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum ClientToolResult {
    Text(String),
    Full(Box<FullResult>),
    /// Anything else is given to the model as JSON.
    Other(Value),
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FullResult {
    pub text_result_for_llm: String,
    /// `success`, `failure`, `rejected`, `denied` or `timeout`.
    #[serde(default)]
    pub result_type: Option<String>,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub session_log: Option<String>,
    #[serde(default)]
    pub tool_telemetry: Option<Map<String, Value>>,
    #[serde(default)]
    pub binary_results_for_llm: Option<Vec<BinaryResult>>,
}
