//! Methods that read a session's events.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::id::{Seq, SessionId};

#[derive(Debug, Serialize, Deserialize)]
pub struct Events {
    pub events: Vec<Box<RawValue>>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(default)]
    pub max: Option<usize>,
    #[serde(default)]
    pub wait_ms: Option<u64>,
    #[serde(default)]
    pub types: Option<Types>,
}

/// The last notification on a connection that is cut because its client reads too slowly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lagged {
    pub reason: String,
    pub sessions: Vec<LaggedSession>,
}

/// Where a client that was cut has to read on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaggedSession {
    pub session_id: SessionId,
    /// The cursor for `session.eventLog.read` that returns the missed events.
    pub cursor: String,
}

/// The name of that notification.
pub const LAGGED: &str = "loopd.lagged";

/// Returns the cursor for everything that was stored after a place in the log.
pub fn cursor_after(seq: Seq) -> String {
    format!("{}.0.0", seq.0)
}

/// Which kinds of events are wanted.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Types {
    /// `"*"`, or a single kind.
    One(String),
    Some(Vec<String>),
}

impl Types {
    pub fn contains(&self, kind: &str) -> bool {
        match self {
            Self::One(wanted) => wanted == "*" || wanted == kind,
            Self::Some(list) => list.iter().any(|wanted| wanted == kind),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadResult {
    pub events: Vec<Box<RawValue>>,
    pub cursor: String,
    pub has_more: bool,
    pub cursor_status: CursorStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CursorStatus {
    Ok,
    /// Ephemeral events between the cursor and now are gone; durable ones follow.
    Expired,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Tail {
    pub cursor: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterestParams {
    pub session_id: SessionId,
    pub event_type: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Interest {
    pub handle: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseParams {
    pub session_id: SessionId,
    pub handle: String,
}
