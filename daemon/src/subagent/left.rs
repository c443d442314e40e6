//! Background commands that sub-agents leave running when they have answered.
//!
//! The child's session stays open for them and owns their processes, which end with the session at the
//! top at the latest. The parent's log lists each of them as a task of its own, so that clients see it
//! and no crash loses its end. Its end is told to the sub-agent if that can hear it, else to the
//! parent.

use std::sync::Arc;

use loopd_proto::event::task::{AgentWork, Execution, ShellWork, TaskOutcome, TaskWork};
use loopd_proto::id::{ShellId, TaskId};

use super::Subagents;
use super::child::{Child, CommandEnding};
use super::run::{CancelledBy, RunStart};
use loopd_kernel::command::{Command, TaskEnd, TaskStart};
use loopd_kernel::tasks::{Task, TaskStatus};

/// The message that the parent's log has for a sub-agent that works again because of a command.
const COMMAND_ENDED: &str = "A command that it had left running has ended.";

/// Why a command has no exit code: its agent was stopped, and the command with it.
const STOPPED_WITH_AGENT: &str = "it was stopped with its agent";

/// A command that a sub-agent left running.
#[derive(Clone)]
pub(super) struct LeftCommand {
    agent: TaskId,
    /// Its id in the log of the child.
    id_in_child: TaskId,
    child: Arc<dyn Child>,
    /// Who stops it together with its agent, which had ended.
    stopped_by: Option<CancelledBy>,
}

impl Subagents {
    /// Keeps the session of a sub-agent open for the commands that it left running. Returns their ids
    /// in this session.
    pub(super) async fn keep(
        &self,
        agent: &TaskId,
        work: &AgentWork,
        child: &Arc<dyn Child>,
        commands: Vec<Task>,
    ) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for command in commands {
            let Some(shell) = command.shell() else {
                continue;
            };
            let id = match &shell.agent {
                // A sub-agent of the sub-agent left it; its id is unique in the tree.
                Some(_) => command.id.clone(),
                None => TaskId::new(format!("{agent}:{}", command.id)),
            };
            ids.push(id.clone());
            let left = LeftCommand {
                agent: agent.clone(),
                id_in_child: command.id.clone(),
                child: child.clone(),
                stopped_by: None,
            };
            if self.table().left.insert(id.clone(), left.clone()).is_some() {
                // It is watched since an earlier run.
                continue;
            }
            let start = TaskStart {
                id: id.clone(),
                call: None,
                description: command.description.clone(),
                started_at: Some(command.started_at),
                work: TaskWork::Shell(ShellWork {
                    shell_id: ShellId::from(id.as_str()),
                    agent: shell.agent.clone().or_else(|| Some(agent.clone())),
                    ..shell.clone()
                }),
            };
            self.tell(Command::TaskStarted(Box::new(start))).await;
            let (agents, work) = (self.clone(), work.clone());
            self.0.tasks.spawn(async move {
                agents.watch(id, left, work).await;
            });
        }
        ids
    }

    /// Waits for the end of a command and tells it.
    async fn watch(&self, id: TaskId, left: LeftCommand, work: AgentWork) {
        let ended = tokio::select! {
            ended = left.child.command_end(left.id_in_child.clone()) => ended,
            () = self.0.ended.cancelled() => return,
        };
        let mut end = task_end(ended);
        let tasks = self.tasks().await.unwrap_or_default();
        let agent = tasks.iter().find(|task| task.id == left.agent);
        let wakes = end.outcome != TaskOutcome::Cancelled
            && agent.is_some_and(|agent| matches!(agent.status, TaskStatus::Idle { .. }));
        let hears = agent.is_some_and(Task::is_running);
        // Whoever was promised to hear of its end does, unless the model itself has stopped it.
        let stopped_by = self.table().left.get(&id).and_then(|left| left.stopped_by);
        if stopped_by.is_some() && end.outcome == TaskOutcome::Cancelled {
            end.reason = Some(STOPPED_WITH_AGENT.to_owned());
        }
        end.delivered = wakes || hears || stopped_by == Some(CancelledBy::Model);
        self.tell(Command::TaskEnded {
            id: id.clone(),
            end,
        })
        .await;
        self.table().left.remove(&id);
        if wakes {
            self.wake(&left, work).await;
        }
        self.let_go(&left).await;
    }

    /// Lets an idle sub-agent work on what it has not been told of.
    async fn wake(&self, left: &LeftCommand, work: AgentWork) {
        // A run that is under way hears of it anyway.
        let Ok(Some(run)) = self.enroll_if_free(&left.agent) else {
            return;
        };
        let continued = Command::TaskContinued {
            id: left.agent.clone(),
            message: COMMAND_ENDED.to_owned(),
        };
        if !left.child.has_news().await || self.record(continued).await.is_err() {
            self.table().runs.remove(&left.agent);
            run.give_up();
            return;
        }
        let work = AgentWork {
            execution: Execution::Background,
            ..work
        };
        self.launch(&run, work, RunStart::Woken, String::new());
    }

    /// Ends the session of a sub-agent that rests and has no command left.
    async fn let_go(&self, left: &LeftCommand) {
        if self.has_left(&left.agent) {
            return;
        }
        // A run that is under way ends the session itself.
        if let Ok(Some(place)) = self.enroll_if_free(&left.agent) {
            left.child.stop().await;
            self.table().runs.remove(&left.agent);
            place.give_up();
        }
    }

    /// Returns whether commands of a sub-agent still run, or their end is not told yet.
    pub(super) fn has_left(&self, agent: &TaskId) -> bool {
        let table = self.table();
        table.left.values().any(|left| left.agent == *agent)
    }

    /// Returns whether this is a command that a sub-agent left running.
    pub fn is_left(&self, id: &TaskId) -> bool {
        self.table().left.contains_key(id)
    }

    /// Returns the last of what a command has printed so far that a sub-agent left running; `None` if it
    /// is none.
    pub async fn command_output(&self, id: &TaskId) -> Option<String> {
        let left = self.table().left.get(id).cloned()?;
        Some(left.child.command_output(left.id_in_child).await)
    }

    /// Stops a command that a sub-agent left running; returns whether it ran.
    pub async fn stop_command(&self, id: &TaskId) -> bool {
        let left = self.table().left.get(id).cloned();
        match left {
            Some(left) => left.child.stop_command(left.id_in_child).await,
            None => false,
        }
    }

    /// Ends the session of a sub-agent that was kept for its commands; returns whether there was one.
    pub(super) async fn stop_kept(&self, agent: &TaskId, by: CancelledBy) -> bool {
        let kept = {
            let mut table = self.table();
            let mut kept = None;
            for left in table.left.values_mut().filter(|left| left.agent == *agent) {
                left.stopped_by = Some(by);
                kept = Some(left.child.clone());
            }
            kept
        };
        match kept {
            Some(child) => {
                child.stop().await;
                true
            }
            None => false,
        }
    }

    /// Ends all sessions that were kept for commands.
    pub(super) async fn stop_all_kept(&self) {
        let left = std::mem::take(&mut self.table().left);
        for left in left.into_values() {
            left.child.stop().await;
        }
    }
}

fn task_end(ended: Option<CommandEnding>) -> TaskEnd {
    let Some(CommandEnding { ending, output }) = ended else {
        return TaskEnd::new(TaskOutcome::Cancelled).because(STOPPED_WITH_AGENT);
    };
    TaskEnd {
        exit_code: ending.exit_code,
        reason: ending.reason,
        result: Some(output).filter(|output| !output.is_empty()),
        ..TaskEnd::new(ending.outcome)
    }
}
