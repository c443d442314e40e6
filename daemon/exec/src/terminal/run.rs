//! The handle of one command: its state, its output, and the channel to the backend task that runs
//! it. A backend creates and updates it; tools hold it.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot, watch};

use super::keys::{InputError, TypedInput};
use super::output::CommandOutput;
use super::text::CommandText;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    Exited(i32),
    Killed(i32),
    /// It was stopped; its processes may still be ending.
    Interrupted,
    /// Its shell was closed, or its exit status is not known.
    Closed,
}

impl CommandEnd {
    pub(super) fn explain(self) -> String {
        match self {
            Self::Exited(code) => format!("it exited with code {code}"),
            Self::Killed(signal) => format!("it was killed by signal {signal}"),
            Self::Interrupted => "it was stopped".to_owned(),
            Self::Closed => "it was closed".to_owned(),
        }
    }
}

/// What kind of input a command waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// A line of text.
    Line,
    /// A line without echo, such as a password.
    Password,
    /// Single keys: an editor, a pager, or a prompt with line editing.
    Screen,
}

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandState {
    Running,
    Waiting(WaitingFor),
    Ended(CommandEnd),
}

/// The state of a command and the size of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandProgress {
    pub state: CommandState,
    /// The number of bytes that the command has written.
    pub received: u64,
}

/// A request to the backend task that runs a command.
#[derive(Debug)]
pub(super) enum RunRequest {
    Send(TypedInput, oneshot::Sender<Result<(), InputError>>),
    Stop(oneshot::Sender<()>),
}

/// A running or ended command.
#[derive(Debug, Clone)]
pub struct CommandRun(Arc<CommandRunInner>);

#[derive(Debug)]
struct CommandRunInner {
    text: Mutex<CommandText>,
    progress: watch::Sender<CommandProgress>,
    requests: mpsc::Sender<RunRequest>,
    left_behind: AtomicBool,
}

impl CommandRun {
    pub(super) fn new(text: CommandText, requests: mpsc::Sender<RunRequest>) -> Self {
        let progress = watch::Sender::new(CommandProgress {
            state: CommandState::Running,
            received: 0,
        });
        Self(Arc::new(CommandRunInner {
            text: Mutex::new(text),
            progress,
            requests,
            left_behind: AtomicBool::new(false),
        }))
    }

    pub fn state(&self) -> CommandState {
        self.0.progress.borrow().state
    }

    /// Wakes when the state changes, and on new output at most every 100 ms.
    pub fn changes(&self) -> watch::Receiver<CommandProgress> {
        self.0.progress.subscribe()
    }

    /// Waits for the end of the command.
    pub async fn ended(&self) -> CommandEnd {
        let mut changes = self.changes();
        let ended = changes.wait_for(|progress| matches!(progress.state, CommandState::Ended(_)));
        match ended.await.map(|progress| progress.state) {
            Ok(CommandState::Ended(end)) => end,
            Ok(CommandState::Running | CommandState::Waiting(_)) | Err(_) => CommandEnd::Closed,
        }
    }

    /// All output so far.
    pub fn output(&self) -> CommandOutput {
        self.text().shown()
    }

    /// The output since the last call.
    pub fn unread(&self) -> CommandOutput {
        self.text().unread()
    }

    /// Whether [`CommandRun::unread`] would return new output.
    pub fn has_unread(&self) -> bool {
        self.text().has_unread()
    }

    /// Types input to the command; fails without a terminal.
    pub async fn send(&self, input: &TypedInput) -> Result<(), InputError> {
        if matches!(self.state(), CommandState::Ended(_)) {
            return Err(InputError::Ended);
        }
        let (answer, answered) = oneshot::channel();
        let asked = self
            .0
            .requests
            .send(RunRequest::Send(input.clone(), answer))
            .await;
        asked.map_err(|_| InputError::Ended)?;
        answered.await.unwrap_or(Err(InputError::Ended))
    }

    /// Stops the command. It counts as ended when this resolves, within 100 ms; processes that
    /// ignore the signals are killed later.
    pub async fn stop(&self) {
        if matches!(self.state(), CommandState::Ended(_)) {
            return;
        }
        let (answer, answered) = oneshot::channel();
        if self.0.requests.send(RunRequest::Stop(answer)).await.is_ok() {
            // No reply means that the command ended by itself.
            answered.await.ok();
        }
    }

    /// Whether processes of the command were still alive when it ended.
    #[cfg(test)]
    pub(super) fn left_behind(&self) -> bool {
        self.0.left_behind.load(Ordering::Relaxed)
    }

    pub(super) fn note_left_behind(&self) {
        self.0.left_behind.store(true, Ordering::Relaxed);
    }

    pub(super) fn text(&self) -> MutexGuard<'_, CommandText> {
        self.0.text.lock()
    }

    /// Notifies watchers of new output.
    pub(super) fn notify_output(&self) {
        let received = self.text().received();
        self.0.progress.send_if_modified(|progress| {
            let news = progress.received != received;
            progress.received = received;
            news
        });
    }

    /// Sets the state and notifies watchers; an ended state never changes.
    pub(super) fn set_state(&self, state: CommandState) {
        let received = self.text().received();
        self.0.progress.send_if_modified(|progress| {
            if matches!(progress.state, CommandState::Ended(_)) || progress.state == state {
                return false;
            }
            *progress = CommandProgress { state, received };
            true
        });
    }
}

/// Marks a run as closed if its backend task ends without setting an end.
#[derive(Debug)]
pub(super) struct CloseOnDrop(pub(super) CommandRun);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.set_state(CommandState::Ended(CommandEnd::Closed));
    }
}
