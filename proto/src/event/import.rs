//! A session that was brought from another home.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;
use crate::time::Timestamp;

/// The log up to here was written in another home. What was approved there does not count here, and what
/// named places or programs of that machine is gone.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The id that the session had there.
    pub from_session_id: SessionId,
    /// The directory that it worked in there.
    pub from_directory: Option<String>,
    pub exported_at: Timestamp,
    /// The version of the daemon that exported it.
    pub exported_by: String,
    /// The directory that it works in from now on.
    pub working_directory: String,
}
