//! Records in the session's log that a command moved to the background, waits for input, ended, or
//! that the model has read its output.

use std::sync::Arc;

use loopd_proto::event::task::{ShellAttachment, ShellWork, TaskWork};
use loopd_proto::id::{ShellId, TaskId};

use super::Shells;
use super::command::{AttachedCommand, RunIn};
use super::error::{CloseReason, ShellError};
use super::slot::Retention;
use crate::terminal::CommandState;
use loopd_kernel::command::{Command, TaskStart};

impl Shells {
    /// Counts the command as work while it runs. Records each time it starts to wait for input.
    /// Returns when the command has ended.
    pub(super) async fn watch(&self, command: &AttachedCommand) {
        let mut changes = command.run.changes();
        let mut waited = false;
        let keep_alive = self.0.setup.processes.keep_alive();
        let mut work = None;
        loop {
            let state = changes.borrow_and_update().state;
            match state {
                CommandState::Ended(_) => return,
                CommandState::Running => {
                    waited = false;
                    work.get_or_insert_with(|| keep_alive.work());
                }
                CommandState::Waiting(_) if waited => {}
                CommandState::Waiting(_) => {
                    waited = true;
                    work = None;
                    self.record(Command::ShellWaits(command.waiting())).await;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) async fn record(&self, command: Command) {
        let recorded = self.0.setup.log.record(command).await;
        if let Err(why) = recorded
            && !self.table().ended
        {
            tracing::warn!(session = %self.0.setup.session, %why, "the session was not told about its command");
        }
    }

    /// Moves a command to the background: it becomes a task, and its end is recorded.
    pub async fn to_background(&self, command: &Arc<AttachedCommand>) -> Result<(), ShellError> {
        command.set_run_in(RunIn::Background);
        let work = TaskWork::Shell(ShellWork {
            shell_id: command.id.clone(),
            command: command.command.clone(),
            attachment: ShellAttachment::Attached,
            pid: command.pid,
            log_path: None,
            agent: None,
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
                .record(Command::TaskEnded {
                    id: TaskId::new(watched.id.as_str()),
                    end,
                })
                .await;
        });
        Ok(())
    }

    /// Records that the model has read all output of an ended command, and closes its shell if it
    /// was opened for that command only.
    pub async fn mark_delivered(&self, id: &ShellId) {
        self.close_slot(id, CloseReason::Finished, Retention::UntilRead);
        self.record(Command::TasksDelivered(vec![TaskId::new(id.as_str())]))
            .await;
    }

    pub(super) async fn record_delivered(&self, id: &ShellId) {
        self.record(Command::TasksDelivered(vec![TaskId::new(id.as_str())]))
            .await;
    }
}
