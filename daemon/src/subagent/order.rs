//! The order for a sub-agent, and the plan that it becomes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use loopd_proto::event::agent::Profile;
use loopd_proto::event::task::{Execution, WorktreeWork};
use loopd_proto::id::{SessionId, TaskId, ToolCallId};
use loopd_proto::run_scope::{CommandRun, ScopedSkill};

use crate::discovery::agents::AgentOrigin;

/// The definition for orders that name none.
pub(super) const GENERAL: &str = "general-purpose";

/// An order for a sub-agent.
#[derive(Debug, Clone)]
pub struct SubagentOrder {
    /// The definition to start; without one a fork, if enabled, else the general-purpose one.
    pub agent_type: Option<String>,
    /// The name of the sub-agent; made from the description when absent.
    pub name: Option<String>,
    pub description: String,
    pub prompt: String,
    pub model: Option<String>,
    /// Whether the caller wants to wait; the definition of the sub-agent may override this.
    pub execution: Option<Execution>,
    pub isolation: Option<Isolation>,
    pub cwd: Option<String>,
    /// The tool call that starts it; `None` if a client does.
    pub call: Option<ToolCallId>,
    /// The todo that it carries out as a worker of a fleet.
    pub todo: Option<String>,
    /// The tools that it may use at most; all of its definition when absent.
    pub tools: Option<Vec<String>>,
    /// Whether a person reads the answer, so that the model is not told of it.
    pub answers_person: bool,
    /// The slash command that it carries out.
    pub command: Option<CommandRun>,
    /// The skill that it carries out.
    pub skill: Option<ScopedSkill>,
}

impl SubagentOrder {
    /// Makes an order to carry out a skill and to answer with what came of it. Without an agent the
    /// general one does it.
    pub fn of_skill(agent: Option<String>, skill: ScopedSkill) -> Self {
        let words = skill.arguments.trim();
        let words = if words.is_empty() {
            String::new()
        } else {
            format!(" It is about this: {words}")
        };
        Self {
            agent_type: Some(agent.unwrap_or_else(|| GENERAL.to_owned())),
            name: Some(skill.name.replace([':', ' '], "-")),
            description: format!("Carry out the skill {}", skill.name),
            prompt: format!(
                "Carry out the skill \"{}\" above, and answer with what came of it.{words}",
                skill.name
            ),
            model: None,
            execution: Some(Execution::Sync),
            isolation: None,
            cwd: None,
            call: None,
            todo: None,
            tools: None,
            answers_person: false,
            command: None,
            skill: Some(skill),
        }
    }
}

/// How a sub-agent is kept apart from its parent's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    Worktree,
}

/// A checked order: everything that the order names exists.
#[derive(Debug, Clone)]
pub struct SubagentPlan {
    pub profile: Profile,
    /// Where the definition comes from; `None` for a fork.
    pub origin: Option<AgentOrigin>,
    pub execution: Execution,
    pub model: Option<String>,
    pub reasoning_effort: Option<String>,
    pub isolation: Option<Isolation>,
    pub cwd: PathBuf,
    /// Text that is put before the prompt.
    pub preface: Option<String>,
    /// The id of the parent, which every id below begins with; `None` at the top.
    pub prefix: Option<TaskId>,
    /// The ids that the session's registry knows, including those of removed sub-agents.
    pub taken: BTreeSet<TaskId>,
    pub note: Option<String>,
}

/// A child session to be made.
#[derive(Debug, Clone)]
pub struct SpawnSpec {
    pub task: TaskId,
    /// The tool call that asked for it; `None` if a client did.
    pub call: Option<ToolCallId>,
    pub session: SessionId,
    pub plan: SubagentPlan,
    pub worktree: Option<WorktreeWork>,
}
