//! The workers of a session's fleet. Which todo is next is decided in the kernel; here workers are
//! started, continued and stopped.

use loopd_kernel::command::{Command, WorkerOrder};
use loopd_kernel::fleet::next_step;
use loopd_proto::event::task::Execution;
use loopd_proto::id::TaskId;

use super::actor::{Actor, Flow};
use crate::subagent::{CancelledBy, SubagentError, SubagentOrder};

/// The agent that workers are, unless another one is named.
const WORKER: &str = "general-purpose";

impl Actor {
    /// Carries out the next step of the fleet, if there is one. Without a fleet this costs nothing.
    pub(super) async fn advance_fleet(&mut self) -> Flow {
        let due = self.state.fleet.is_some()
            && !self.state.closed
            && self.is_attended()
            && self.storage.unread().is_none()
            && next_step(&self.state).is_some();
        if due {
            return self.report(Command::AdvanceFleet).await;
        }
        Flow::Go
    }

    pub(super) fn start_worker(&mut self, order: WorkerOrder) {
        let agents = self.subagents.runs().clone();
        let reporter = self.reporter();
        self.running.spawn(async move {
            let todo = order.todo.clone();
            let started = agents.start(SubagentOrder {
                agent_type: Some(order.agent_type.unwrap_or_else(|| WORKER.to_owned())),
                name: Some(order.todo.clone()),
                description: order.title,
                prompt: order.prompt,
                model: None,
                execution: Some(Execution::Background),
                isolation: None,
                cwd: None,
                call: None,
                todo: Some(order.todo),
                tools: None,
                answers_person: false,
                command: None,
                skill: None,
            });
            if let Err(error) = started.await {
                reporter.report(not_started(todo, &error)).await;
            }
        });
    }

    pub(super) fn continue_worker(&mut self, todo: String, task: TaskId, message: String) {
        let agents = self.subagents.runs().clone();
        let reporter = self.reporter();
        self.running.spawn(async move {
            let continued = async {
                let found = agents.find(task.as_str()).await?;
                let Some(work) = found.agent() else {
                    return Err(SubagentError::TakesNoMessages(task.clone()));
                };
                agents.write(&task, work, message).await
            };
            if let Err(error) = continued.await {
                reporter.report(not_started(todo, &error)).await;
            }
        });
    }

    pub(super) fn cancel_workers(&mut self, workers: Vec<TaskId>) {
        let agents = self.subagents.runs().clone();
        self.running.spawn(async move {
            for worker in workers {
                agents.cancel(&worker, CancelledBy::Client).await;
            }
        });
    }
}

fn not_started(todo: String, error: &SubagentError) -> Command {
    Command::WorkerNotStarted {
        todo,
        why: format!("its worker could not be started: {error}"),
    }
}
