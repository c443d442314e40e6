//! The autopilot of a session: its state, and whether it is paused.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::autopilot::{AutopilotStopped, TaskComplete};
use crate::id::{MessageId, SessionId};
use crate::session::Mode;

/// What the autopilot of a session does.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutopilotStatus {
    pub mode: Mode,
    /// Whether the agent would be told to go on when it stops now.
    pub active: bool,
    pub paused: bool,
    /// Whether the model has the tool `task_complete`.
    pub offers_task_complete: bool,
    /// How often the agent was told to go on since the last message of a person.
    pub continues: u64,
    pub max_continues: u64,
    /// How many of these, the last ones in a row, led to no tool call.
    pub continues_without_tool_call: u64,
    /// The message that the agent works on, or would go on with.
    pub request_id: Option<MessageId>,
    /// The last call of `task_complete` since the last message of a person.
    pub completion: Option<TaskComplete>,
    /// Why the agent was not told to go on any more, the last time.
    pub last_stop: Option<AutopilotStopped>,
}

/// Pauses the autopilot, or lets it go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseParams {
    pub session_id: SessionId,
    pub paused: bool,
}

/// Whether this changed anything, and the state after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    pub changed: bool,
    #[serde(flatten)]
    pub status: AutopilotStatus,
}
