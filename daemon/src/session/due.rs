//! What a session does by itself when no message comes: it tries to store again, closes the shells
//! that nobody attends, or ends.

use std::time::Duration;

use tokio::time::Instant;

use super::Message;
use super::actor::Actor;
use crate::config::UnattendedTimeout;
use loopd_kernel::command::Command;

/// The longest time until a session looks at the clock again.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// What a session does when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Tries again to store what could not be stored.
    Retry,
    /// Stops all work: the limit of time is reached.
    TimeUp,
    /// Closes the idle shells; nobody was attached for so long.
    CloseShells(Duration),
    /// Fails the slash command of the queue that no client has answered.
    CommandOverdue,
    End,
}

impl Actor {
    /// Waits for the next message; `None` when the session was idle as long as its launch allows.
    pub(super) async fn next_message(&mut self) -> Option<Message> {
        loop {
            let Some((at, due)) = self.next_due() else {
                return self.inbox.recv().await;
            };
            if let Ok(message) = tokio::time::timeout_at(at, self.inbox.recv()).await {
                return message;
            }
            match due {
                Due::Retry => self.retry().await,
                Due::TimeUp => {
                    self.report(Command::TimeUp).await;
                }
                Due::CloseShells(unattended) => {
                    self.quiet_since = None;
                    self.shells.close_idle(unattended);
                }
                Due::CommandOverdue => {
                    if let Some(unanswered) = self.queued_command_overdue() {
                        self.report(unanswered).await;
                    }
                }
                Due::End => break,
            }
        }
        tracing::info!(session = %self.state.id, "the session was idle for too long and is ended");
        if let Err(error) = self.shut_down(None).await {
            tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
        }
        None
    }

    /// Returns what the session does next if no message comes, and when.
    fn next_due(&mut self) -> Option<(Instant, Due)> {
        let now = Instant::now();
        let retry = self.storage.retry_at().map(|at| (at, Due::Retry));
        let time_up = self.time_left().map(|left| (now + left, Due::TimeUp));
        let rests = !self.state.tasks.has_agents_at_work() && !self.subagents.is_child();
        let launch = self.clients.launch();
        let end = launch
            .and_then(|launch| launch.session_idle_timeout)
            .filter(|_| rests && !self.state.is_busy())
            .map(|limit| (now + limit, Due::End));
        let shells = if rests && !self.is_attended() && !self.state.is_working() {
            let since = *self.quiet_since.get_or_insert(now);
            self.shells.has_idle().then(|| self.close_shells(since))
        } else {
            self.quiet_since = None;
            None
        };
        let command = self.queued_command_due();
        let command = command.map(|at| (at, Due::CommandOverdue));
        let due = [retry, time_up, end, shells, command].into_iter().flatten();
        due.min_by_key(|(at, _)| *at)
    }

    /// Returns how much of the limit of time is left, while the session or its sub-agents work.
    fn time_left(&self) -> Option<Duration> {
        if self.subagents.is_child() {
            return None;
        }
        let left = loopd_kernel::budget::time_left_ms(&self.state, self.services.clock.now())?;
        // Not so far away that it cannot be added to a moment.
        Some(Duration::from_millis(left).min(LONGEST_SLEEP))
    }

    fn close_shells(&self, since: Instant) -> (Instant, Due) {
        let launch = self.clients.launch();
        let variable = launch.and_then(|launch| launch.variable(UnattendedTimeout::VARIABLE));
        let unattended = self.services.config.unattended.with(variable);
        (since + unattended, Due::CloseShells(unattended))
    }
}
