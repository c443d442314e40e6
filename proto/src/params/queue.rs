//! Methods about the queue of a session.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, RequestId, SessionId};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub items: Vec<PendingItem>,
    pub steering_messages: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingItem {
    pub id: MessageId,
    pub kind: String,
    pub display_text: String,
    pub agent_mode: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Removed {
    pub removed: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnqueueParams {
    pub session_id: SessionId,
    pub command: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Enqueued {
    pub queued: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RespondParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub result: QueuedCommandResult,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedCommandResult {
    pub handled: bool,
    #[serde(default)]
    pub stop_processing_queue: bool,
}
