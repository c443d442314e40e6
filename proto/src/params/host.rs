//! Methods about what a launch as a whole offers and wants kept.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Values that must not appear in what tools say. Never printed: there is no Debug.
#[derive(Clone, Deserialize)]
pub struct AddFilterValuesParams {
    pub values: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Ok {
    pub ok: bool,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ListToolsParams {
    /// Our tools are the same for every model.
    pub model: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tools {
    pub tools: Vec<Tool>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON schema of the arguments.
    pub parameters: Value,
}

/// Where a client wants the files of sessions kept, on its side.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFilesParams {
    pub initial_cwd: String,
    pub session_state_path: String,
    pub conventions: PathConventions,
}

/// How the client's paths are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PathConventions {
    Windows,
    Posix,
}
