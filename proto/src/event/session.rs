//! Events about the session as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::agent::Stance;
use crate::id::{MessageId, SessionId};
use crate::session::{Mode, SessionLimits};
use crate::time::Timestamp;

/// An event without data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    pub session_id: SessionId,
    pub version: u32,
    pub producer: String,
    /// The runtime's version; the field's name is the public schema's.
    pub copilot_version: String,
    pub start_time: Timestamp,
    pub selected_model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub session_limits: Option<SessionLimits>,
    pub context: Option<WorkContext>,
    pub already_in_use: Option<bool>,
    pub remote_steerable: Option<bool>,
}

/// Where a session works.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkContext {
    pub cwd: String,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    /// Whose format the repository's name has: `github` or `ado`.
    pub host_type: Option<String>,
    pub repository_host: Option<String>,
    pub branch: Option<String>,
    pub head_commit: Option<String>,
    pub base_commit: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resume {
    pub resume_time: Timestamp,
    pub event_count: u64,
    pub selected_model: Option<String>,
    pub session_limits: Option<SessionLimits>,
    pub context: Option<WorkContext>,
    pub already_in_use: Option<bool>,
    pub session_was_active: Option<bool>,
    pub remote_steerable: Option<bool>,
    pub continue_pending_work: Option<bool>,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShutdownType {
    Routine,
    Error,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    pub shutdown_type: ShutdownType,
    pub error_reason: Option<String>,
    pub total_premium_requests: Option<u64>,
    pub total_api_duration_ms: u64,
    /// Milliseconds since the epoch.
    pub session_start_time: i64,
    pub code_changes: CodeChanges,
    pub model_metrics: BTreeMap<String, ModelMetrics>,
    pub current_model: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeChanges {
    pub lines_added: u64,
    pub lines_removed: u64,
    pub files_modified: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelMetrics {
    pub requests: RequestMetrics,
    pub usage: TokenMetrics,
}

impl ModelMetrics {
    /// Adds the metrics of other calls.
    pub fn add(&mut self, other: &Self) {
        let count = &mut self.requests.count;
        *count = count.saturating_add(other.requests.count);
        self.requests.cost += other.requests.cost;
        self.usage.add(&other.usage);
    }
}

impl TokenMetrics {
    /// Adds the tokens of other calls. Providers report them, so no sum may overflow.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestMetrics {
    pub count: u64,
    pub cost: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenMetrics {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
}

/// An error that the user should know of.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub error_type: String,
    /// The user message whose turn failed; absent if the error belongs to no message.
    pub originating_message_id: Option<MessageId>,
    pub error_code: Option<String>,
    pub message: String,
    pub stack: Option<String>,
    pub status_code: Option<u16>,
    pub provider_call_id: Option<String>,
    pub url: Option<String>,
    /// Whether the clients are asked next if another model may go on.
    pub eligible_for_auto_switch: Option<bool>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    pub info_type: String,
    pub message: String,
    pub url: Option<String>,
    pub tip: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    pub warning_type: String,
    pub message: String,
    pub url: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    pub previous_model: Option<String>,
    pub new_model: String,
    pub previous_reasoning_effort: Option<String>,
    pub reasoning_effort: Option<String>,
    pub cause: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeChanged {
    pub previous_mode: Mode,
    pub new_mode: Mode,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOperation {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanChanged {
    pub operation: FileOperation,
}

/// A client has written a file of the session's workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileChanged {
    /// The path relative to the workspace's files.
    pub path: String,
    pub operation: FileOperation,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSelected {
    pub agent_name: String,
    pub agent_display_name: String,
    pub tools: Option<Vec<String>>,
    /// How it treats calls that need a permission; absent if as the session does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stance: Option<Stance>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    pub aborted: Option<bool>,
    pub mode: Option<Mode>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TitleChanged {
    pub title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsUpdated {
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageInfo {
    pub token_limit: u64,
    pub current_tokens: u64,
    pub messages_length: u64,
    pub system_tokens: u64,
    pub conversation_tokens: u64,
    pub tool_definitions_tokens: u64,
    pub is_initial: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentsUpdated {
    pub agents: Vec<Value>,
    pub warnings: Vec<String>,
    pub errors: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapabilitiesChanged {
    pub ui: UiCapabilities,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UiCapabilities {
    pub elicitation: bool,
}
