//! Compaction: a part of the conversation is replaced by a summary. Nothing leaves the log.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{RequestId, Seq};

/// What began a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// The context has reached a threshold.
    Threshold,
    /// The provider said that the request is too long.
    ContextLimitRetry,
    /// A person or a client asked for it.
    Manual,
}

/// A compaction begins. All numbers are tokens of the model.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionStart {
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub current_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    pub model: Option<String>,
    pub trigger: Option<CompactionTrigger>,
}

/// A compaction has ended. If it failed, the conversation is what it was.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionComplete {
    pub success: bool,
    /// Why it failed.
    pub error: Option<String>,
    /// The HTTP status of the failed model call.
    pub status_code: Option<u16>,
    pub pre_compaction_tokens: Option<u64>,
    pub post_compaction_tokens: Option<u64>,
    pub pre_compaction_messages_length: Option<u64>,
    pub messages_removed: Option<u64>,
    /// Our own member: how many of them did not fit into the request for the summary, which does not
    /// cover them.
    pub messages_left_out: Option<u64>,
    /// Negative if the summary is longer than what it replaces.
    pub tokens_removed: Option<i64>,
    pub summary_content: Option<String>,
    /// The provider's tracing id of the model call.
    pub request_id: Option<String>,
    pub custom_instructions: Option<String>,
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    pub trigger: Option<CompactionTrigger>,
    pub compaction_tokens_used: Option<CompactionTokens>,
}

/// What the model call for a summary used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionTokens {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
    /// In milliseconds.
    pub duration: u64,
    pub model: String,
}

/// The conversation was cleared: the model reads nothing any more of what was said before.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextCleared {
    pub messages_cleared: u64,
    /// The message that the conversation begins anew with, if it came with the clear.
    pub initial_message: Option<String>,
}

/// Which part of the conversation is being summarised.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compacting {
    pub id: RequestId,
    /// The last position in the log whose entry the summary replaces.
    pub through: Seq,
    pub trigger: CompactionTrigger,
    /// What the person who asked for it wants the summary to dwell on.
    pub instructions: Option<String>,
}

/// A part of the conversation was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The last position in the log whose entry was replaced.
    pub through: Seq,
    /// What the model reads instead.
    pub text: String,
}
