//! The only registry of a session's background tasks. It is a projection of the log and changes
//! only through events.
//!
//! `decide/tasks.rs` decides about tasks. `rpc`, the session's shells and its agents read the
//! registry.

use std::collections::{BTreeMap, BTreeSet};

use loopd_proto::event::task::{
    AgentWork, Execution, ExternalWork, ShellAttachment, ShellWork, TaskAnswered, TaskContinued,
    TaskEnded, TaskOutcome, TaskStarted, TaskWork, WorkUsage,
};
use loopd_proto::id::{MessageId, Seq, TaskId, ToolCallId};
use loopd_proto::time::Timestamp;

use super::budget::Spend;
use super::policy::copies::RepositoryCopy;

/// The type of the warning that notifications start no more runs.
pub(crate) const WAKE_LIMIT: &str = "wake_limit";

/// The tasks of a session, ordered by id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tasks {
    all: BTreeMap<TaskId, Task>,
    /// The ids of agents that are no longer listed. No other agent gets them.
    removed: BTreeSet<TaskId>,
}

/// One background task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    /// The message whose run started the task, or last gave it something to do.
    pub origin: Option<MessageId>,
    /// The position in the log where the task was last given something to do.
    pub ordered: Seq,
    pub call: Option<ToolCallId>,
    pub description: String,
    pub started_at: Timestamp,
    pub work: TaskWork,
    pub status: TaskStatus,
    pub told: Told,
    /// The answers of an agent so far, oldest first.
    pub turns: Vec<Answered>,
    /// What the task used so far, as last reported.
    pub usage: WorkUsage,
    /// What model calls for the task used, each reported while the session had limits.
    pub spent: Spend,
    /// When the task began to work; `None` while it does not.
    pub active_since: Option<Timestamp>,
    /// How long the task worked before `active_since`.
    pub active_ms: u64,
    /// The last progress note about the task.
    pub note: Option<String>,
}

/// One answer of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub response: String,
    pub at: Timestamp,
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskStatus {
    Running,
    /// The agent has answered and waits for more. It does not count against the limit on running
    /// agents.
    Idle {
        since: Timestamp,
    },
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

/// Whether the model knows how a task ended or what it last answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    NotYet,
    /// The model knows from a notification or from the result of the call that waited for the task,
    /// or because the model looked at the task or stopped it.
    Yes,
}

/// How many answers of one agent are kept. Earlier ones are in its own log.
const TURNS_KEPT: usize = 64;

impl Task {
    fn new(started: &TaskStarted, origin: Option<MessageId>, ordered: Seq) -> Self {
        Self {
            id: started.id.clone(),
            origin,
            ordered,
            call: started.tool_call_id.clone(),
            description: started.description.clone(),
            started_at: started.started_at,
            work: started.work.clone(),
            status: TaskStatus::Running,
            told: Told::NotYet,
            turns: Vec::new(),
            usage: WorkUsage::default(),
            spent: Spend::default(),
            active_since: Some(started.started_at),
            active_ms: 0,
            note: None,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.status, TaskStatus::Running)
    }

    pub fn is_idle(&self) -> bool {
        matches!(self.status, TaskStatus::Idle { .. })
    }

    pub fn ending(&self) -> Option<&Ending> {
        match &self.status {
            TaskStatus::Running | TaskStatus::Idle { .. } => None,
            TaskStatus::Ended(ending) => Some(ending),
        }
    }

    pub fn shell(&self) -> Option<&ShellWork> {
        match &self.work {
            TaskWork::Shell(shell) => Some(shell),
            TaskWork::Agent(_) | TaskWork::External(_) => None,
        }
    }

    pub fn agent(&self) -> Option<&AgentWork> {
        match &self.work {
            TaskWork::Agent(agent) => Some(agent),
            TaskWork::Shell(_) | TaskWork::External(_) => None,
        }
    }

    pub fn external(&self) -> Option<&ExternalWork> {
        match &self.work {
            TaskWork::External(external) => Some(external),
            TaskWork::Shell(_) | TaskWork::Agent(_) => None,
        }
    }

    /// Whether the task is a process that outlives the daemon.
    pub fn is_detached(&self) -> bool {
        self.shell()
            .is_some_and(|shell| shell.attachment == ShellAttachment::Detached)
    }

    /// Whether the loop waits for the task.
    pub fn is_waited_for(&self) -> bool {
        self.is_running()
            && self
                .agent()
                .is_some_and(|agent| agent.execution == Execution::Sync)
    }

    /// Whether the task is a command that was stopped.
    pub fn is_stopped_command(&self) -> bool {
        let ending = self.ending();
        self.shell().is_some()
            && ending.is_some_and(|ending| ending.outcome == TaskOutcome::Cancelled)
    }

    /// Whether the task is a slash command at work whose answer a person gets. Its end starts no run;
    /// the conversation gets it as a note.
    pub fn answers_person(&self) -> bool {
        let is_command = self.agent().is_some_and(|agent| agent.command.is_some());
        is_command && self.is_running() && self.told == Told::Yes
    }

    /// Whether the model still has to be notified of the task's end or answer.
    pub fn is_undelivered(&self) -> bool {
        self.told == Told::NotYet && !self.is_running()
    }

    /// Returns when the task ended or became idle.
    pub fn rested_at(&self) -> Option<Timestamp> {
        match &self.status {
            TaskStatus::Running => None,
            TaskStatus::Idle { since } => Some(*since),
            TaskStatus::Ended(ending) => Some(ending.at),
        }
    }

