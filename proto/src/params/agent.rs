//! Methods about the agents of a session.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    pub id: String,
    pub name: String,
    pub display_name: String,
    pub description: String,
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Agents {
    pub agents: Vec<AgentInfo>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Selected {
    /// Null for the default agent.
    pub agent: Option<AgentInfo>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectParams {
    pub session_id: SessionId,
    pub name: String,
}
