//! Events of the autopilot: how a task ended, why the agent is not told to go on, and the marks that
//! only the daemon reads.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::MessageId;

/// The model called `task_complete`. The task is complete unless `success` is false.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskComplete {
    /// What was done, in the words of the model.
    pub summary: Option<String>,
    pub success: Option<bool>,
    pub outcome: Option<CompletionOutcome>,
    /// Why the task is not complete: what the model needs, or why its call does not count.
    pub reason: Option<String>,
}

/// What became of a call of `task_complete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompletionOutcome {
    Completed,
    /// The call does not count, and the agent goes on.
    Continue,
    /// The agent needs something that it cannot get by itself.
    Blocked,
}

/// The agent is not told to go on with a request any more.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutopilotStopped {
    pub reason: StopReason,
    /// The message that the agent worked on.
    pub request_id: Option<MessageId>,
    /// Our own member: the reason in words, and what can be done.
    pub message: Option<String>,
}

/// Why the agent is not told to go on. The public schema names the first four; its list is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    TaskComplete,
    /// The agent was told to go on as often as it may be, or too often without a tool call.
    CapReached,
    Aborted,
    Error,
    /// The model said that it cannot go on without somebody else.
    Blocked,
    /// A person rejected a tool call.
    Rejected,
}

impl StopReason {
    /// Returns the name of the reason on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskComplete => "task_complete",
            Self::CapReached => "cap_reached",
            Self::Aborted => "aborted",
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Rejected => "rejected",
        }
    }
}

/// The autopilot told the model to go on, with the user message before this event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Nudged {
    /// The message whose work goes on.
    pub request_id: MessageId,
    /// The tool without which the model is not told to go on.
    pub required_tool: String,
}

/// Whether the autopilot tells the model to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutopilotPaused {
    pub paused: bool,
}
