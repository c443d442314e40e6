//! Methods about the workspace: the directory of a session's own files.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;
use crate::params::rewind::UnavailableReason;
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

/// A numbered note of the session about its past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub number: u64,
    pub title: String,
    pub filename: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Checkpoints {
    pub checkpoints: Vec<Checkpoint>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointParams {
    pub session_id: SessionId,
    pub number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointContent {
    /// `None` if there is no such checkpoint.
    pub content: Option<String>,
}

/// What a diff compares the files with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffMode {
    /// The last commit.
    Unstaged,
    /// The default branch.
    Branch,
    /// The files as they were before the session changed them.
    Session,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffParams {
    pub session_id: SessionId,
    pub mode: DiffMode,
    pub ignore_whitespace: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffChangeType {
    Added,
    Modified,
    Deleted,
    Renamed,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffChange {
    pub path: String,
    pub diff: String,
    pub change_type: DiffChangeType,
    pub old_path: Option<String>,
    pub is_truncated: Option<bool>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffResult {
    pub requested_mode: DiffMode,
    pub mode: DiffMode,
    pub changes: Vec<DiffChange>,
    pub base_branch: Option<String>,
    pub is_fallback: bool,
    pub unavailable_reason: Option<UnavailableReason>,
}
