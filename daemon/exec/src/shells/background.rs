//! What the session is told of its commands: that one goes on in the background, waits, ended, or is
//! known to the model already.

use std::sync::Arc;

use loopd_proto::event::task::{ShellAttachment, ShellWork, TaskWork};
use loopd_proto::id::{ShellId, TaskId};

use super::Shells;
use super::command::{AttachedCommand, RunIn};
use super::error::{Closed, ShellError};
use super::slot::Keep;
use crate::terminal::CommandState;
use loopd_kernel::command::{Command, TaskStart};

impl Shells {
    /// Tells clients when the command waits for somebody to type; returns when it has ended.
    pub(super) async fn watch(&self, command: &AttachedCommand) {
        let mut changes = command.run.changes();
        let mut waited = false;
        loop {
            let state = changes.borrow_and_update().state;
            match state {
                CommandState::Ended(_) => return,
                CommandState::Running => waited = false,
                CommandState::Waiting(_) if waited => {}
                CommandState::Waiting(_) => {
                    waited = true;
                    self.tell(Command::ShellWaits(command.waiting())).await;
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
            tracing::warn!(session = %self.0.setup.session, %why, "the session was not told about its command");
        }
    }

    /// Lets a command go on in the background: it becomes a task, and its end is told.
    pub async fn to_background(&self, command: &Arc<AttachedCommand>) -> Result<(), ShellError> {
        command.set_run_in(RunIn::Background);
        let work = TaskWork::Shell(ShellWork {
            shell_id: command.id.clone(),
            command: command.command.clone(),
            attachment: ShellAttachment::Attached,
            pid: command.pid,
            log_path: None,
        });
        let start = TaskStart {
            id: TaskId::new(command.id.as_str()),
            call: command.call.clone(),
            description: command.description.clone(),
            started_at: Some(command.started_at),
            work,
        };
        let stored = self
            .0
            .setup
            .log
            .record(Command::TaskStarted(Box::new(start)));
        if let Err(why) = stored.await {
            command.run.stop().await;
            return Err(ShellError::NotStored(why));
        }
        let (shells, watched) = (self.clone(), command.clone());
        self.0.tasks.spawn(async move {
            let end = watched.end().await;
            shells
                .tell(Command::TaskEnded {
                    id: TaskId::new(watched.id.as_str()),
                    end,
                })
                .await;
        });
        Ok(())
    }

    /// The model has read all of a command that has ended.
    pub async fn delivered(&self, id: &ShellId) {
        self.let_go(id, Closed::Finished, Keep::UntilRead);
        self.tell(Command::TasksDelivered(vec![TaskId::new(id.as_str())]))
            .await;
    }

    pub(super) async fn tell_delivered(&self, id: &ShellId) {
        self.tell(Command::TasksDelivered(vec![TaskId::new(id.as_str())]))
            .await;
    }
}
