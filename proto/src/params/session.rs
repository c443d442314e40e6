//! Methods about sessions as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::fact::ClientRef;
use crate::event::session::WorkContext;
use crate::id::{EventId, MessageId, SessionId};
use crate::json::group;
use crate::run_scope::RunScope;
use crate::session::members::{self, Request, WithoutEffect};
use crate::time::Timestamp;

/// The parameters of a method that only needs a session.
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

/// Whether a request succeeded, and if not, why.
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

/// A summary of a stored session.
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
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct SendParams {
    pub session_id: SessionId,
    pub prompt: String,
    /// Our own member: makes a repeated send harmless.
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
    /// The tool that the model must have when the message begins, else the message fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_tool: Option<String>,
    /// Our own member: what the message sets for its run only, as `session.commands.invoke` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_scope: Option<Box<RunScope>>,
    /// Whether the answer comes when the run of the message has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// The members that have no effect.
    #[serde(skip)]
    pub without_effect: Vec<WithoutEffect>,
}

impl SendParams {
    /// Reads a message; the error names the member that is wrong.
    fn read<E: serde::de::Error>(object: &RawValue) -> Result<Self, E> {
        let without_effect = members::checked(Request::Send, object)?;
        let SendFields(params) = group(object)?;
        Ok(Self {
            without_effect,
            ..params
        })
    }
}

impl<'de> Deserialize<'de> for SendParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(&Box::<RawValue>::deserialize(deserializer)?)
    }
}

impl Serialize for SendParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// The members of a message as they are.
pub(crate) struct SendFields(SendParams);

impl<'de> Deserialize<'de> for SendFields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SendParams::deserialize(deserializer).map(Self)
    }
}

/// When a message is delivered to the loop.
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

/// Stops the running turn.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub reason: Option<AbortReason>,
}

/// Why a turn is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AbortReason {
    #[default]
    UserInitiated,
    RemoteCommand,
    UserAbort,
    AutopilotCreditLimit,
}

impl AbortReason {
    /// Returns the name of the reason in the public schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserInitiated => "user_initiated",
            Self::RemoteCommand => "remote_command",
            Self::UserAbort => "user_abort",
            Self::AutopilotCreditLimit => "autopilot_credit_limit",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aborted {
    pub success: bool,
    /// Our own member: the caller's waiting messages, which left the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_message_ids: Vec<MessageId>,
}

/// Stops the running turn; background work goes on.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InterruptParams {
    pub session_id: SessionId,
    /// Whether the caller's waiting messages stay, and run next.
    #[serde(default)]
    pub flush_queued: bool,
    /// Our own member: nothing happens unless the running turn answers this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_message_id: Option<MessageId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    pub interrupted: bool,
    /// Our own member: the caller's waiting messages, which left the queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_message_ids: Vec<MessageId>,
    /// Our own member: the message that the running turn answers, if it was spared because of
    /// `onlyMessageId`.
    pub running_message_id: Option<MessageId>,
    /// Our own member: the client that sent that message.
    pub running_by: Option<ClientRef>,
}

/// A message, and the end of the wait.
#[derive(Debug, Clone, Serialize)]
pub struct SendAndWaitParams {
    #[serde(flatten)]
    pub send: SendParams,
    /// Our own member: clients of the official SDKs wait until the session is idle.
    #[serde(rename = "loopdUntil")]
    pub until: Until,
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// The session is idle: background tasks of the message have ended, too.
    #[default]
    Idle,
    /// The run that the message started, or joined, has ended.
    Answer,
    /// The autopilot has stopped with the message, or the session is idle.
    Task,
}

impl<'de> Deserialize<'de> for SendAndWaitParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct WaitFields {
            #[serde(rename = "loopdUntil")]
            until: Until,
        }
        let object = Box::<RawValue>::deserialize(deserializer)?;
        let own: WaitFields = group(&object)?;
        Ok(Self {
            send: SendParams::read(&object)?,
            until: own.until,
        })
    }
}

/// The outcome of a message.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    pub message_id: MessageId,
    /// Whether its run was aborted, or the message removed before it ran.
    pub aborted: bool,
    /// The `assistant.message` event that answers it.
    pub response: Option<Box<RawValue>>,
    /// The event that ended the wait, as it was sent on this connection; absent if the message had
    /// already ended or left the queue.
    pub completion_event_id: Option<EventId>,
}

/// The data of the error when a run failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionFailure {
    /// The `session.error` event of the failure.
    pub completion_event_id: EventId,
}
