//! What the session is told of its commands: that one goes on in the background, waits, ended, or is
//! known to the model already.

use std::sync::Arc;

use loopd_proto::event::task::{ShellAttachment, ShellWork, TaskWork};
use loopd_proto::id::{ShellId, TaskId};

use super::Jobs;
use super::error::{Closed, JobError};
use super::job::{Job, Place};
use super::seat::Keep;
use crate::shell::RunState;
use loopd_kernel::command::{Command, TaskStart};

impl Jobs {
    /// Tells clients when the command waits for somebody to type; returns when it has ended.
    pub(super) async fn watch(&self, job: &Job) {
        let mut changes = job.run.changes();
        let mut waited = false;
        loop {
            let state = changes.borrow_and_update().state;
            match state {
                RunState::Ended(_) => return,
                RunState::Running => waited = false,
                RunState::Waiting(_) if waited => {}
                RunState::Waiting(_) => {
                    waited = true;
                    self.tell(Command::ShellWaits(job.waiting())).await;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) async fn tell(&self, command: Command) {
        let told = self.0.setup.log.record(command).await;
        if let Err(why) = told
            && !self.table().ended
        {
            tracing::warn!(session = %self.0.setup.session, why, "the session was not told about its command");
        }
    }

    /// Lets a command go on in the background: it becomes a task, and its end is told.
    pub async fn to_background(&self, job: &Arc<Job>) -> Result<(), JobError> {
        job.set_place(Place::Back);
        let work = TaskWork::Shell(ShellWork {
            shell_id: job.id.clone(),
            command: job.command.clone(),
            attachment: ShellAttachment::Attached,
            pid: job.pid,
            log_path: None,
        });
        let start = TaskStart {
            id: TaskId::new(job.id.as_str()),
            call: job.call.clone(),
            description: job.description.clone(),
            started_at: Some(job.started_at),
            work,
        };
        let stored = self
            .0
            .setup
            .log
            .record(Command::TaskStarted(Box::new(start)));
        if let Err(why) = stored.await {
            job.run.stop().await;
            return Err(JobError::NotStored(why));
        }
        let (jobs, watched) = (self.clone(), job.clone());
        self.0.tasks.spawn(async move {
            let end = watched.end().await;
            jobs.tell(Command::TaskEnded {
                id: TaskId::new(watched.id.as_str()),
                end,
            })
            .await;
        });
        Ok(())
    }

    /// The model has read all of a command that has ended.
    pub async fn heard(&self, id: &ShellId) {
        self.let_go(id, Closed::Finished, Keep::UntilRead);
        self.tell(Command::TasksHeard(vec![TaskId::new(id.as_str())]))
            .await;
    }

    pub(super) async fn tell_heard(&self, id: &ShellId) {
        self.tell(Command::TasksHeard(vec![TaskId::new(id.as_str())]))
            .await;
    }
}
