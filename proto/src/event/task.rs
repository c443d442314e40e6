//! Work that goes on beside the loop, as facts of the log, and what the model is told of its end.
//!
//! The `loopd.task_*` facts are folded into the one registry of a session; a notification is a
//! public event, because it is part of the conversation.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{ShellId, TaskId, ToolCallId};
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
pub struct TasksHeard {
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
