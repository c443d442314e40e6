//! What models are asked beside the conversations of sessions, apart from summaries.

use serde::Deserialize;

/// How sessions get their titles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TitleSettings {
    /// The model that makes titles of first messages; without one the message itself is the title.
    pub model: Option<String>,
}

/// What is kept of sessions for later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// Whether notes are made of a session when it ends.
    pub consolidate: bool,
    /// The fewest messages that people have sent in a session of which notes are made.
    pub least_messages: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            consolidate: false,
            least_messages: 4,
        }
    }
}
