//! Methods that apply to a whole launch.

use serde::{Deserialize, Serialize};

/// Values that must not appear in tool output. There is no Debug, so that they are never printed.
#[derive(Clone, Deserialize)]
pub struct AddFilterValuesParams {
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ok {
    pub ok: bool,
}

/// Where a client stores the files of sessions, on its side.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFilesParams {
    pub initial_cwd: String,
    pub session_state_path: String,
    pub conventions: PathConventions,
}

/// The plugins that come with a client.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PluginsParams {
    pub paths: Vec<String>,
}

/// The path syntax of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathConventions {
    Windows,
    Posix,
}
