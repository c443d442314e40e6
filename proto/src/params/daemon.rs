//! Our own methods about the daemon as a process.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::time::Timestamp;

/// The version, process and live sessions of a daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    pub version: String,
    pub build: String,
    pub pid: u32,
    pub home: String,
    pub started: Timestamp,
    pub uptime_ms: u64,
    /// The number of open connections, the caller's included.
    pub connections: usize,
    /// The number of running model calls and tools.
    pub work: usize,
    pub sessions: Vec<LiveSession>,
    /// What is wrong with `config.toml`, as it is on the disk now or as it was read at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_problem: Option<String>,
}

/// What a look for damage in the database found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseCheck {
    /// What is damaged; empty if nothing is.
    pub damage: Vec<String>,
    /// Whether all of it was looked at, in the time that there is for that.
    pub complete: bool,
}

/// A session that is in the daemon's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSession {
    pub session_id: SessionId,
    pub activity: Activity,
    /// The number of queued messages.
    pub queued: usize,
}

/// The activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    Idle,
    Working,
    /// It waits for the answer of a client.
    Waiting,
}
