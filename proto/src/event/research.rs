//! Events of a research run.

use serde::{Deserialize, Serialize};

use crate::id::MessageId;

/// A message whose run may only hand out questions to research agents and write the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchStarted {
    pub message: MessageId,
    /// The file that the report is written to.
    pub report: String,
}
