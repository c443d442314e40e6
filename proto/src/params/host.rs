//! Methods about what a launch as a whole offers and wants kept.

use serde::{Deserialize, Serialize};

/// Values that must not appear in what tools say. Never printed: there is no Debug.
#[derive(Clone, Deserialize)]
pub struct AddFilterValuesParams {
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ok {
    pub ok: bool,
}

/// Where a client wants the files of sessions kept, on its side.
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

/// How the client's paths are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathConventions {
    Windows,
    Posix,
}
