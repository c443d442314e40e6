//! Research: a question that several agents look into, and a report with sources.

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, SessionId};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResearchParams {
    pub session_id: SessionId,
    /// The question.
    pub topic: String,
    /// The file for the report; a file in the folder `research` of the working directory, unless said.
    #[serde(default)]
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResearchBegun {
    pub message_id: MessageId,
    /// Where the report will be.
    pub report_path: String,
}
