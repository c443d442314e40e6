//! The one registry of what goes on beside the loop: a projection of the log, never told anything
//! but by events. `decide/tasks.rs` decides about it; `rpc` and the session's jobs read it.

use std::collections::BTreeMap;

use loopd_proto::event::task::{
    ShellAttachment, ShellWork, TaskEnded, TaskOutcome, TaskStarted, TaskWork,
};
use loopd_proto::id::{TaskId, ToolCallId};
use loopd_proto::time::Timestamp;

/// The tasks of a session, in the order of their ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tasks {
    all: BTreeMap<TaskId, Task>,
}

/// One piece of work in the background.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub call: Option<ToolCallId>,
    pub description: String,
    pub started_at: Timestamp,
    pub work: TaskWork,
    pub status: TaskStatus,
    pub told: Told,
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskStatus {
    Running,
    Ended(Ending),
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub outcome: TaskOutcome,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// Whether the model knows how a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    NotYet,
    /// By a notification, or because it looked or stopped the task itself.
    Yes,
}

impl Task {
    fn new(started: &TaskStarted) -> Self {
        Self {
            id: started.id.clone(),
            call: started.tool_call_id.clone(),
            description: started.description.clone(),
            started_at: started.started_at,
            work: started.work.clone(),
            status: TaskStatus::Running,
            told: Told::NotYet,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.status, TaskStatus::Running)
    }

    pub fn ending(&self) -> Option<&Ending> {
        match &self.status {
            TaskStatus::Running => None,
            TaskStatus::Ended(ending) => Some(ending),
        }
    }

    pub fn shell(&self) -> &ShellWork {
        match &self.work {
            TaskWork::Shell(shell) => shell,
        }
    }

    /// Whether the task lives in a process of its own that outlives the daemon.
    pub fn is_detached(&self) -> bool {
        self.shell().attachment == ShellAttachment::Detached
    }

    /// Whether the model still has to be told of the task's end.
    pub fn is_untold(&self) -> bool {
        self.told == Told::NotYet && !self.is_running()
    }
}

impl Tasks {
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.all.get(id)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.all.values()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tasks that run, those that outlive the daemon among them.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        self.iter().filter(|task| task.is_running())
    }

    /// The ended tasks that the model has not heard of, the first to end first.
    pub fn untold(&self) -> Vec<&Task> {
        let mut untold: Vec<&Task> = self.iter().filter(|task| task.is_untold()).collect();
        untold.sort_by_key(|task| task.ending().map(|ending| ending.at));
        untold
    }

    pub(super) fn started(&mut self, started: &TaskStarted) {
        self.all.insert(started.id.clone(), Task::new(started));
    }

    pub(super) fn has_process(&mut self, id: &TaskId, process: u32) {
        if let Some(task) = self.all.get_mut(id) {
            let TaskWork::Shell(shell) = &mut task.work;
            shell.pid = Some(process);
        }
    }

    pub(super) fn ended(&mut self, ended: &TaskEnded) {
        if let Some(task) = self.all.get_mut(&ended.id) {
            task.status = TaskStatus::Ended(Ending {
                outcome: ended.outcome,
                exit_code: ended.exit_code,
                reason: ended.reason.clone(),
                at: ended.ended_at,
            });
        }
    }

    pub(super) fn heard(&mut self, id: &TaskId) {
        if let Some(task) = self.all.get_mut(id) {
            task.told = Told::Yes;
        }
    }

    pub(super) fn removed(&mut self, id: &TaskId) {
        self.all.remove(id);
    }
}
