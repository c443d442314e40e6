//! Methods that take a session back to an earlier point.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::rewind::RewindMode;
use crate::id::{EventId, RewindId, SessionId};
use crate::time::Timestamp;

/// Names an event of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventParams {
    pub session_id: SessionId,
    pub event_id: EventId,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    pub events_removed: u64,
    pub checkpoint_cleanup_failed: bool,
}

/// Why files cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnavailableReason {
    FileChangeTrackingDisabled,
    SessionBusy,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPoints {
    pub file_change_tracking_enabled: bool,
    pub unavailable_reason: Option<UnavailableReason>,
    /// Our own member: what has to end first, if the session is busy.
    pub work: Option<String>,
    /// Oldest first.
    pub points: Vec<RewindPoint>,
}

/// A user message that the session can go back to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindPoint {
    pub event_id: EventId,
    pub user_message: String,
    pub timestamp: Timestamp,
    pub can_restore_files: bool,
    /// How many files this turn and the later ones changed.
    pub file_count: u64,
    pub turn_changed_files: bool,
    pub lines_added: u64,
    pub lines_removed: u64,
    pub is_autopilot_continuation: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeType {
    Created,
    Deleted,
    Modified,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePreview {
    pub path: String,
    pub change_type: FileChangeType,
    pub lines_added: u64,
    pub lines_removed: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    pub available: bool,
    pub reason: Option<UnavailableReason>,
    pub file_count: u64,
    pub files: Vec<FilePreview>,
    /// Our own members: what is left alone, and what cannot be brought back, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<LeftFile>,
    pub warning: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindParams {
    pub session_id: SessionId,
    pub event_id: EventId,
    pub mode: RewindMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewindOutcome {
    Success,
    SessionBusy,
    FileChangeTrackingDisabled,
    FilesRolledBack,
    RollbackIncomplete,
    TruncationFailed,
    /// Of `loopd.rewind` only: files changed since, and the caller wanted all or nothing.
    Conflicts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkipReason {
    UserModified,
    SkippedCapture,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkippedRestore {
    pub path: String,
    pub reason: SkipReason,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindResult {
    pub outcome: RewindOutcome,
    pub events_removed: Option<u64>,
    pub restored_files: Vec<String>,
    pub skipped_files: Vec<SkippedRestore>,
    pub error: Option<String>,
    /// Our own member: what cannot be brought back, in words.
    pub warning: Option<String>,
}

/// What to do about files that somebody else changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// Leave these files alone and restore the others.
    #[default]
    Skip,
    /// Touch nothing.
    Refuse,
}

/// The parameters of `loopd.rewind`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopdRewindParams {
    pub session_id: SessionId,
    /// The user message to go back to. Without it the last rewind is undone.
    pub event_id: Option<EventId>,
    /// What is taken back: conversation and files when absent, or what the undone rewind took back.
    pub mode: Option<RewindMode>,
    #[serde(default)]
    pub on_conflict: OnConflict,
    /// Only says what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// A file that is left alone, and why, in words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeftFile {
    pub path: String,
    pub reason: SkipReason,
    pub why: String,
}

/// The result of `loopd.rewind`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoopdRewound {
    pub outcome: RewindOutcome,
    pub dry_run: bool,
    pub rewind_id: Option<RewindId>,
    pub mode: RewindMode,
    pub events_removed: u64,
    pub files: Vec<FilePreview>,
    pub skipped: Vec<LeftFile>,
    pub error: Option<String>,
    /// What cannot be brought back, in words.
    pub warning: Option<String>,
}
