//! Our own methods by which relays and clients bring what belongs to their launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::home_paths::FileId;

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
    /// The caller keeps its clients when the home is emptied: it wants to be told with
    /// [`HOME_EMPTIED`], and starts the next daemon by itself.
    #[serde(default)]
    pub outlives_home: bool,
    /// What the launch had with the daemon before, when the home was emptied.
    #[serde(default)]
    pub state: LaunchState,
}

/// What clients have set for their launch; carried from a daemon to the next one.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchState {
    pub plugins: Vec<String>,
    /// The values to mask in what tools say.
    pub masked: Vec<String>,
    /// A client carries the model requests, whether or not it is still there.
    pub inference_by_client: bool,
    /// A client keeps the files of sessions, whether or not it is still there.
    pub session_files_by_client: bool,
    /// The runtime was shut down: requests are refused.
    pub ended: bool,
}

/// What one connection of a launch has reached; carried from a daemon to the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkState {
    /// Has shown its token, or needs none.
    pub authenticated: bool,
    pub carries_inference: bool,
    pub keeps_session_files: bool,
    /// The first number for a request to the client that none has had.
    pub next_request_id: u64,
}

/// What the daemon asks of a relay when its home was emptied, deleted or moved: to stop at the end
/// of a frame, to close its half of each link, and to bring this to the next daemon.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HomeEmptiedParams {
    pub launch: LaunchState,
    /// By the number of the link. Of a link that is missing nothing was taken.
    pub links: BTreeMap<u64, LinkState>,
}

/// The name of that request.
pub const HOME_EMPTIED: &str = "loopd.homeEmptied";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    pub launch_id: String,
    /// The daemon's build.
    pub build: String,
    /// Set when the daemon makes room for the caller's build and leaves.
    pub leaving: bool,
    /// The lock file that the daemon holds: while it is in the home, the daemon serves the home.
    #[serde(default)]
    pub lock: Option<FileId>,
}

/// Ties a connection to a launch; a notification, so that nothing has to be waited for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinNotification {
    pub launch_id: String,
    pub transport: JoinTransport,
    /// Tells the connections of a launch apart.
    #[serde(default)]
    pub link: Option<u64>,
    /// What the link had with the daemon before, when the home was emptied.
    #[serde(default)]
    pub state: LinkState,
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
