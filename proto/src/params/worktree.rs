//! Our own methods about the worktrees of agents.

use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::time::Timestamp;

/// All worktrees of the home.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorktreeList {
    pub worktrees: Vec<Worktree>,
}

/// A worktree of an agent, or the rest of one. Members that are not known are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    pub id: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The commit it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The session of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(rename = "use")]
    pub usage: WorktreeUse,
    pub contents: WorktreeContents,
}

/// The use of a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WorktreeUse {
    /// An agent works in it.
    InUse,
    /// Its agent has ended and left changes.
    Kept,
    /// Its agent vanished without ending, for example with an earlier daemon.
    Leftover,
}

/// What the removal of a worktree would lose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum WorktreeContents {
    Unchanged {},
    #[serde(rename_all = "camelCase")]
    Changed {
        /// The first few files that differ from the commit.
        files: Vec<String>,
        /// How many more there are.
        more_files: usize,
        /// Commits that were made there.
        commits: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// The contents cannot be determined.
    Unclear {
        why: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorktreeRemoveParams {
    pub id: String,
    /// Whether to remove it together with its changes.
    #[serde(default)]
    pub force: bool,
}
