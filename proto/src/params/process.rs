//! Our own method about the commands that the daemon runs as processes.

use serde::{Deserialize, Serialize};

use crate::id::{ProcessId, SessionId};
use crate::time::Timestamp;

/// All commands that the daemon owns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessList {
    pub processes: Vec<Process>,
}

/// A command that was started and of which something lives.
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
    /// Where the output of a detached command goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
}

/// What a command dies with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessClass {
    Turn,
    Session,
    Daemon,
    /// It dies with nobody.
    Detached,
}

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessState {
    Running,
    /// It ended, but processes it started live on.
    LeftBehind,
}
