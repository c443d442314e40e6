//! Background tasks: their events, and the notifications by which the model learns of their end.
//!
//! The `loopd.task_*` events are folded into the task registry of the session. A notification is a
//! public event, because it is part of the conversation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::session::ModelMetrics;
use crate::id::{SessionId, ShellId, TaskId, ToolCallId};
use crate::run_scope::{CommandRun, ToolLimits};
use crate::time::Timestamp;

/// A task has started.
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

/// The kinds of tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TaskWork {
    Shell(ShellWork),
    Agent(Box<AgentWork>),
    /// Work that a client or an MCP server does.
    External(ExternalWork),
}

impl TaskWork {
    pub fn is_agent(&self) -> bool {
        matches!(self, Self::Agent(_))
    }

    /// Returns whether it is an agent that works in a copy of a repository.
    pub fn has_worktree(&self) -> bool {
        matches!(self, Self::Agent(agent) if agent.worktree.is_some())
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
    /// The file to which its messages and tool calls are written while it runs.
    pub output_file: Option<String>,
    pub worktree: Option<WorktreeWork>,
    /// The todo that it carries out as a worker of a fleet.
    pub todo: Option<String>,
    /// The slash command that it carries out.
    pub command: Option<CommandRun>,
    /// What narrowed the run that started it.
    #[serde(default, skip_serializing_if = "ToolLimits::is_empty")]
    pub limits: ToolLimits,
}

/// A copy of a repository that an agent works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeWork {
    pub id: String,
    pub path: String,
    /// The agent's working directory inside the copy.
    pub cwd: String,
    pub repository: String,
    pub commit: String,
    /// The top folder that was copied, under the names by which rules may know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<String>,
}

/// Work that others do: a client, or an MCP server.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalWork {
    /// What does it, such as `client-task` or `mcp-task`.
    pub agent_type: String,
    pub prompt: String,
    /// The task on an MCP server, which the daemon follows.
    #[serde(default)]
    pub mcp: Option<McpTaskWork>,
}

/// A task on an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpTaskWork {
    pub server: String,
    /// The name of the tool on its server.
    pub tool: String,
    /// The name of the task on its server.
    pub task_id: String,
    pub dialect: McpTaskDialect,
}

/// The two ways in which MCP servers have tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpTaskDialect {
    /// The caller wants a task, and fetches its result.
    Requested,
    /// The server makes a task of a call by itself: the extension `io.modelcontextprotocol/tasks`.
    Extension,
}

/// Whether the loop waits for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Execution {
    Sync,
    Background,
}

/// The usage of a task since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkUsage {
    pub tool_calls: u64,
    pub api_duration_ms: u64,
    pub nano_credits: u64,
    /// The cost in billionths of a US dollar, as far as the models have prices.
    pub nano_usd: u64,
    pub models: BTreeMap<String, ModelMetrics>,
}

impl WorkUsage {
    /// Returns the input and output tokens of all models.
    pub fn tokens(&self) -> u64 {
        let used = self.models.values().map(|model| &model.usage);
        let used = used.flat_map(|usage| [usage.input_tokens, usage.output_tokens]);
        used.fold(0, u64::saturating_add)
    }

    /// Adds the usage of other work.
    pub fn add(&mut self, other: &Self) {
        self.tool_calls += other.tool_calls;
        self.api_duration_ms += other.api_duration_ms;
        self.nano_credits = self.nano_credits.saturating_add(other.nano_credits);
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
        for (model, metrics) in &other.models {
            self.models.entry(model.clone()).or_default().add(metrics);
        }
    }
}

/// The task was moved to the background; the model will be notified of its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskPromoted {
    pub id: TaskId,
}

/// An agent has answered and is idle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskAnswered {
    pub id: TaskId,
    pub response: String,
    pub usage: WorkUsage,
    pub answered_at: Timestamp,
}

/// An idle or ended agent is running again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskContinued {
    pub id: TaskId,
    pub message: String,
    pub continued_at: Timestamp,
}

/// The progress of a task that the daemon only lists.
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
    /// The agent that started it and left it running.
    pub agent: Option<TaskId>,
}

/// Whether a command ends with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellAttachment {
    Attached,
    Detached,
}

/// The process of a task, which was announced before the process started.
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
    /// Why it ended, if it did not end by itself.
    pub reason: Option<String>,
    /// Its result, complete or partial.
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

/// The model has learned of the end of these tasks by other means; no notification is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TasksDelivered {
    pub ids: Vec<TaskId>,
}

/// These tasks are no longer listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TasksRemoved {
    pub ids: Vec<TaskId>,
}

/// A message of the daemon to the model, in the place of a user message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemNotification {
    pub content: String,
    pub kind: NotificationKind,
}

/// Where an agent worked and what it used, for programs that read a notification.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentRunFacts {
    /// The session that it works in.
    pub session_id: Option<SessionId>,
    /// Whether it was stopped before it was done; its status then reads `failed`.
    pub cancelled: Option<bool>,
    pub total_tool_calls: Option<u64>,
    pub total_tokens: Option<u64>,
    pub duration_ms: Option<u64>,
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
        /// `completed` or `failed`; a cancelled agent counts as failed.
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        #[serde(flatten)]
        run: AgentRunFacts,
    },
    AgentIdle {
        agent_id: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_name: Option<String>,
        agent_type: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// `idle`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<String>,
        #[serde(flatten)]
        run: AgentRunFacts,
    },
    ShellCompleted {
        shell_id: ShellId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The agent that started the command, if it is not the one that is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<TaskId>,
    },
    ShellDetachedCompleted {
        shell_id: ShellId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The agent that started the command, if it is not the one that is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<TaskId>,
    },
}

impl NotificationKind {
    /// Returns the task that the notification is about.
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

/// A command in a shell waits for input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellWaiting {
    pub shell_id: ShellId,
    pub command: String,
    /// The output that it shows while it waits.
    pub shown: String,
}
