//! Methods that describe a session, move it to another directory, and end it.

use serde::{Deserialize, Serialize};

use super::workspace::Workspace;
use crate::event::session::WorkContext;
use crate::id::SessionId;
use crate::session::{Mode, SessionLimits};
use crate::time::Timestamp;

/// A summary of a session. A null member is known to be absent.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub session_id: SessionId,
    pub start_time: Timestamp,
    pub modified_time: Timestamp,
    pub is_remote: bool,
    pub already_in_use: bool,
    pub workspace_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub working_directory: String,
    pub current_mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_model: Option<String>,
    pub session_limits: Option<SessionLimits>,
    pub workspace: Option<Workspace>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Processing {
    pub processing: bool,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    pub abortable: bool,
    pub has_active_work: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryParams {
    pub session_id: SessionId,
    pub working_directory: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    pub working_directory: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextParams {
    pub session_id: SessionId,
    pub context: WorkContext,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownParams {
    pub session_id: SessionId,
    #[serde(default, rename = "type")]
    pub kind: Ending,
    #[serde(default)]
    pub reason: Option<String>,
}

/// Whether a session ends normally.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    #[default]
    Routine,
    Error,
}
