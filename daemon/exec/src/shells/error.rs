//! Why a command did not start or a shell cannot be used. The tools turn these errors into text for
//! the model.

use loopd_proto::id::ShellId;

use crate::process::SpawnError;
use crate::terminal::{CommandStartError, ShellOpenError};
use loopd_kernel::command::Refusal;

/// Why a shell was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Its command ended, and its output was read.
    Finished,
    /// The model stopped it.
    Stopped,
    /// A client cancelled its task, or the turn was aborted.
    Cancelled,
    /// It was idle, and a new shell needed its place.
    MadeRoom,
    /// It was idle, and nobody was attached to the session for a long time.
    Unattended,
    /// It was opened in plan mode, which has ended.
    PlanModeEnded,
    /// It ended with an earlier daemon, or when the session was closed earlier.
    Lost,
}

/// Why an operation on a shell failed.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    #[error("there is no shell {id}")]
    Unknown { id: ShellId, known: Vec<ShellId> },
    #[error("the shell {id} is closed")]
    Closed { id: ShellId, reason: CloseReason },
    #[error("the shell {0} runs a detached command")]
    Detached(ShellId),
    #[error("the shell {id} was opened without a sandbox")]
    NotSandboxed { id: ShellId, others: Vec<ShellId> },
    #[error("a detached command would outlive its sandbox")]
    DetachedSandbox,
    #[error("the shell {id} still runs `{command}`")]
    StillBusy { id: ShellId, command: String },
    #[error("{limit} shells are open already")]
    TooManyShells { limit: usize },
    /// The command was permitted, and may not begin any more. The text says why.
    #[error("{0}")]
    NotPermitted(String),
    #[error("the turn was aborted")]
    Interrupted,
    #[error("the session has ended")]
    SessionEnded,
    #[error("the shell could not be opened: {0}")]
    Open(#[source] ShellOpenError),
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
