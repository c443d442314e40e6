//! Events of a turn: user messages, model calls, messages of the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::fact::ClientRef;
use crate::id::{InteractionId, MessageId, ToolCallId};

/// How a user message was delivered to the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivered {
    /// The session was idle.
    Idle,
    /// It joined a running turn before its next model call.
    Steering,
    /// It waited for the turn before it to end.
    Queued,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// The id from `session.send`; absent in old logs.
    pub message_id: Option<MessageId>,
    /// What the user typed.
    pub content: String,
    /// What the model reads.
    pub transformed_content: Option<String>,
    pub attachments: Option<Vec<Attachment>>,
    pub source: Option<String>,
    pub delivery: Option<Delivered>,
    pub agent_mode: Option<String>,
    /// Whether the autopilot wrote the message. People do not see it: its content is empty.
    pub is_autopilot_continuation: Option<bool>,
    pub interaction_id: Option<InteractionId>,
    pub turn_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    pub role: String,
    pub content: String,
    pub interaction_id: Option<InteractionId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStart {
    pub turn_id: String,
    pub model: Option<String>,
    pub interaction_id: Option<InteractionId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    pub turn_id: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    pub message_id: MessageId,
    /// The user message that started the run; absent if a notification started it.
    pub originating_message_id: Option<MessageId>,
    pub model: Option<String>,
    pub content: String,
    pub tool_requests: Vec<ToolRequest>,
    pub reasoning_opaque: Option<String>,
    pub reasoning_text: Option<String>,
    pub output_tokens: Option<u64>,
    pub interaction_id: Option<InteractionId>,
    pub turn_id: Option<String>,
    pub api_call_id: Option<String>,
}

/// A tool call as the model asked for it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequest {
    pub tool_call_id: ToolCallId,
    pub name: String,
    pub arguments: Value,
    #[serde(rename = "type")]
    pub kind: String,
    /// The MCP server that the tool belongs to, and its name there.
    #[serde(default)]
    pub mcp_server_name: Option<String>,
    #[serde(default)]
    pub mcp_tool_name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Abort {
    pub reason: String,
    /// The client that asked for it.
    pub aborted_by: Option<ClientRef>,
    /// The waiting messages that left the queue with the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_message_ids: Vec<MessageId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantIdle {
    pub aborted: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageStart {
    pub message_id: MessageId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageDelta {
    pub message_id: MessageId,
    pub delta_content: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningDelta {
    pub reasoning_id: String,
    pub delta_content: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamingDelta {
    pub total_response_size_bytes: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRetry {
    pub turn_id: String,
    pub model: Option<String>,
    pub reason: Option<String>,
}

/// The usage of one model call.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
    pub cost: Option<f64>,
    pub duration: u64,
    pub time_to_first_token_ms: Option<f64>,
    pub initiator: Option<String>,
    pub interaction_type: Option<String>,
    pub api_call_id: Option<String>,
    pub provider_call_id: Option<String>,
    pub api_endpoint: Option<String>,
    pub available_tool_count: Option<u64>,
    pub num_tool_calls: Option<u64>,
    pub tool_counts: Option<BTreeMap<String, u64>>,
    pub finish_reason: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallStart {
    pub turn_id: String,
    pub model: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCallFailure {
    pub model: Option<String>,
    pub status_code: Option<u16>,
    pub duration_ms: Option<u64>,
    pub source: String,
    pub error_message: Option<String>,
    pub error_code: Option<String>,
    pub error_type: Option<String>,
    pub provider_call_id: Option<String>,
}
