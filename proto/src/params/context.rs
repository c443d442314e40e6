//! What takes how much of the context of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfoParams {
    pub session_id: SessionId,
    /// The most tokens of a request; 0 if what is known of the model is to be used.
    pub prompt_token_limit: u64,
    /// The longest answer; 0 if unknown.
    pub output_token_limit: u64,
    #[serde(default)]
    pub selected_model: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfoResult {
    /// Null if no message was prepared yet.
    pub context_info: Option<ContextInfo>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextInfo {
    pub model_name: String,
    pub system_tokens: u64,
    pub conversation_tokens: u64,
    pub tool_definitions_tokens: u64,
    pub mcp_tools_tokens: u64,
    pub total_tokens: u64,
    pub prompt_token_limit: u64,
    pub compaction_threshold: u64,
    pub limit: u64,
    pub buffer_tokens: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecomputeParams {
    pub session_id: SessionId,
    pub model_id: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recomputed {
    pub total_tokens: u64,
    pub messages_token_count: u64,
    pub system_token_count: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributionResult {
    /// Null if no message was prepared yet.
    pub context_attribution: Option<Attribution>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attribution {
    pub total_tokens: u64,
    pub model_id: String,
    pub model_source: String,
    pub prompt_token_limit: u64,
    pub limit: u64,
    pub buffer_tokens: u64,
    pub compaction_threshold: u64,
    pub categories: AttributionCategories,
    pub entries: Vec<AttributionEntry>,
    pub compactions: CompactionCount,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributionCategories {
    pub system_prompt: u64,
    pub custom_instructions: u64,
    pub system_tools: u64,
    pub mcp_tools: u64,
    pub messages: u64,
    pub free_space: u64,
    pub buffer: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributionEntry {
    pub kind: String,
    pub id: String,
    pub label: String,
    pub tokens: u64,
    #[serde(default)]
    pub parent_id: Option<String>,
    #[serde(default)]
    pub attributes: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct CompactionCount {
    pub count: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaviestParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Heaviest {
    pub total_tokens: u64,
    pub messages: Vec<HeavyMessage>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeavyMessage {
    pub id: String,
    pub label: String,
    pub role: String,
    pub tokens: u64,
}
