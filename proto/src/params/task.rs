//! Methods about what goes on beside the loop.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::task::ShellAttachment;
use crate::id::{SessionId, TaskId};
use crate::time::Timestamp;

/// Names one task of a session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOf {
    pub session_id: SessionId,
    pub id: TaskId,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct TaskList {
    pub tasks: Vec<TaskInfo>,
}

/// One task, by its kind.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum TaskInfo {
    Shell(ShellInfo),
}

/// A command in a shell.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellInfo {
    pub id: TaskId,
    pub description: String,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub command: String,
    pub attachment_mode: ShellAttachment,
    pub execution_mode: Option<Execution>,
    pub can_promote_to_background: Option<bool>,
    pub log_path: Option<String>,
    pub pid: Option<u32>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Idle,
    Completed,
    Failed,
    Cancelled,
}

/// Whether the loop waits for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Execution {
    Sync,
    Background,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ProgressResult {
    /// Null when there is no such task.
    pub progress: Option<Progress>,
}

/// How a task gets on, by its kind.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Progress {
    Shell(ShellProgress),
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellProgress {
    pub recent_output: String,
    pub pid: Option<u32>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct MaybeTask {
    pub task: Option<TaskInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Promoted {
    pub promoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Cancelled {
    pub cancelled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Removed {
    pub removed: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageParams {
    pub session_id: SessionId,
    pub id: TaskId,
    pub message: String,
    #[serde(default)]
    pub from_agent_id: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct MessageSent {
    pub sent: bool,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartAgentParams {
    pub session_id: SessionId,
    pub agent_type: String,
    pub prompt: String,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStarted {
    pub agent_id: TaskId,
}
