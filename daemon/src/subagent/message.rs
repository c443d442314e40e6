//! Finding an agent that was started before, and giving it more to do.

use std::sync::Arc;

use loopd_proto::event::task::{AgentWork, Execution};
use loopd_proto::id::TaskId;

use super::run::{Posted, RunStart, SubagentRun};
use super::{SubagentError, Subagents};
use loopd_kernel::command::Command;
use loopd_kernel::tasks::Task;

/// What became of a message to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The agent is at work and hears it at its next safe point.
    AtWork,
    /// The agent rested and works again.
    Resumed,
}

impl Subagents {
    /// Finds an agent by its id or by its name; the one started last counts.
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

    /// The tasks of the session, its agents among them.
    pub async fn tasks(&self) -> Result<Vec<Task>, SubagentError> {
        Ok(self.0.setup.parent.tasks().await?)
    }

    /// Gives an agent more to do: at its next safe point if it is at work, else at once and in the
    /// background.
    pub async fn write(
        &self,
        id: &TaskId,
        work: &AgentWork,
        message: String,
    ) -> Result<Delivered, SubagentError> {
        let run = loop {
            // The run that is there takes it, or is about to make room for a new one.
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

    /// Puts a run of an agent on the table that has none; none when somebody was faster.
    fn enroll_if_free(&self, id: &TaskId) -> Result<Option<Arc<SubagentRun>>, SubagentError> {
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

/// The agents there are, for an error.
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
