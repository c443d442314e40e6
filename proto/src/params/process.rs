//! Our own method about the processes that the daemon runs for commands.

use serde::{Deserialize, Serialize};

use crate::id::{ProcessId, SessionId};
use crate::time::Timestamp;

/// All commands that the daemon owns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessList {
    pub processes: Vec<Process>,
}

/// A command that has a live process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    pub id: ProcessId,
    pub pid: u32,
    pub class: ProcessClass,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    pub command: String,
    pub started_at: Timestamp,
    pub state: ProcessState,
    /// The output file of a detached command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
}

/// What ends a command at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessClass {
    Turn,
    Session,
    Daemon,
    /// Nothing: it outlives the daemon.
    Detached,
}

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessState {
    Running,
    /// A shell that waits for its next command.
    Idle,
    /// The command has ended, but processes that it started are alive.
    LeftBehind,
}
