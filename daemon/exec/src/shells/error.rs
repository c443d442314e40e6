//! Why a command did not start or a shell cannot be reached. The tools word it for the model.

use loopd_proto::id::ShellId;

use crate::process::SpawnError;
use crate::terminal::{CommandStartError, OpenError};
use loopd_kernel::command::Refusal;

/// How a shell was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Its command had ended and was read.
    Finished,
    /// The model stopped it.
    Stopped,
    /// A client cancelled its task, or the turn was aborted.
    Cancelled,
    /// It rested longest when another shell needed its place.
    MadeRoom,
    /// It died with an earlier daemon or an earlier opening of the session.
    Lost,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("there is no shell {id}")]
    Unknown { id: ShellId, known: Vec<ShellId> },
    #[error("the shell {id} is closed")]
    Closed { id: ShellId, how: Closed },
    #[error("the shell {0} runs a detached command")]
    Detached(ShellId),
    #[error("the shell {id} still runs `{command}`")]
    StillBusy { id: ShellId, command: String },
    #[error("{limit} shells are open already")]
    TooManyShells { limit: usize },
    #[error("the turn was aborted")]
    Interrupted,
    #[error("the session has ended")]
    SessionEnded,
    #[error("the shell could not be opened: {0}")]
    Open(#[source] OpenError),
    #[error("the command could not be started: {0}")]
    Start(#[source] CommandStartError),
    #[error("the command could not be started: {0}")]
    Spawn(#[source] SpawnError),
    #[error("the session could not be told: {0}")]
    NotStored(#[source] TaskLogError),
}

/// Why the session's log was not told something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskLogError {
    #[error("the session has ended")]
    SessionEnded,
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The log could not be written, in the words of the session.
    #[error("{0}")]
    NotStored(String),
}
