//! Methods about the workspace: the directory of a session's own files.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;
use crate::time::Timestamp;

/// The workspace of a session, with the member names of the public schema.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
pub struct Workspace {
    pub id: SessionId,
    pub cwd: Option<String>,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    pub branch: Option<String>,
    pub name: Option<String>,
    pub user_named: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Serialize)]
pub struct Found {
    pub workspace: Option<Workspace>,
    pub path: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Files {
    pub files: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileParams {
    pub session_id: SessionId,
    pub path: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Content {
    pub content: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    pub session_id: SessionId,
    pub path: String,
    pub content: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PasteParams {
    pub session_id: SessionId,
    pub content: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct SavedPaste {
    pub saved: Option<Paste>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Paste {
    pub file_path: String,
    /// The path relative to the workspace's files.
    pub filename: String,
    pub size_bytes: u64,
}
