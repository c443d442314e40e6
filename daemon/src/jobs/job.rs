//! One command in a shell of the session: what it is, where it runs, and waiting for it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use loopd_proto::event::task::{ShellWaiting, TaskOutcome};
use loopd_proto::id::{ShellId, ToolCallId};
use loopd_proto::time::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Order, task_end};
use crate::shell::{Backend, Body, End, Run, RunState, Shown, WaitingFor};
use loopd_kernel::command::TaskEnd;

/// Whether the loop waits for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Front,
    Back,
}

/// How a command stands at the moment, for people and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Running,
    Waiting(WaitingFor),
    Exited(i32),
    Killed(i32),
    Stopped,
    /// Nobody knows how it ended.
    Unknown,
}

/// Why waiting for a command came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    Ended,
    /// It waits for somebody to type.
    WaitsForInput,
    /// A client wants it to go on in the background.
    Promoted,
    OutOfTime,
    /// The turn was aborted.
    Cancelled,
}

/// A running or ended command.
#[derive(Debug)]
pub struct Job {
    pub id: ShellId,
    pub command: String,
    pub description: String,
    pub call: Option<ToolCallId>,
    pub pid: Option<u32>,
    pub started_at: Timestamp,
    pub run: Run,
    pub backend: Backend,
    place: watch::Sender<Place>,
    stopped: Mutex<bool>,
}

impl Job {
    pub(super) fn new(id: ShellId, order: &Order, run: Run, pid: u32, now: Timestamp) -> Self {
        Self {
            id,
            command: order.command.clone(),
            description: order.description.clone(),
            call: order.call.clone(),
            pid: (pid != 0).then_some(pid),
            started_at: now,
            run,
            backend: order.surroundings.backend,
            place: watch::Sender::new(order.place),
            stopped: Mutex::new(false),
        }
    }

    pub fn place(&self) -> Place {
        *self.place.borrow()
    }

    pub(super) fn set_place(&self, place: Place) {
        self.place.send_replace(place);
    }

    pub fn is_running(&self) -> bool {
        !matches!(self.run.state(), RunState::Ended(_))
    }

    /// Lets the command go on in the background; says whether it was in front and ran.
    pub fn promote(&self) -> bool {
        self.is_running()
            && self.place.send_if_modified(|place| {
                let front = *place == Place::Front;
                *place = Place::Back;
                front
            })
    }

    /// Waits until something happens that the one who waits has to know.
    pub async fn pause(&self, limit: Duration, cancel: &CancellationToken) -> Pause {
        let mut changes = self.run.changes();
        let mut place = self.place.subscribe();
        let front = *place.borrow_and_update() == Place::Front;
        let halts = changes.wait_for(|progress| !matches!(progress.state, RunState::Running));
        let promoted = async {
            if front {
                // The sender lives as long as `self`: waiting cannot fail.
                place.wait_for(|place| *place == Place::Back).await.ok();
            } else {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            halted = halts => match halted.map(|progress| progress.state) {
                Ok(RunState::Waiting(_)) => Pause::WaitsForInput,
                Ok(RunState::Running | RunState::Ended(_)) | Err(_) => Pause::Ended,
            },
            () = cancel.cancelled() => Pause::Cancelled,
            () = promoted => Pause::Promoted,
            () = tokio::time::sleep(limit) => Pause::OutOfTime,
        }
    }

    /// Stops the command.
    pub async fn stop(&self) {
        if self.is_running() {
            *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.run.stop().await;
        }
    }

    pub fn ending(&self) -> Ending {
        match self.run.state() {
            RunState::Running => Ending::Running,
            RunState::Waiting(what) => Ending::Waiting(what),
            RunState::Ended(End::Exited(code)) => Ending::Exited(code),
            RunState::Ended(End::Killed(signal)) => Ending::Killed(signal),
            RunState::Ended(End::Interrupted) => Ending::Stopped,
            RunState::Ended(End::Closed) => Ending::Unknown,
        }
    }

    /// Waits for the end and says it in the words of the log.
    pub(super) async fn end(&self) -> TaskEnd {
        let end = self.run.ended().await;
        let stopped = *self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        match end {
            _ if stopped => TaskEnd::new(TaskOutcome::Cancelled).because("it was stopped"),
            End::Exited(code) => task_end(Some(code), None),
            End::Killed(signal) => task_end(
                Some(128 + signal),
                Some(format!("it was killed by signal {signal}")),
            ),
            End::Interrupted => task_end(None, Some("it was stopped".to_owned())),
            End::Closed => task_end(None, Some("its shell was closed".to_owned())),
        }
    }

    /// What clients are told when the command waits for somebody to type.
    pub(super) fn waiting(&self) -> ShellWaiting {
        ShellWaiting {
            shell_id: self.id.clone(),
            command: self.command.clone(),
            shown: question(&self.run.output()),
        }
    }
}

/// The end of what a command shows, which is its question as a rule.
fn question(shown: &Shown) -> String {
    let text = match (&shown.screen, &shown.body) {
        (Some(screen), _) => &screen.text,
        (None, Body::Whole(text)) => text,
        (None, Body::Preview { tail, .. }) => tail,
    };
    let line = text.trim_end_matches(['\r', '\n']).lines().next_back();
    line.unwrap_or_default().to_owned()
}
