//! Methods about sessions as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::session::WorkContext;
use crate::id::{EventId, MessageId, SessionId};
use crate::time::Timestamp;

/// Parameters that name a session and nothing else.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Of {
    pub session_id: SessionId,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Success {
    pub success: bool,
}

impl Success {
    pub const YES: Self = Self { success: true };
}

/// Whether it worked, and if not, why.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deleted {
    pub success: bool,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ListParams {
    pub filter: Option<ListFilter>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListFilter {
    pub cwd: Option<String>,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    pub branch: Option<String>,
}

/// A stored session at a glance.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub session_id: SessionId,
    pub start_time: Timestamp,
    pub modified_time: Timestamp,
    pub summary: Option<String>,
    pub name: Option<String>,
    pub client_name: Option<String>,
    pub is_remote: bool,
    #[serde(default)]
    pub is_detached: bool,
    pub context: Option<WorkContext>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Listed {
    pub sessions: Vec<Metadata>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Found {
    pub session: Option<Metadata>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastId {
    pub session_id: Option<SessionId>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub to_event_id: Option<EventId>,
    #[serde(default)]
    pub name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    pub session_id: SessionId,
    pub name: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendParams {
    pub session_id: SessionId,
    pub prompt: String,
    /// Ours: makes a repeated send harmless.
    #[serde(default)]
    pub message_id: Option<MessageId>,
    #[serde(default)]
    pub display_prompt: Option<String>,
    #[serde(default)]
    pub attachments: Option<Vec<Attachment>>,
    #[serde(default)]
    pub mode: SendMode,
    #[serde(default)]
    pub prepend: bool,
    #[serde(default)]
    pub agent_mode: Option<String>,
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    #[serde(default)]
    pub source: Option<String>,
}

/// When a message wants to be heard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SendMode {
    #[default]
    Enqueue,
    Immediate,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    pub message_id: MessageId,
}
