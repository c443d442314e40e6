//! Methods about tools, and those with which clients run their own tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::event::tool::BinaryResult;
use crate::id::{RequestId, SessionId};
use crate::session::ClientTool;

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

/// The result of a client's tool.
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

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetParams {
    pub session_id: SessionId,
    pub tools: Vec<ClientTool>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub struct ListParams {
    #[serde(default)]
    pub model: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ToolList {
    pub tools: Vec<ToolInfo>,
}

/// A built-in tool.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    pub parameters: Value,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct CurrentTools {
    /// Null until the tools are ready.
    pub tools: Option<Vec<CurrentTool>>,
}

/// A tool that the model has.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct CurrentTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentParams {
    pub session_id: SessionId,
    /// Null restores the defaults.
    pub subagents: Option<SubagentSettings>,
}

/// How sub-agents run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubagentSettings {
    pub agents: Option<BTreeMap<String, SubagentEntry>>,
    pub disabled_subagents: Option<Vec<String>>,
    pub max_concurrency: Option<u32>,
    pub max_depth: Option<u32>,
}

/// The settings of one kind of sub-agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubagentEntry {
    pub model: Option<String>,
    pub effort_level: Option<String>,
    pub context_tier: Option<String>,
}
