//! Sessions that go from one home to another, and sessions found by what was said in them.
//!
//! A bundle is a text of JSON lines: what it is and which session it holds, then the session's events, its
//! own files, what was left out, and the end.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::session::Metadata;
use crate::id::{EventId, SessionId};
use crate::time::Timestamp;

/// The version of the format of bundles that this build writes, and the newest that it reads.
pub const BUNDLE_VERSION: u32 = 1;

#[skip_serializing_none]
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportParams {
    pub session_id: SessionId,
    /// The `next` of the page before; the first page when absent.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Leaves out the session's own files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_files: bool,
}

/// A part of a bundle. The bundle is the texts of all pages, one after the other.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportPage {
    pub text: String,
    /// Names the next page; absent after the last one.
    pub next: Option<String>,
    /// What the bundle does not have, in words; told with the last page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportPartParams {
    /// The caller's name for the bundle that it sends: 8 to 64 letters, digits and `-`.
    pub upload: String,
    /// How many bytes of the bundle were sent before. A part that is sent again is taken once.
    pub offset: u64,
    /// The next part of the text. The first part has the whole first line.
    pub text: String,
}

/// How many bytes of the bundle the daemon has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportPartTaken {
    pub bytes: u64,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportParams {
    /// The name under which the bundle was sent.
    pub upload: String,
    /// Where the session works from now on; the directory of the caller's launch when absent.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Gives the session a new id, so that it can be beside the one it was exported from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_id: bool,
}

/// A session that was brought here.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedSession {
    pub session_id: SessionId,
    pub events: u64,
    pub files: u64,
    pub working_directory: String,
    /// What the bundle does not have, in the words of who exported it.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchParams {
    /// What was said by a person or a model, or is in the name of a session or its directory. Letters of
    /// the Latin alphabet match in both cases.
    pub text: String,
    /// How many sessions at most; 20 when absent, and never more than 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The sessions that have a text, the most recently changed first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    pub sessions: Vec<SessionMatch>,
    /// Whether everything was looked at. The search ends after some seconds, or with the limit.
    pub complete: bool,
}

/// A session that has the text.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMatch {
    pub session: Metadata,
    /// The newest message that has it; absent if the session's name or directory has it.
    pub message: Option<MessageMatch>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageMatch {
    pub event_id: EventId,
    pub timestamp: Timestamp,
    /// Whether a person said it; else a model did.
    pub by_user: bool,
    /// The text with what stands around it, in one line.
    pub excerpt: String,
}
