//! Events of a fleet: workers that carry out the todos of a session, several at a time.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{MessageId, TaskId};
use crate::run_scope::CommandRun;

/// A fleet begins, or a paused one goes on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStarted {
    /// How many workers may work at the same time.
    pub workers: u32,
    /// Which agent the workers are; the general one unless named.
    pub agent_type: Option<String>,
    /// How many todos it carries out at most; any number in logs of earlier builds.
    pub most_todos: Option<u32>,
    /// The message in whose run the todos are written. No worker starts before that run has ended.
    pub planned_by: Option<MessageId>,
    /// The run that the workers belong to, if it has limits.
    pub run: Option<CommandRun>,
}

/// A todo is given to a worker.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetAssigned {
    pub todo: String,
    /// The worker that goes on with it; `None` if a new one starts.
    pub task: Option<TaskId>,
}

/// The daemon or the session ended while a worker was at this todo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetInterrupted {
    pub todo: String,
}

/// What became of a todo.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettled {
    pub todo: String,
    pub outcome: FleetOutcome,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetOutcome {
    Done,
    Blocked,
    Cancelled,
}

/// The fleet has no more to do, or was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetEnded {
    pub reason: FleetEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetEnd {
    Finished,
    Stopped,
}

/// How far a fleet is. It is sent whenever that changes.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetProgress {
    pub total: usize,
    pub done: usize,
    pub blocked: usize,
    /// Those that wait for a worker or for other todos.
    pub waiting: usize,
    pub running: Vec<FleetWorker>,
    /// Set in the last report.
    pub ended: Option<FleetEnd>,
}

/// A todo that a worker is at.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetWorker {
    pub todo_id: String,
    /// The worker, once it has started.
    pub agent_id: Option<TaskId>,
}
