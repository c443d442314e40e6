//! Methods about tasks: sub-agents, background shells and work of clients.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use crate::event::task::Execution;
use crate::event::task::ShellAttachment;
use crate::id::{SessionId, TaskId};
use crate::time::Timestamp;

/// The parameters of a method that only needs a task.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOf {
    pub session_id: SessionId,
    pub id: TaskId,
}

/// How far an agent is, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct TaskSummary {
    pub summary: String,
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
    Agent(Box<AgentInfo>),
}

impl TaskInfo {
    pub fn id(&self) -> &TaskId {
        match self {
            Self::Shell(shell) => &shell.id,
            Self::Agent(agent) => &agent.id,
        }
    }
}

/// An agent, or work of a client or an MCP server.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    pub id: TaskId,
    pub tool_call_id: String,
    pub display_name: Option<String>,
    pub description: String,
    pub status: Status,
    pub started_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub active_time_ms: Option<u64>,
    pub active_started_at: Option<Timestamp>,
    pub error: Option<String>,
    pub agent_type: String,
    pub prompt: String,
    pub result: Option<String>,
    pub model: Option<String>,
    pub resolved_model: Option<String>,
    pub execution_mode: Option<Execution>,
    pub can_promote_to_background: Option<bool>,
    pub latest_response: Option<String>,
    pub idle_since: Option<Timestamp>,
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

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Idle,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct ProgressResult {
    /// Null if there is no such task.
    pub progress: Option<Progress>,
}

/// The progress of a task, by its kind.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Progress {
    Shell(ShellProgress),
    Agent(AgentProgress),
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentProgress {
    pub recent_activity: Vec<Step>,
    pub latest_intent: Option<String>,
}

/// One step of an agent.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Step {
    pub message: String,
    pub timestamp: Timestamp,
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

/// The tasks of a session, and below each live agent its own tasks.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct TaskTree {
    pub tasks: Vec<TaskNode>,
}

/// One task, its progress, and the tasks below it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskNode {
    pub task: TaskInfo,
    pub latest_intent: Option<String>,
    pub tool_calls: u64,
    pub tokens: u64,
    /// The session that an agent works in.
    pub session_id: Option<SessionId>,
    pub output_file: Option<String>,
    pub worktree: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<TaskNode>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    pub session_id: SessionId,
    /// The id or the name of an agent.
    pub id: TaskId,
    /// How many seconds to wait for its answer.
    #[serde(default)]
    pub wait: Option<f64>,
}

/// The answers of an agent so far.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct TaskRead {
    pub node: TaskNode,
    pub turns: Vec<AnswerRead>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct AnswerRead {
    pub response: String,
    pub at: Timestamp,
}

/// Work of a client that is listed with the other tasks.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisterParams {
    pub session_id: SessionId,
    pub id: TaskId,
    pub description: String,
    #[serde(default)]
    pub prompt: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Registered {
    pub registered: bool,
}

/// The progress or the end of a client's work.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateParams {
    pub session_id: SessionId,
    pub id: TaskId,
    #[serde(flatten)]
    pub update: Update,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Update {
    Running { note: String },
    Completed { result: String },
    Failed { error: String },
    Cancelled {},
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Updated {
    pub updated: bool,
}
