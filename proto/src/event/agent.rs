//! Sub-agents: their identity, and the events of their start and end for the parent's clients.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::task::Execution;
use crate::id::{AgentId, SessionId, TaskId, ToolCallId};
use crate::run_scope::{ScopedSkill, ToolLimits};

/// This session is an agent of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentIdentity {
    pub parent: SessionId,
    /// The task in the parent's registry. The id contains those of its ancestors, so that it is unique
    /// in the tree.
    pub task: TaskId,
    /// 1 for the agents of a session that is not an agent's.
    pub depth: u32,
    pub profile: Profile,
}

impl SubagentIdentity {
    /// Returns the id that the events for the parent's clients carry.
    pub fn agent_id(&self) -> AgentId {
        AgentId::new(self.task.as_str())
    }
}

/// The definition of an agent at the time it started.
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
    /// The tools that the slash command which started it allows; all when absent.
    pub run_tools: Option<Vec<String>>,
    /// What narrowed the run in which it was started.
    #[serde(skip_serializing_if = "ToolLimits::is_empty")]
    pub limits: ToolLimits,
    pub max_turns: Option<u32>,
    /// The skills in its system message, which are all that it has; all of the session when absent.
    pub skills: Option<Vec<String>>,
    /// The skill that it was started to carry out.
    pub task_skill: Option<ScopedSkill>,
    pub stance: Stance,
    /// Whether it continues its parent's conversation, with exactly the prompt and tools of its parent.
    pub fork: bool,
    /// The copy of the repository it works in.
    pub worktree: Option<String>,
    /// The top folder that was copied, under the names by which rules may know it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<String>,
    /// The folder in which it keeps its memory.
    pub memory: Option<String>,
}

/// How an agent treats tool calls that need a permission. Never allows more than its parent does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stance {
    /// As its parent.
    #[default]
    Inherit,
    /// It writes nothing, and runs commands only after a permission request.
    Plan,
    /// Calls for which its parent would request a permission are denied.
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
    pub agent_id: Option<AgentId>,
    /// The session that it works in.
    pub session_id: Option<SessionId>,
}

/// A sub-agent has ended or was stopped.
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
    pub agent_id: Option<AgentId>,
    /// The session that it worked in.
    pub session_id: Option<SessionId>,
    /// `completed`, `cancelled`, or `idle` if it takes messages.
    pub status: Option<String>,
}

/// A sub-agent has failed.
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
    pub agent_id: Option<AgentId>,
    /// The session that it worked in.
    pub session_id: Option<SessionId>,
    /// `failed`.
    pub status: Option<String>,
}
