//! The hooks of an agent's definition: of a sub-agent's own, and of the agent that a session at the top
//! works as.

use std::path::{Path, PathBuf};

use crate::discovery::hooks::{HookKind, HookMatcher, LocalHttp, of_agent};
use crate::hook::HookCell;
use crate::session::actor::Actor;
use crate::subagent::definitions::refresh::RosterCell;
use crate::trust;

/// Takes the hooks of the selected agent once its definition is known.
pub(in crate::session) struct SelectedAgentHooks {
    cell: HookCell,
    roster: RosterCell,
    agent: String,
    cwd: PathBuf,
}

impl SelectedAgentHooks {
    /// Adds the hooks to those of the session.
    pub(in crate::session) async fn take(self) {
        let Self {
            cell,
            roster,
            agent,
            cwd,
        } = self;
        let read = tokio::task::spawn_blocking(move || {
            let roster = roster.get();
            let definition = roster.get(&agent);
            let found = definition.map(|definition| {
                let root = trust::project_root(Path::new(&cwd));
                of_agent(definition, LocalHttp::Refused, &root).hooks
            });
            (agent, found.unwrap_or_default())
        });
        // A read that crashed leaves the hooks that were there.
        if let Ok((agent, found)) = read.await {
            cell.set_agent(Some(agent), found);
        }
    }
}

impl Actor {
    /// Returns what takes the hooks of the selected agent; `None` if no agent is selected. A sub-agent
    /// has those of its own definition.
    pub(in crate::session) fn selected_agent_hooks(&self) -> Option<SelectedAgentHooks> {
        if self.subagents.is_child() {
            return None;
        }
        let Some(agent) = self.state.agent.clone() else {
            self.hooks.files.set_agent(None, Vec::new());
            return None;
        };
        Some(SelectedAgentHooks {
            cell: self.hooks.files.clone(),
            roster: self.subagents.roster_cell(),
            agent,
            cwd: PathBuf::from(&self.state.cwd),
        })
    }

    /// Adds the hooks of the agent's own definition, below those of its parents.
    pub(in crate::session) fn take_agent_hooks(&mut self) {
        let Some(own) = &self.state.subagent else {
            return;
        };
        let roster = self.subagents.roster();
        let Some(agent) = roster.get(&own.profile.agent_type) else {
            return;
        };
        if agent.hooks.is_none() {
            return;
        }
        let root = trust::project_root(Path::new(&self.state.cwd));
        let mut content = of_agent(agent, LocalHttp::Refused, &root);
        for hook in &mut content.hooks {
            // The agent's own stop is the stop of a sub-agent.
            if hook.kind == HookKind::AgentStop {
                hook.kind = HookKind::SubagentStop;
                hook.matcher = HookMatcher::Every;
            }
        }
        self.hooks.files.set(content.hooks);
    }
}
