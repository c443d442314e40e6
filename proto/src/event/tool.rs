//! Events of tool calls, built in or run by a client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::id::{InteractionId, RequestId, SessionId, ToolCallId};

/// The intent to run a tool; stored before anything runs.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    pub tool_call_id: ToolCallId,
    pub tool_name: String,
    #[serde(default, deserialize_with = "crate::json::present")]
    pub arguments: Option<Value>,
    pub model: Option<String>,
    pub turn_id: Option<String>,
    /// The MCP server that the tool belongs to, and its name there.
    #[serde(default)]
    pub mcp_server_name: Option<String>,
    #[serde(default)]
    pub mcp_tool_name: Option<String>,
}

/// The one result of a tool call.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolComplete {
    pub tool_call_id: ToolCallId,
    pub success: bool,
    pub model: Option<String>,
    pub interaction_id: Option<InteractionId>,
    /// Set when a person ran the command, not the model.
    pub is_user_requested: Option<bool>,
    pub result: Option<ToolResult>,
    pub error: Option<ToolError>,
    pub tool_telemetry: Option<Map<String, Value>>,
    pub turn_id: Option<String>,
}

/// The result of a successful call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model reads.
    pub content: String,
    /// What a person reads.
    pub detailed_content: Option<String>,
    /// Images that the model gets after the result.
    pub binary_results_for_llm: Option<Vec<BinaryResult>>,
    /// The result as data, as an MCP server sent it.
    #[serde(default, deserialize_with = "crate::json::present")]
    pub structured_content: Option<Box<Value>>,
}

/// Binary data of a result.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BinaryResult {
    /// `image`, or `resource` for anything else.
    #[serde(rename = "type")]
    pub kind: String,
    /// Base64.
    pub data: String,
    pub mime_type: String,
    /// The description for the model.
    pub description: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolError {
    /// What the model reads.
    pub message: String,
    pub code: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolPartial {
    pub tool_call_id: ToolCallId,
    pub partial_output: String,
}

/// How far a call is, in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    pub tool_call_id: ToolCallId,
    pub progress_message: String,
}

/// A client is asked to run one of its tools.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalToolRequested {
    pub request_id: RequestId,
    pub session_id: SessionId,
    pub tool_call_id: ToolCallId,
    pub tool_name: String,
    #[serde(default, deserialize_with = "crate::json::present")]
    pub arguments: Option<Value>,
    pub working_directory: Option<String>,
}
