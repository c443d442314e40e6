//! What settings consist of.

use loopd_proto::event::session::AgentSelected;
use loopd_proto::permission::Approval;

/// What is allowed from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub approval: Option<Approval>,
    pub domain: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    pub name: String,
    pub display_name: String,
    pub tools: Option<Vec<String>>,
}

impl From<AgentChoice> for AgentSelected {
    fn from(choice: AgentChoice) -> Self {
        Self {
            agent_name: choice.name,
            agent_display_name: choice.display_name,
            tools: choice.tools,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
}
