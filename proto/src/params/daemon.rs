//! Our own methods about the daemon as a process.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::time::Timestamp;

/// What a daemon is and does at this moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    pub version: String,
    pub build: String,
    pub pid: u32,
    pub home: String,
    pub started: Timestamp,
    pub uptime_ms: u64,
    /// Open connections, the asker's included.
    pub connections: usize,
    /// Model calls and tools under way.
    pub work: usize,
    pub sessions: Vec<LiveSession>,
}

/// A session that is in the daemon's memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSession {
    pub session_id: SessionId,
    pub activity: Activity,
    /// Messages that wait for the loop.
    pub queued: usize,
}

/// What the loop of a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    Idle,
    Working,
    /// Only a client's answer is missing.
    Waiting,
}
