//! Methods about sessions as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::session::WorkContext;
use crate::id::{EventId, MessageId, SessionId};
use crate::json::group;
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
    /// Wants the answer in a form that the provider enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Value>,
    /// Wants the message refused unless the model has this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_tool: Option<String>,
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

/// A message, and what to wait for.
#[derive(Debug, Clone, Serialize)]
pub struct SendAndWaitParams {
    #[serde(flatten)]
    pub send: SendParams,
    /// Ours: clients of the official SDKs wait until the session is idle.
    #[serde(rename = "loopdUntil")]
    pub until: Until,
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The session is idle: whatever the message set off has ended, too.
    #[default]
    Idle,
    /// The run that the message started, or joined, has ended.
    Answer,
}

impl<'de> Deserialize<'de> for SendAndWaitParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Own {
            #[serde(rename = "loopdUntil")]
            until: Until,
        }
        let object = Box::<RawValue>::deserialize(deserializer)?;
        let own: Own = group(&object)?;
        Ok(Self {
            send: group(&object)?,
            until: own.until,
        })
    }
}

/// What became of a message.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    pub message_id: MessageId,
    /// Whether its run was aborted, or the message removed before it ran.
    pub aborted: bool,
    /// The `assistant.message` event that answers it.
    pub response: Option<Box<RawValue>>,
    /// The event that ended the wait, as it was sent on this connection; absent when the message had
    /// left the queue or ended before.
    pub completion_event_id: Option<EventId>,
}

/// What a refusal carries when a run failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionFailure {
    /// The `session.error` that says so.
    pub completion_event_id: EventId,
}
