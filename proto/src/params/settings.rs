//! Methods that read and change small settings of a session.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{EventId, SessionId};
use crate::session::Mode;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogParams {
    pub session_id: SessionId,
    pub message: String,
    #[serde(default)]
    pub level: LogLevel,
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    #[serde(default)]
    pub ephemeral: bool,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub tip: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    #[default]
    Info,
    Warning,
    Error,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Logged {
    pub event_id: EventId,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
pub struct NameResult {
    pub name: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NameParams {
    pub session_id: SessionId,
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryParams {
    pub session_id: SessionId,
    pub summary: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Applied {
    pub applied: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeParams {
    pub session_id: SessionId,
    pub mode: Mode,
    /// The mode that the client believes to be the current one; with another one nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_mode: Option<Mode>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModeResult {
    pub status: String,
    pub model_changed: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    pub exists: bool,
    pub content: Option<String>,
    pub path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanParams {
    pub session_id: SessionId,
    pub content: String,
}
