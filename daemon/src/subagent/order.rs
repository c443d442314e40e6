//! What is asked of a sub-agent, and what the order comes to.

use std::collections::BTreeSet;
use std::path::PathBuf;

use loopd_proto::event::agent::Profile;
use loopd_proto::event::task::{Execution, WorktreeWork};
use loopd_proto::id::{SessionId, TaskId, ToolCallId};

/// What is asked of an agent.
#[derive(Debug, Clone)]
pub struct SubagentOrder {
    /// Which agent; without one, a fork where that is switched on, else the general one.
    pub agent_type: Option<String>,
    /// What to call it; made from the description when absent.
    pub name: Option<String>,
    pub description: String,
    pub prompt: String,
    pub model: Option<String>,
    /// How the caller wants to wait; the agent's definition may say otherwise.
    pub execution: Option<Execution>,
    pub isolation: Option<Isolation>,
    pub cwd: Option<String>,
    /// The call that starts it; none when a client does.
    pub call: Option<ToolCallId>,
}

/// How an agent is kept apart from its parent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    Worktree,
}

/// What an order comes to, once everything it names is known to be there.
#[derive(Debug, Clone)]
pub struct SubagentPlan {
    pub profile: Profile,
    pub execution: Execution,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub isolation: Option<Isolation>,
    pub cwd: PathBuf,
    /// Said before the prompt.
    pub preface: Option<String>,
    /// The id of the parent, which every id below begins with; none at the top.
    pub prefix: Option<TaskId>,
    /// The ids that the session's registry knows, those of removed agents among them.
    pub taken: BTreeSet<TaskId>,
    pub note: Option<String>,
}

/// A child session to be made.
#[derive(Debug, Clone)]
pub struct SpawnSpec {
    pub task: TaskId,
    /// The call that asked for it; none when a client did.
    pub call: Option<ToolCallId>,
    pub session: SessionId,
    pub plan: SubagentPlan,
    pub worktree: Option<WorktreeWork>,
}
