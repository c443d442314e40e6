//! Methods about the daemon and the connection.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::time::Timestamp;

/// The parameters of a method that has none; all members are ignored.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
pub struct NoParams {}

/// The empty result of a method that succeeded.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct NoResult {}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConnectParams {
    pub token: Option<String>,
    pub client_info: Option<ClientInfo>,
    /// Our own member: the id of a client that connects again. Messages that it sent before stay
    /// its own.
    pub loopd_client_id: Option<String>,
}

/// What a client says of itself.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClientInfo {
    pub editor_name: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connected {
    pub ok: bool,
    pub protocol_version: u32,
    pub version: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct PingParams {
    pub message: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pong {
    pub message: String,
    pub timestamp: Timestamp,
    pub protocol_version: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub version: String,
    pub protocol_version: u32,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    pub is_authenticated: bool,
    pub auth_type: Option<String>,
    pub host: Option<String>,
    pub login: Option<String>,
    pub status_message: Option<String>,
}
