//! Methods about the conversation as a whole.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::compaction::CompactionTrigger;
use crate::id::SessionId;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactParams {
    pub session_id: SessionId,
    /// What the summary should dwell on.
    #[serde(default)]
    pub custom_instructions: Option<String>,
    /// What began it. Only `manual` can be asked for.
    #[serde(default)]
    pub trigger: Option<CompactionTrigger>,
}

/// Clears the conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearParams {
    pub session_id: SessionId,
    /// The message that the conversation begins anew with.
    pub prompt: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClearedContext {
    pub messages_cleared: u64,
}

/// How a compaction went.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    pub success: bool,
    /// Negative if the summary is longer than what it replaces.
    pub tokens_removed: i64,
    pub messages_removed: u64,
    pub summary_content: Option<String>,
    /// Our own member: why it failed.
    pub error: Option<String>,
    pub context_window: Option<CompactedWindow>,
}

/// The context after a compaction, in tokens of the model.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactedWindow {
    pub token_limit: u64,
    pub current_tokens: u64,
    pub messages_length: u64,
    pub system_tokens: u64,
    pub conversation_tokens: u64,
    pub tool_definitions_tokens: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handoff {
    /// Markdown; empty if the session has no messages.
    pub summary: String,
    /// Our own member: why the model could not be asked. The summary then has only what the log knows.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CompactionCancelled {
    pub cancelled: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CompactionAborted {
    pub aborted: bool,
}
