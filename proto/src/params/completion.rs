//! Completion of what a person types.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;

/// The characters after which a client asks for completions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerCharacters {
    pub trigger_characters: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionParams {
    pub session_id: SessionId,
    /// All that is typed.
    pub text: String,
    /// Where the cursor is in it, in UTF-16 code units.
    pub offset: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Completions {
    /// The best first.
    pub items: Vec<CompletionItem>,
}

/// One completion. It replaces the text between the two offsets.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionItem {
    pub insert_text: String,
    pub range_start: Option<u64>,
    pub range_end: Option<u64>,
    pub label: Option<String>,
    pub kind: Option<String>,
}
