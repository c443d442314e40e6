//! Making room in the context of a model. Nothing leaves the log: these events say what the model
//! reads in the place of what it read before.

use serde::{Deserialize, Serialize};

use crate::id::Seq;

/// The loop waits until there is room for its next model call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MakingRoom {
    /// The results whose whole texts are being saved to files, before they are shortened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saving: Vec<Seq>,
}

/// Old results of tools were shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    pub results: Vec<PrunedResult>,
}

/// One result that was shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedResult {
    /// The position of the event that has the whole result.
    pub at: Seq,
    /// What the model reads from now on.
    pub text: String,
}

/// The provider refused images or documents of the conversation. The model reads a note in their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRefused {
    /// The positions of the events that have them.
    pub at: Vec<Seq>,
}
