//! The hooks of an agent's definition: of a sub-agent's own, and of the agent that a session at the top
//! works as.

use crate::discovery::hooks::{HookDefinition, HookKind, HookMatcher};
use crate::hook::HookCell;
use crate::session::actor::Actor;
use crate::subagent::definitions::refresh::RosterCell;

/// Takes the hooks of the selected agent once its definition is known.
pub(in crate::session) struct SelectedAgentHooks {
    cell: HookCell,
    roster: RosterCell,
    agents: Vec<GuardingAgent>,
}

/// An agent whose definition may have hooks.
#[derive(Debug, Clone)]
struct GuardingAgent {
    name: String,
    /// Whether it is the session's own as a sub-agent.
    is_subagent: bool,
}

impl SelectedAgentHooks {
    /// Adds the hooks to those of the session.
    pub(in crate::session) fn take(self) {
        let Self {
            cell,
            roster,
            agents,
        } = self;
        let roster = roster.get();
        let mut found = Vec::new();
        for agent in &agents {
            let mut hooks = roster.hooks_of(&agent.name);
            if agent.is_subagent {
                stop_as_subagents(&mut hooks);
            }
            found.extend(hooks);
        }
        let names: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
        cell.set_agent(Some(names.join(", ")), found);
    }
}

/// Makes the stop of an agent that of a sub-agent.
fn stop_as_subagents(hooks: &mut [HookDefinition]) {
    for hook in hooks {
        if hook.kind == HookKind::AgentStop {
            hook.kind = HookKind::SubagentStop;
            hook.matcher = HookMatcher::Every;
        }
    }
}

impl Actor {
    /// Returns what takes the hooks of the selected agent; `None` if no agent is selected. A sub-agent
    /// that its parent drives has those of its own definition beside those of its parents. One that a
    /// client opened directly has them, and those of the agents above it, from here.
    pub(in crate::session) fn selected_agent_hooks(&self) -> Option<SelectedAgentHooks> {
        if self.subagents.is_child() {
            return None;
        }
        let own = self.state.subagent.as_ref();
        let own = own.map(|own| GuardingAgent {
            name: own.profile.agent_type.clone(),
            is_subagent: true,
        });
        let others = self.hooks.above.agents.iter().chain(&self.state.agent);
        let others = others.map(|name| GuardingAgent {
            name: name.clone(),
            is_subagent: false,
        });
        let mut agents: Vec<GuardingAgent> = own.into_iter().chain(others).collect();
        agents.sort_by(|one, other| one.name.cmp(&other.name));
        agents.dedup_by(|one, other| one.name == other.name);
        if agents.is_empty() {
            self.hooks.files.set_agent(None, Vec::new());
            return None;
        }
        Some(SelectedAgentHooks {
            cell: self.hooks.files.clone(),
            roster: self.subagents.roster_cell(),
            agents,
        })
    }

    /// Adds the hooks of the agent's own definition, below those of its parents.
    pub(in crate::session) fn take_agent_hooks(&mut self) {
        let Some(own) = &self.state.subagent else {
            return;
        };
        let mut hooks = self.subagents.roster().hooks_of(&own.profile.agent_type);
        if hooks.is_empty() {
            return;
        }
        stop_as_subagents(&mut hooks);
        self.hooks.files.set(hooks);
    }
}
