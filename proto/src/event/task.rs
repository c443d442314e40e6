//! Work that goes on beside the loop, as facts of the log, and what the model is told of its end.
//!
//! The `loopd.task_*` facts are folded into the one registry of a session; a notification is a
//! public event, because it is part of the conversation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::session::ModelMetrics;
use crate::id::{SessionId, ShellId, TaskId, ToolCallId};
use crate::time::Timestamp;

/// A task began to go on in the background.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStarted {
    pub id: TaskId,
    /// The call that started it.
    pub tool_call_id: Option<ToolCallId>,
    /// What it does, in a few words for people.
    pub description: String,
    pub started_at: Timestamp,
    pub work: TaskWork,
}

/// What a task is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TaskWork {
    Shell(ShellWork),
    Agent(Box<AgentWork>),
    /// Work that somebody else does: a client, or a server of tools.
    External(ExternalWork),
}

impl TaskWork {
    pub fn is_agent(&self) -> bool {
        matches!(self, Self::Agent(_))
    }
}

/// An agent in a session of its own.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentWork {
    /// Which agent of the catalogue it is, or `fork`.
    pub agent_type: String,
    /// What people and models call it.
    pub name: String,
    pub prompt: String,
    /// The session it works in; its log is the transcript.
    pub session_id: SessionId,
    pub execution: Execution,
    /// The model it was given.
    pub model: Option<String>,
    /// The model that the call named.
    pub requested_model: Option<String>,
    /// Where what it says and does can be read while it works.
    pub output_file: Option<String>,
    pub worktree: Option<WorktreeWork>,
}

/// A copy of a repository that an agent works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeWork {
    pub id: String,
    pub path: String,
    /// Where in it the agent works.
    pub cwd: String,
    pub repository: String,
    pub commit: String,
}

/// Work that the registry only keeps account of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalWork {
    /// What does it, such as `client-task` or `mcp-task`.
    pub agent_type: String,
    pub prompt: String,
}

/// Whether the loop waits for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Execution {
    Sync,
    Background,
}

/// What work took, since its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkUsage {
    pub tool_calls: u64,
    pub api_duration_ms: u64,
    pub nano_credits: u64,
    pub models: BTreeMap<String, ModelMetrics>,
}

impl WorkUsage {
    /// Tokens in and out, of all models.
    pub fn tokens(&self) -> u64 {
        let used = self.models.values().map(|model| &model.usage);
        used.map(|usage| usage.input_tokens + usage.output_tokens)
            .sum()
    }

    /// Adds what other work took.
    pub fn add(&mut self, other: &Self) {
        self.tool_calls += other.tool_calls;
        self.api_duration_ms += other.api_duration_ms;
        self.nano_credits = self.nano_credits.saturating_add(other.nano_credits);
        for (model, metrics) in &other.models {
            self.models.entry(model.clone()).or_default().add(metrics);
        }
    }
}

/// Nobody waits for the task any more; its end will be told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskPromoted {
    pub id: TaskId,
}

/// An agent has answered and waits for more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAnswered {
    pub id: TaskId,
    pub response: String,
    pub usage: WorkUsage,
    pub answered_at: Timestamp,
}

/// An agent that had come to rest works again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskContinued {
    pub id: TaskId,
    pub message: String,
    pub continued_at: Timestamp,
}

/// How far a task is that the registry only keeps account of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskNoted {
    pub id: TaskId,
    pub note: String,
}

/// A command in a shell.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellWork {
    pub shell_id: ShellId,
    pub command: String,
    pub attachment: ShellAttachment,
    pub pid: Option<u32>,
    /// Where a detached command writes.
    pub log_path: Option<String>,
}

/// Whether a command lives and dies with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellAttachment {
    Attached,
    Detached,
}

/// The process of a task that was announced before it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskProcess {
    pub id: TaskId,
    pub pid: u32,
}

/// A task ended.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEnded {
    pub id: TaskId,
    pub outcome: TaskOutcome,
    pub exit_code: Option<i32>,
    /// Why it ended, when it did not end by itself.
    pub reason: Option<String>,
    /// What it came to, or how far it got.
    pub result: Option<String>,
    pub usage: Option<WorkUsage>,
    pub ended_at: Timestamp,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOutcome {
    Completed,
    Failed,
    Cancelled,
}

/// The model knows these tasks' ends by other means; it is not notified of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TasksDelivered {
    pub ids: Vec<TaskId>,
}

/// These tasks are no longer listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TasksRemoved {
    pub ids: Vec<TaskId>,
}

/// Something that the runtime tells the model in the user's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemNotification {
    pub content: String,
    pub kind: NotificationKind,
}

/// What a notification is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum NotificationKind {
    AgentCompleted {
        agent_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        agent_type: String,
        /// `completed` or `failed`; who was cancelled has failed.
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
    },
    AgentIdle {
        agent_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        agent_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    ShellCompleted {
        shell_id: ShellId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    ShellDetachedCompleted {
        shell_id: ShellId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

impl NotificationKind {
    /// The task whose end is told.
    pub fn task(&self) -> TaskId {
        match self {
            Self::AgentCompleted { agent_id, .. } | Self::AgentIdle { agent_id, .. } => {
                agent_id.clone()
            }
            Self::ShellCompleted { shell_id, .. }
            | Self::ShellDetachedCompleted { shell_id, .. } => TaskId::new(shell_id.as_str()),
        }
    }
}

/// A command in a shell waits for somebody to type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellWaiting {
    pub shell_id: ShellId,
    pub command: String,
    /// What it shows while it waits.
    pub shown: String,
}
