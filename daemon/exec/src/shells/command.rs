//! One attached command: a command that runs in a shell of the session.

use parking_lot::Mutex;
use std::time::Duration;

use loopd_proto::event::task::ShellWaiting;
use loopd_proto::id::{ShellId, ToolCallId};
use loopd_proto::time::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::CloseReason;
use super::{CommandOrder, stopped_end, task_end};
use crate::terminal::{
    Backend, CommandEnd, CommandOutput, CommandRun, CommandState, OutputBody, WaitingFor,
};
use loopd_kernel::command::TaskEnd;

/// Whether the agent loop waits for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunIn {
    Foreground,
    Background,
}

/// The current status of a command, for users and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    Running,
    Waiting(WaitingFor),
    Exited(i32),
    Killed(i32),
    Stopped,
    /// It ended; its exit status is not known.
    Unknown,
}

/// Why [`AttachedCommand::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    Ended,
    /// The command waits for input.
    WaitsForInput,
    /// A client moved the command to the background.
    Promoted,
    OutOfTime,
    /// The turn was aborted.
    Cancelled,
}

/// A running or ended command in a shell.
#[derive(Debug)]
pub struct AttachedCommand {
    pub id: ShellId,
    pub command: String,
    pub description: String,
    pub call: Option<ToolCallId>,
    pub pid: Option<u32>,
    pub started_at: Timestamp,
    pub run: CommandRun,
    pub backend: Backend,
    /// Whether the command runs in a sandbox.
    pub sandboxed: bool,
    run_in: watch::Sender<RunIn>,
    stopped: Mutex<Option<CloseReason>>,
}

impl AttachedCommand {
    pub(super) fn new(
        id: ShellId,
        order: &CommandOrder,
        run: CommandRun,
        pid: u32,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            command: order.command.clone(),
            description: order.description.clone(),
            call: order.call.clone(),
            pid: (pid != 0).then_some(pid),
            started_at: now,
            run,
            backend: order.context.backend,
            sandboxed: order.context.sandbox.is_some(),
            run_in: watch::Sender::new(order.run_in),
            stopped: Mutex::default(),
        }
    }

    pub fn run_in(&self) -> RunIn {
        *self.run_in.borrow()
    }

    pub(super) fn set_run_in(&self, run_in: RunIn) {
        self.run_in.send_replace(run_in);
    }

    pub fn is_running(&self) -> bool {
        !matches!(self.run.state(), CommandState::Ended(_))
    }

    /// Moves a running foreground command to the background; returns whether it was one.
    pub fn promote(&self) -> bool {
        self.is_running()
            && self.run_in.send_if_modified(|run_in| {
                let foreground = *run_in == RunIn::Foreground;
                *run_in = RunIn::Background;
                foreground
            })
    }

    /// Waits until the command ends, needs input or moves to the background, at most for `limit`.
    pub async fn wait(&self, limit: Duration, cancel: &CancellationToken) -> WaitOutcome {
        let mut changes = self.run.changes();
        let mut run_in = self.run_in.subscribe();
        let foreground = *run_in.borrow_and_update() == RunIn::Foreground;
        let halts = changes.wait_for(|progress| !matches!(progress.state, CommandState::Running));
        let promoted = async {
            if foreground {
                // The sender lives as long as `self`: waiting cannot fail.
                run_in
                    .wait_for(|run_in| *run_in == RunIn::Background)
                    .await
                    .ok();
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            halted = halts => match halted.map(|progress| progress.state) {
                Ok(CommandState::Waiting(_)) => WaitOutcome::WaitsForInput,
                Ok(CommandState::Running | CommandState::Ended(_)) | Err(_) => WaitOutcome::Ended,
            },
            () = cancel.cancelled() => WaitOutcome::Cancelled,
            () = promoted => WaitOutcome::Promoted,
            () = tokio::time::sleep(limit) => WaitOutcome::OutOfTime,
        }
    }

    /// Stops the command.
    pub async fn stop(&self) {
        self.stop_for(CloseReason::Stopped).await;
    }

    /// Stops the command and notes why.
    pub(super) async fn stop_for(&self, reason: CloseReason) {
        if self.is_running() {
            *self.stopped.lock() = Some(reason);
            self.run.stop().await;
        }
    }

    /// Returns why somebody stopped the command; `None` if it ended by itself or still runs.
    pub fn stop_reason(&self) -> Option<CloseReason> {
        let stopped = *self.stopped.lock();
        stopped.filter(|_| !self.is_running())
    }

    pub fn status(&self) -> CommandStatus {
        match self.run.state() {
            CommandState::Running => CommandStatus::Running,
            CommandState::Waiting(what) => CommandStatus::Waiting(what),
            CommandState::Ended(CommandEnd::Exited(code)) => CommandStatus::Exited(code),
            CommandState::Ended(CommandEnd::Killed(signal)) => CommandStatus::Killed(signal),
            CommandState::Ended(CommandEnd::Interrupted) => CommandStatus::Stopped,
            CommandState::Ended(CommandEnd::Closed) => CommandStatus::Unknown,
        }
    }

    /// Waits for the end of the command and returns it as the log stores it.
    pub(super) async fn end(&self) -> TaskEnd {
        let end = self.run.ended().await;
        let stopped = *self.stopped.lock();
        if let Some(reason) = stopped {
            return stopped_end(reason);
        }
        match end {
            CommandEnd::Exited(code) => task_end(Some(code), None),
            CommandEnd::Killed(signal) => task_end(
                Some(128 + signal),
                Some(format!("it was killed by signal {signal}")),
            ),
            CommandEnd::Interrupted => task_end(None, Some("it was stopped".to_owned())),
            CommandEnd::Closed => task_end(None, Some("its shell was closed".to_owned())),
        }
    }

    /// The event data for a command that waits for input.
    pub(super) fn waiting(&self) -> ShellWaiting {
        ShellWaiting {
            shell_id: self.id.clone(),
            command: self.command.clone(),
            shown: question(&self.run.output()),
        }
    }
}

/// The last line of output, which usually is the question that the command asks.
fn question(shown: &CommandOutput) -> String {
    let text = match (&shown.screen, &shown.body) {
        (Some(screen), _) => &screen.text,
        (None, OutputBody::Whole(text)) => text,
        (None, OutputBody::Preview { tail, .. }) => tail,
    };
    let line = text.trim_end_matches(['\r', '\n']).lines().next_back();
    line.unwrap_or_default().to_owned()
}
