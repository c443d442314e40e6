//! Our own methods by which relays and clients bring what belongs to their launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one launch brings; kept in memory only.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchParams {
    /// The build of the process that asks; another build than the daemon's may replace it.
    pub build: String,
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    /// The variable that holds the token for the Copilot API.
    #[serde(default)]
    pub auth_token_env: Option<String>,
    /// What TCP clients of this launch have to show.
    #[serde(default)]
    pub connection_token: Option<String>,
    #[serde(default)]
    pub yolo: bool,
    /// Sessions that were idle for this many seconds are ended.
    #[serde(default)]
    pub session_idle_timeout: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    pub launch_id: String,
    /// The daemon's build.
    pub build: String,
    /// Set when the daemon makes room for the caller's build and leaves.
    pub leaving: bool,
}

/// Ties a connection to a launch; a notification, so that nothing has to be waited for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinNotification {
    pub launch_id: String,
    pub transport: JoinTransport,
}

/// The name of that notification.
pub const JOIN: &str = "loopd.join";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JoinTransport {
    /// A pipe from the process that started the relay.
    Pipe,
    /// TCP: whoever speaks has to show the token.
    Tcp,
}
