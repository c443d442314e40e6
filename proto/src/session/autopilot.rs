//! How far an agent in autopilot mode goes on by itself.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How often the agent is told to go on with one message, unless the session says otherwise.
const MAX_CONTINUES: u64 = 5;

/// The options of the autopilot. They do not change the mode of the session.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutopilotOptions {
    /// Whether the daemon tells the agent to go on; yes when absent.
    pub continuation_enabled: Option<bool>,
    /// How often it does so for one message; 5 when absent.
    pub max_continues: Option<u64>,
    /// Our own member: whether the session goes on while no client is attached; no when absent.
    #[serde(rename = "loopdUnattended")]
    pub unattended: Option<bool>,
}

impl AutopilotOptions {
    /// Returns these options, with those that `newer` sets replaced.
    #[must_use]
    pub fn updated_by(self, newer: Self) -> Self {
        Self {
            continuation_enabled: newer.continuation_enabled.or(self.continuation_enabled),
            max_continues: newer.max_continues.or(self.max_continues),
            unattended: newer.unattended.or(self.unattended),
        }
    }

    pub fn continues(self) -> bool {
        self.continuation_enabled != Some(false)
    }

    pub fn most_continues(self) -> u64 {
        self.max_continues.unwrap_or(MAX_CONTINUES)
    }

    /// Whether the session goes on while no client is attached.
    pub fn goes_on_alone(self) -> bool {
        self.unattended == Some(true)
    }
}
