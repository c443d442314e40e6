//! Finds a sub-agent that was started earlier, and sends it a message.

use std::sync::Arc;

use loopd_proto::event::task::{AgentWork, Execution};
use loopd_proto::id::TaskId;

use super::definitions::AskedBy;
use super::run::{Posted, RunStart, SubagentRun};
use super::{SubagentError, Subagents};
use loopd_kernel::command::Command;
use loopd_kernel::tasks::Task;

/// How a message to a sub-agent was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The sub-agent is at work and receives the message at its next safe point.
    AtWork,
    /// The sub-agent was idle and works again.
    Resumed,
}

impl Subagents {
    /// Finds a sub-agent by its id or name; of several with that name, the one started last.
    pub async fn find(&self, wanted: &str) -> Result<Task, SubagentError> {
        let tasks = self.tasks().await?;
        if let Some(task) = tasks.iter().find(|task| task.id.as_str() == wanted) {
            return match task.shell() {
                Some(_) => Err(SubagentError::NotAnAgent(task.id.clone())),
                None => Ok(task.clone()),
            };
        }
        let named = tasks.iter().filter(|task| {
            let name = task.agent().map(|work| work.name.as_str());
            let last = task.id.as_str().rsplit('.').next();
            task.shell().is_none()
                && (name.is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                    || last == Some(wanted))
        });
        let latest = named.max_by_key(|task| task.started_at);
        latest.cloned().ok_or_else(|| SubagentError::Unknown {
            wanted: wanted.to_owned(),
            known: known(&tasks),
        })
    }

    /// Lists the tasks of the session, including its sub-agents.
    pub async fn tasks(&self) -> Result<Vec<Task>, SubagentError> {
        Ok(self.0.setup.parent.tasks().await?)
    }

    /// Sends a sub-agent a message of the model. A run that may use only some tools does not let an agent
    /// go on that may use others.
    pub async fn write_from_run(
        &self,
        id: &TaskId,
        work: &AgentWork,
        message: String,
    ) -> Result<Delivered, SubagentError> {
        let spawner = self.0.setup.parent.look(AskedBy::Model).await?;
        if !work.limits.keep_within(&spawner.parent().limits_of_run) {
            return Err(SubagentError::Wider(id.clone()));
        }
        self.write(id, work, message).await
    }

    /// Sends a sub-agent a message. If it is at work, it receives the message at its next safe
    /// point, else it starts at once and in the background.
    pub async fn write(
        &self,
        id: &TaskId,
        work: &AgentWork,
        message: String,
    ) -> Result<Delivered, SubagentError> {
        let run = loop {
            // The current run takes the message, or is about to end and make room for another.
            if let Some(run) = self.run(id) {
                match run.post(message.clone()) {
                    Posted::Taken => return Ok(Delivered::AtWork),
                    Posted::Full { limit } => {
                        return Err(SubagentError::InboxFull {
                            id: id.clone(),
                            limit,
                        });
                    }
                    Posted::Closed => {
                        run.end().await;
                    }
                }
                continue;
            }
            self.check_room()?;
            if let Some(run) = self.enroll_if_free(id)? {
                break run;
            }
        };
        let stored = self.record(Command::TaskContinued {
            id: id.clone(),
            message: message.clone(),
        });
        if let Err(why) = stored.await {
            self.table().runs.remove(id);
            run.give_up();
            return Err(SubagentError::NotStored(why));
        }
        let again = AgentWork {
            execution: Execution::Background,
            ..work.clone()
        };
        self.launch(&run, again, RunStart::Again, message);
        Ok(Delivered::Resumed)
    }

    /// Adds a run for a sub-agent that has none; returns `None` if another caller was faster.
    pub(super) fn enroll_if_free(
        &self,
        id: &TaskId,
    ) -> Result<Option<Arc<SubagentRun>>, SubagentError> {
        let mut table = self.table();
        if table.ended {
            return Err(SubagentError::SessionEnded);
        }
        if table.runs.contains_key(id) {
            return Ok(None);
        }
        let run = Arc::new(SubagentRun::new(id.clone(), Execution::Background));
        table.runs.insert(id.clone(), run.clone());
        Ok(Some(run))
    }
}

/// Lists the sub-agents of the session, for an error message.
fn known(tasks: &[Task]) -> String {
    const MOST: usize = 20;
    let agents = tasks.iter().filter(|task| task.shell().is_none());
    let ids: Vec<&str> = agents.map(|task| task.id.as_str()).collect();
    match ids.len() {
        0 => "There are none yet; start one with the tool task.".to_owned(),
        count if count > MOST => {
            let shown = ids.get(..MOST).unwrap_or_default().join(", ");
            format!("There are {count}, among them: {shown}.")
        }
        _ => format!("The agents are: {}.", ids.join(", ")),
    }
}
