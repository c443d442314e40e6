//! Fleets: workers that carry out the todos of a session.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::attachment::Attachment;
use crate::event::fleet::FleetProgress;
use crate::id::SessionId;
use crate::run_scope::RunLimits;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStartParams {
    pub session_id: SessionId,
    /// What to do. The model divides it into todos first. Without it the todos that there are count.
    #[serde(default)]
    pub prompt: Option<String>,
    /// What goes with the prompt.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Whether to reply only when the fleet has ended and the session is idle.
    #[serde(default)]
    pub wait: bool,
    /// How many workers may work at the same time; as many as agents may, unless said.
    #[serde(default)]
    pub max_workers: Option<u32>,
    /// Which agent the workers are; `general-purpose` unless named.
    #[serde(default)]
    pub agent_type: Option<String>,
    /// Whether the prompt is charged for. loopd charges for none, so only `false` is taken.
    #[serde(default)]
    pub billable: Option<bool>,
    /// Our own member: how much the fleet may take, with the run that divides its work and the one that
    /// hears of its end.
    #[serde(default)]
    pub limits: Option<RunLimits>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStartResult {
    pub started: bool,
    /// Our own member: how the fleet ended, for who waited.
    pub result: Option<FleetProgress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStopped {
    /// Whether there was a fleet.
    pub stopped: bool,
}

/// The fleet of a session, if it has one.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStatus {
    pub active: bool,
    /// Whether the fleet waits for `session.fleet.start`, because the session was opened again.
    pub paused: bool,
    pub progress: Option<FleetProgress>,
    /// How the last fleet ended.
    pub last: Option<FleetProgress>,
}