    /// Returns how long the task has worked.
    pub fn worked_ms(&self, now: Timestamp) -> u64 {
        let current = self.active_since.map_or(0, |since| between(since, now));
        self.active_ms + current
    }

    pub fn latest_response(&self) -> Option<&str> {
        self.turns.last().map(|turn| turn.response.as_str())
    }

    fn rest(&mut self, status: TaskStatus, at: Timestamp) {
        self.status = status;
        if let Some(since) = self.active_since.take() {
            self.active_ms += between(since, at);
        }
    }

    fn answer(&mut self, response: &str, at: Timestamp) {
        if self.turns.len() >= TURNS_KEPT {
            self.turns.remove(0);
        }
        self.turns.push(Answered {
            response: response.to_owned(),
            at,
        });
    }
}

fn between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.0.saturating_sub(start.0)).unwrap_or(0)
}

impl Tasks {
    pub fn get(&self, id: &str) -> Option<&Task> {
        self.all.get(id)
    }

    /// Returns the task that a call started.
    pub fn by_call(&self, call: &ToolCallId) -> Option<&Task> {
        self.iter().find(|task| task.call.as_ref() == Some(call))
    }

    /// Returns the ids that are or were in use.
    pub fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.all.keys().chain(&self.removed)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.all.values()
    }

    /// Returns the copies of repositories that agents work or worked in.
    pub fn copies(&self) -> impl Iterator<Item = RepositoryCopy> {
        let agents = self.iter().filter_map(Task::agent);
        let copies = agents.filter_map(|agent| agent.worktree.as_ref());
        copies.map(RepositoryCopy::of_task)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the running tasks, including those that outlive the daemon.
    pub fn running(&self) -> impl Iterator<Item = &Task> {
        self.iter().filter(|task| task.is_running())
    }

    /// Whether agents are working. The model will be notified of their answers.
    pub fn has_agents_at_work(&self) -> bool {
        self.running().any(|task| task.agent().is_some())
    }

    /// Returns the tasks whose end or answer the model does not know yet, oldest completion first.
    pub fn undelivered(&self) -> Vec<&Task> {
        let mut undelivered: Vec<&Task> =
            self.iter().filter(|task| task.is_undelivered()).collect();
        undelivered.sort_by_key(|task| task.rested_at());
        undelivered
    }

    pub(super) fn started(&mut self, started: &TaskStarted, origin: Option<MessageId>, at: Seq) {
        let task = Task::new(started, origin, at);
        self.all.insert(started.id.clone(), task);
    }

    pub(super) fn has_process(&mut self, id: &TaskId, process: u32) {
        if let Some(task) = self.all.get_mut(id)
            && let TaskWork::Shell(shell) = &mut task.work
        {
            shell.pid = Some(process);
        }
    }

    pub(super) fn promoted(&mut self, id: &TaskId) {
        if let Some(task) = self.all.get_mut(id)
            && let TaskWork::Agent(agent) = &mut task.work
        {
            agent.execution = Execution::Background;
        }
    }

    pub(super) fn answered(&mut self, answered: &TaskAnswered) {
        if let Some(task) = self.all.get_mut(&answered.id) {
            let since = answered.answered_at;
            task.rest(TaskStatus::Idle { since }, since);
            task.answer(&answered.response, since);
            task.usage = answered.usage.clone();
            task.told = Told::NotYet;
        }
    }

    pub(super) fn continued(
        &mut self,
        continued: &TaskContinued,
        origin: Option<MessageId>,
        at: Seq,
    ) {
        if let Some(task) = self.all.get_mut(&continued.id) {
            task.origin = origin;
            task.ordered = at;
            task.status = TaskStatus::Running;
            task.active_since = Some(continued.continued_at);
            task.told = Told::NotYet;
            // The call that waited for the agent at first no longer does.
            if let TaskWork::Agent(agent) = &mut task.work {
                agent.execution = Execution::Background;
            }
        }
    }

    pub(super) fn spent(&mut self, id: &TaskId, spent: Spend) {
        if let Some(task) = self.all.get_mut(id) {
            task.spent = task.spent.plus(spent);
        }
    }

    pub(super) fn noted(&mut self, id: &TaskId, note: &str) {
        if let Some(task) = self.all.get_mut(id) {
            task.note = Some(note.to_owned());
        }
    }

    pub(super) fn ended(&mut self, ended: &TaskEnded) {
        if let Some(task) = self.all.get_mut(&ended.id) {
            let ending = Ending {
                outcome: ended.outcome,
                exit_code: ended.exit_code,
                reason: ended.reason.clone(),
                at: ended.ended_at,
            };
            task.rest(TaskStatus::Ended(ending), ended.ended_at);
            if let Some(result) = &ended.result {
                task.answer(result, ended.ended_at);
            }
            if let Some(usage) = &ended.usage {
                task.usage = usage.clone();
            }
        }
    }

    pub(super) fn delivered(&mut self, id: &TaskId) {
        if let Some(task) = self.all.get_mut(id) {
            task.told = Told::Yes;
        }
    }

    /// Counts the ends of tasks as delivered that were ordered at a position or after it: the model no
    /// longer knows of these tasks.
    pub(super) fn forgotten_from(&mut self, position: Seq) {
        let tasks = self.all.values_mut();
        for task in tasks.filter(|task| task.ordered >= position) {
            task.told = Told::Yes;
        }
    }

    pub(super) fn removed(&mut self, id: &TaskId) -> Option<Task> {
        let removed = self.all.remove(id)?;
        if removed.agent().is_some() {
            self.removed.insert(id.clone());
        }
        Some(removed)
    }
}
