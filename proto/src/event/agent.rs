//! Sub-agents: who they are, and what their parents' clients are told of their beginning and end.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::task::Execution;
use crate::id::{AgentId, SessionId, TaskId, ToolCallId};

/// This session is an agent of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentIdentity {
    pub parent: SessionId,
    /// The task in the parent's registry; also the way down to it, so that it is unique in the tree.
    pub task: TaskId,
    /// 1 for the agents of a session that is none itself.
    pub depth: u32,
    pub profile: Profile,
}

impl SubagentIdentity {
    /// Names the agent in the events that reach its parents' clients.
    pub fn agent_id(&self) -> AgentId {
        AgentId::new(self.task.as_str())
    }
}

/// What an agent is made of, as it was when it began.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    pub agent_type: String,
    pub display_name: String,
    /// Its part of the system message.
    pub prompt: String,
    /// The tools it may use; all when absent.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Vec<String>,
    pub max_turns: Option<u32>,
    pub stance: Stance,
    /// It continues its parent's conversation and is given exactly what its parent was given.
    pub fork: bool,
    /// The copy of the repository it works in.
    pub worktree: Option<String>,
}

/// How an agent treats what it has no leave for. Never more than its parent may.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stance {
    /// As its parent.
    #[default]
    Inherit,
    /// Writes nothing, and runs nothing without being asked about.
    Plan,
    /// What its parent would ask about is refused.
    NeverAsk,
}

/// A sub-agent has begun.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentStarted {
    pub tool_call_id: ToolCallId,
    pub agent_name: String,
    pub agent_display_name: String,
    pub agent_description: String,
    pub model: Option<String>,
    /// The sub-agent that started it; absent when the main agent did.
    pub parent_id: Option<AgentId>,
    pub agent_type: Option<String>,
    pub execution_mode: Option<Execution>,
}

/// A sub-agent has come to an end, or was ended.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentCompleted {
    pub tool_call_id: ToolCallId,
    pub agent_name: String,
    pub agent_display_name: String,
    pub model: Option<String>,
    pub explicit_model_override: Option<String>,
    pub total_tool_calls: Option<u64>,
    pub total_tokens: Option<u64>,
    pub duration_ms: Option<u64>,
    pub cancelled: Option<bool>,
}

/// A sub-agent could not go on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentFailed {
    pub tool_call_id: ToolCallId,
    pub agent_name: String,
    pub agent_display_name: String,
    pub error: String,
    pub model: Option<String>,
    pub explicit_model_override: Option<String>,
    pub total_tool_calls: Option<u64>,
    pub total_tokens: Option<u64>,
    pub duration_ms: Option<u64>,
}
