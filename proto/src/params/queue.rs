//! Methods about the queue of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::fact::ClientRef;
use crate::id::{MessageId, RequestId, SessionId};
use crate::params::session::SendMode;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    pub items: Vec<PendingItem>,
    pub steering_messages: Vec<String>,
    /// Our own member: the same messages with their ids and senders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steering_items: Vec<PendingItem>,
    /// The message of the running turn, while `session.queue.withdrawMessage` can take it back.
    pub withdrawable_turn_message_id: Option<MessageId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingItem {
    pub id: MessageId,
    /// Absent for slash commands.
    pub message_id: Option<MessageId>,
    pub kind: String,
    pub display_text: String,
    /// Our own member: there was no room in the answer for the whole text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
    pub agent_mode: String,
    pub source: Option<String>,
    /// Our own member: the client that queued the item.
    pub sent_by: Option<ClientRef>,
}

/// The parameters of a method about one queued item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemParams {
    pub session_id: SessionId,
    pub id: MessageId,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveItemParams {
    pub session_id: SessionId,
    pub id: MessageId,
    /// Counted from 0. A position outside the queue means the nearer end.
    pub to_position: i64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Moved {
    /// Whether the item was at another position before.
    pub changed: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTextParams {
    pub session_id: SessionId,
    pub id: MessageId,
    pub prompt: String,
    /// The text that people see instead of the prompt; without it they see the prompt.
    pub display_prompt: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Updated {
    /// Whether the text was another one before.
    pub updated: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InsertParams {
    pub session_id: SessionId,
    /// Counted from 0. A position outside the queue means the nearer end.
    pub position: i64,
    pub message: InsertMessage,
}

/// A message to insert. The public schema has more members, which it says are ignored.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InsertMessage {
    pub prompt: String,
    pub display_prompt: Option<String>,
    pub attachments: Option<Vec<Attachment>>,
    pub agent_mode: Option<String>,
    pub source: Option<String>,
    pub required_tool: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_headers: BTreeMap<String, String>,
    /// Checked and otherwise ignored: the position says where the message goes.
    pub mode: Option<SendMode>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Inserted {
    pub id: MessageId,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Steered {
    /// Whether the message joins the running turn; false if no turn runs.
    pub steered: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithdrawParams {
    pub session_id: SessionId,
    pub message_id: MessageId,
    /// The message stays if it has another text by now.
    pub expected_prompt: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Withdrawn {
    /// Whether the message left the queue, or the turn that was about to answer it.
    pub removed: bool,
    /// Whether a turn was stopped for that.
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Removed {
    pub removed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnqueueParams {
    pub session_id: SessionId,
    pub command: String,
    /// Our own member: the text that people see instead of the command.
    #[serde(default)]
    pub display_text: Option<String>,
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
