//! Closes the shells that nobody has used for long in a session that nobody attends.

use std::time::Duration;

use loopd_proto::id::ShellId;

use super::error::CloseReason;
use super::slot::Retention;
use super::{CommandStatus, Shells};
use loopd_kernel::command::{Command, LogLevel};

/// How many characters of a command the log shows.
const SHOWN_COMMAND: usize = 200;

impl Shells {
    /// Returns whether a shell is open in which no command runs, or only one that waits for input.
    pub fn has_idle(&self) -> bool {
        !self.idle().is_empty()
    }

    fn idle(&self) -> Vec<ShellId> {
        let table = self.table();
        let idle = table.slots.iter().filter(|(_, slot)| {
            let command = slot.command().map(|command| command.status());
            !slot.is_busy() || matches!(command, Some(CommandStatus::Waiting(_)))
        });
        idle.map(|(id, _)| id.clone()).collect()
    }

    /// Returns the command that waits for input in this shell, shortened to one line.
    fn waiting_command(&self, id: &ShellId) -> Option<String> {
        let command = self.table().slots.get(id)?.command()?;
        let line = command.command.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN_COMMAND).collect();
        matches!(command.status(), CommandStatus::Waiting(_)).then_some(shown)
    }

    /// Closes the idle shells, and records why in the log of the session. `unattended` is how long
    /// nobody was attached.
    pub fn close_idle(&self, unattended: Duration) {
        let shells = self.clone();
        // The daemon stays until the log says why the last shell was closed.
        let at_work = self.0.setup.processes.keep_alive().work();
        self.0.tasks.spawn(async move {
            let _at_work = at_work;
            for id in shells.idle() {
                let rested = match shells.waiting_command(&id) {
                    Some(command) => format!("its command `{command}` waited for input"),
                    None => "no command ran in it".to_owned(),
                };
                // This stops a command that waits for input. It fails if the shell is gone.
                shells.stop(&id, CloseReason::Unattended).await.ok();
                shells.close_slot(&id, CloseReason::Unattended, Retention::UntilClosed);
                let message = format!(
                    "The shell {id} was closed: {rested}, and nobody was attached to the session for {}.",
                    in_words(unattended)
                );
                shells
                    .record(Command::Log {
                        level: LogLevel::Info,
                        kind: "shell".to_owned(),
                        message,
                        url: None,
                        tip: None,
                        stored: true,
                    })
                    .await;
            }
        });
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds / 60),
    }
}
