//! Events about taking a session back to an earlier point of its log.
//!
//! Nothing leaves the log. A rewind says from which position on the events before it no longer count
//! for the conversation.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{EventId, RewindId, Seq};

/// The name of the event that takes a session back.
pub const REWOUND: &str = "loopd.rewound";

/// What a rewind takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewindMode {
    Conversation,
    /// The files that tools changed; the conversation stays. The official clients do not have it.
    Files,
    ConversationAndFiles,
}

impl RewindMode {
    pub fn has_conversation(self) -> bool {
        match self {
            Self::Conversation | Self::ConversationAndFiles => true,
            Self::Files => false,
        }
    }

    pub fn has_files(self) -> bool {
        match self {
            Self::Files | Self::ConversationAndFiles => true,
            Self::Conversation => false,
        }
    }
}

/// The point to which a session goes back.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindTarget {
    /// The first event that no longer counts.
    pub event_id: EventId,
    /// The position of that event.
    pub position: Seq,
    /// The last visible event that still counts.
    pub tip: Option<EventId>,
    /// How many visible events still count.
    pub kept: u64,
}

/// A rewind begins to restore files. The session does nothing else until the rewind has ended.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindStarted {
    pub rewind: RewindId,
    pub mode: RewindMode,
    #[serde(flatten)]
    pub target: RewindTarget,
    /// The rewind that this one takes back.
    pub undoes: Option<RewindId>,
    /// How many visible events counted when the target was looked up, and how many of them go.
    pub visible: u64,
    pub removed: u64,
}

/// The session went back.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    pub rewind: RewindId,
    pub mode: RewindMode,
    #[serde(flatten)]
    pub target: RewindTarget,
    pub undoes: Option<RewindId>,
    /// How many visible events no longer count.
    pub events_removed: u64,
    /// How many files were restored or removed.
    #[serde(default)]
    pub restored: u64,
    /// How many files were left as they are.
    #[serde(default)]
    pub skipped: u64,
    /// Whether a daemon that started later carried out the rest.
    pub completed_later: Option<bool>,
    /// Set for an undo that took back messages which people sent after the rewind that it undoes.
    pub took_work: Option<bool>,
}

/// Files could not be restored, so the session did not go back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewindFailed {
    pub rewind: RewindId,
    pub error: String,
    /// Whether every file is as it was before.
    pub rolled_back: bool,
}

/// The conversation was taken back. Clients forget the event and all that came after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRewind {
    pub up_to_event_id: EventId,
    pub events_removed: u64,
    /// Our own member: how many earlier events count again, after a rewind was undone. Clients have to
    /// read them again.
    #[serde(default, skip_serializing_if = "is_none")]
    pub events_restored: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(count: &u64) -> bool {
    *count == 0
}
