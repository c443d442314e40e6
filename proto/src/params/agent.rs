//! Methods about the agents of a session.

use serde::{Deserialize, Serialize};

use super::discovery::Agent;
use crate::id::SessionId;

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    pub session_id: SessionId,
    /// Whether the built-in agents are listed, too.
    #[serde(default)]
    pub include_built_in_agents: bool,
    #[serde(default)]
    pub include_prompt: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Selected {
    /// Null for the default agent.
    pub agent: Option<Agent>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectParams {
    pub session_id: SessionId,
    pub name: String,
}
