//! Our own methods with which relays and clients register their launch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::home_paths::FileId;

/// The largest first message on the daemon's socket, which is a launch with its environment.
pub const LAUNCH_LIMIT: usize = 4 * 1024 * 1024;

/// The directory, environment and flags of a launch; kept in memory only.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchParams {
    /// The build of the caller. If it differs from the daemon's, the daemon may make room for it.
    pub build: String,
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    /// The variable that holds the token for the Copilot API.
    #[serde(default)]
    pub auth_token_env: Option<String>,
    /// The token that TCP clients of this launch must send.
    #[serde(default)]
    pub connection_token: Option<String>,
    #[serde(default)]
    pub yolo: bool,
    /// Sessions that were idle for this many seconds are ended.
    #[serde(default)]
    pub session_idle_timeout: Option<u64>,
    /// Whether the caller keeps its clients when the home is emptied. The daemon then notifies it
    /// with [`HOME_EMPTIED`], and the caller starts the next daemon.
    #[serde(default)]
    pub outlives_home: bool,
    /// The state of the launch in the previous daemon, whose home was emptied.
    #[serde(default)]
    pub state: LaunchState,
}

/// The settings of a launch that are passed from one daemon to the next.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LaunchState {
    pub plugins: Vec<String>,
    /// The values to mask in tool output.
    pub masked: Vec<String>,
    /// A client sends the model requests, whether or not it is still connected.
    pub inference_by_client: bool,
    /// A client stores the files of sessions, whether or not it is still connected.
    pub session_files_by_client: bool,
    /// The runtime was shut down: requests are refused.
    pub ended: bool,
}

/// The state of one connection of a launch that is passed from one daemon to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkState {
    /// It has sent its token, or needs none.
    pub authenticated: bool,
    pub carries_inference: bool,
    pub keeps_session_files: bool,
    /// The first request number that was not used for a request to the client.
    pub next_request_id: u64,
}

/// The request of a daemon to a relay when the home was emptied, deleted or moved: stop at the end
/// of a frame, close your half of each link, and send this state to the next daemon.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HomeEmptiedParams {
    pub launch: LaunchState,
    /// By the number of the link. The daemon has taken no frame from a link that is missing here.
    pub links: BTreeMap<u64, LinkState>,
}

/// The name of that request.
pub const HOME_EMPTIED: &str = "loopd.homeEmptied";

/// Tells a relay why the daemon has ended one of its links.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkClosed {
    pub link: u64,
    pub reason: String,
}

/// The name of that notification.
pub const LINK_CLOSED: &str = "loopd.linkClosed";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launched {
    pub launch_id: String,
    /// The daemon's build.
    pub build: String,
    /// Set when the daemon exits to make room for the caller's build.
    pub leaving: bool,
    /// The lock file that the daemon holds. While it is in the home, the daemon serves the home.
    #[serde(default)]
    pub lock: Option<FileId>,
}

/// Assigns a connection to a launch. It is a notification, so that the sender need not wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinNotification {
    pub launch_id: String,
    pub transport: JoinTransport,
    /// Identifies the connection within the launch.
    #[serde(default)]
    pub link: Option<u64>,
    /// The state of the link in the previous daemon, whose home was emptied.
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
    /// TCP: the client must send the token.
    Tcp,
}
