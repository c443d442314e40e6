//! One command, from its start to its end and after: its state, its output, and the way to reach
//! whoever runs it. The backends make and feed it; tools hold it.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot, watch};

use super::keys::{Input, InputError};
use super::output::Shown;
use super::text::Text;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    Exited(i32),
    Killed(i32),
    /// It was stopped; its processes may take a moment to be gone.
    Interrupted,
    /// Its shell was closed, or nobody knows how it ended.
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
    /// A line that is not shown, such as a password.
    Password,
    /// Keys: an editor, a pager, a prompt with line editing.
    Screen,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandState {
    Running,
    Waiting(WaitingFor),
    Ended(CommandEnd),
}

/// What changes while a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandProgress {
    pub state: CommandState,
    /// Bytes of output so far, as the command wrote them.
    pub received: u64,
}

/// What can be asked of whoever runs a command.
#[derive(Debug)]
pub(super) enum Ask {
    Send(Input, oneshot::Sender<Result<(), InputError>>),
    Stop(oneshot::Sender<()>),
}

/// A running or ended command.
#[derive(Debug, Clone)]
pub struct CommandRun(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    text: Mutex<Text>,
    progress: watch::Sender<CommandProgress>,
    asks: mpsc::Sender<Ask>,
    left_behind: AtomicBool,
}

impl CommandRun {
    pub(super) fn new(text: Text, asks: mpsc::Sender<Ask>) -> Self {
        let progress = watch::Sender::new(CommandProgress {
            state: CommandState::Running,
            received: 0,
        });
        Self(Arc::new(Inner {
            text: Mutex::new(text),
            progress,
            asks,
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

    /// Waits for the end.
    pub async fn ended(&self) -> CommandEnd {
        let mut changes = self.changes();
        let ended = changes.wait_for(|progress| matches!(progress.state, CommandState::Ended(_)));
        match ended.await.map(|progress| progress.state) {
            Ok(CommandState::Ended(end)) => end,
            Ok(CommandState::Running | CommandState::Waiting(_)) | Err(_) => CommandEnd::Closed,
        }
    }

    /// All output so far.
    pub fn output(&self) -> Shown {
        self.text().shown()
    }

    /// What is new since the last call.
    pub fn unread(&self) -> Shown {
        self.text().unread()
    }

    /// Says whether [`CommandRun::unread`] would show anything.
    pub fn has_unread(&self) -> bool {
        self.text().has_unread()
    }

    /// Types to the command; refused where there is no terminal.
    pub async fn send(&self, input: &Input) -> Result<(), InputError> {
        if matches!(self.state(), CommandState::Ended(_)) {
            return Err(InputError::Ended);
        }
        let (answer, answered) = oneshot::channel();
        let asked = self.0.asks.send(Ask::Send(input.clone(), answer)).await;
        asked.map_err(|_| InputError::Ended)?;
        answered.await.unwrap_or(Err(InputError::Ended))
    }

    /// Stops the command: it has ended when this resolves, which takes no longer than 100 ms; what
    /// does not go by itself is killed afterwards.
    pub async fn stop(&self) {
        if matches!(self.state(), CommandState::Ended(_)) {
            return;
        }
        let (answer, answered) = oneshot::channel();
        if self.0.asks.send(Ask::Stop(answer)).await.is_ok() {
            // No answer means that the command ended on its own.
            answered.await.ok();
        }
    }

    /// Says whether the command ended while processes it had started in the background lived.
    pub fn left_behind(&self) -> bool {
        self.0.left_behind.load(Ordering::Relaxed)
    }

    pub(super) fn note_left_behind(&self) {
        self.0.left_behind.store(true, Ordering::Relaxed);
    }

    pub(super) fn text(&self) -> MutexGuard<'_, Text> {
        self.0.text.lock()
    }

    /// Tells the watchers that there is new output.
    pub(super) fn tell_output(&self) {
        let received = self.text().received();
        self.0.progress.send_if_modified(|progress| {
            let news = progress.received != received;
            progress.received = received;
            news
        });
    }

    /// Tells the watchers a new state; the end is final.
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

/// Ends a run whose backend goes away without saying how.
#[derive(Debug)]
pub(super) struct Closing(pub(super) CommandRun);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.set_state(CommandState::Ended(CommandEnd::Closed));
    }
}
