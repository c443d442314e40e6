//! Commands about background tasks: their start, answers and end.

use loopd_proto::event::task::{TaskOutcome, TaskWork, WorkUsage};
use loopd_proto::id::{TaskId, ToolCallId};
use loopd_proto::time::Timestamp;

/// A background task that starts.
#[derive(Debug)]
pub struct TaskStart {
    pub id: TaskId,
    pub call: Option<ToolCallId>,
    pub description: String,
    /// When the task began, if that was before this command.
    pub started_at: Option<Timestamp>,
    pub work: TaskWork,
}

/// How a background task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEnd {
    pub outcome: TaskOutcome,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    /// The result of the task, or its progress so far.
    pub result: Option<String>,
    pub usage: Option<WorkUsage>,
    /// Whether the model learns of the end in another way.
    pub delivered: bool,
    /// Whether the daemon stopped while the task was at work.
    pub lost: bool,
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
            lost: false,
        }
    }

    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// An answer of an agent, which is idle afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskAnswer {
    pub response: String,
    pub usage: WorkUsage,
    /// Whether the model learns of the answer in another way.
    pub delivered: bool,
}

/// What an agent's own log says of its answer or end, when the daemon stopped before the parent's
/// log recorded it.
#[derive(Debug, Clone, PartialEq)]
pub enum RecoveredOutcome {
    Answered(TaskId, TaskAnswer),
    Ended(TaskId, TaskEnd),
    /// The agent waits for an answer that can still come, or one below it does.
    Waits(TaskId),
}

impl RecoveredOutcome {
    pub fn task(&self) -> &TaskId {
        match self {
            Self::Answered(id, _) | Self::Ended(id, _) | Self::Waits(id) => id,
        }
    }
}
