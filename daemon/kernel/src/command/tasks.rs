//! Background work: how it starts and how it ends.

use loopd_proto::event::task::{TaskOutcome, TaskWork, WorkUsage};
use loopd_proto::id::{TaskId, ToolCallId};
use loopd_proto::time::Timestamp;

/// Something that goes on in the background from now on.
#[derive(Debug)]
pub struct TaskStart {
    pub id: TaskId,
    pub call: Option<ToolCallId>,
    pub description: String,
    /// When it began, if that was earlier.
    pub started_at: Option<Timestamp>,
    pub work: TaskWork,
}

/// How something in the background ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    pub outcome: TaskOutcome,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    /// What it came to, or how far it got.
    pub result: Option<String>,
    pub usage: Option<WorkUsage>,
    /// Whether the model learns of it by other means.
    pub delivered: bool,
}

impl TaskEnd {
    pub fn new(outcome: TaskOutcome) -> Self {
        Self {
            outcome,
            exit_code: None,
            reason: None,
            result: None,
            usage: None,
            delivered: false,
        }
    }

    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// What an agent answered before it came to rest.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAnswer {
    pub response: String,
    pub usage: WorkUsage,
    /// Whether the model learns of it by other means.
    pub delivered: bool,
}

/// What became of an agent, by its own log, when the daemon stopped before its parent was told.
#[derive(Debug, Clone, PartialEq)]
pub enum RecoveredOutcome {
    Answered(TaskId, TaskAnswer),
    Ended(TaskId, TaskEnd),
}

impl RecoveredOutcome {
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Answered(id, _) | Self::Ended(id, _) => id,
        }
    }
}
