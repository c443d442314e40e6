//! Methods about the conversation as a whole.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handoff {
    /// Markdown; empty if the session has no messages.
    pub summary: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CompactionCancelled {
    pub cancelled: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CompactionAborted {
    pub aborted: bool,
}
