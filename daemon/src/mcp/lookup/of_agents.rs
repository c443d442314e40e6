//! The servers that the definitions of agents bring. They live with the agent: a session has them while it
//! works as that agent, and a sub-agent until it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loopd_proto::event::mcp::McpSource;
use serde_json::Value;

use super::{McpLookup, Owner, Wanted, of_entry};
use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentOrigin};
use crate::discovery::mcp::of_agent::AgentServers;
use crate::mcp::resolve::Variables;

impl McpLookup {
    /// Returns a server that the definition of an agent brings.
    pub(super) fn of_agent(
        &self,
        agent: &AgentDefinition,
        name: &str,
        config: &Value,
        (seen, off): (&BTreeMap<String, String>, &BTreeSet<String>),
    ) -> Wanted {
        let source = match agent.origin {
            AgentOrigin::Client => {
                let wanted = self.of_client(name, config, (seen, off));
                let owner = Owner::Agent;
                return Wanted { owner, ..wanted };
            }
            AgentOrigin::User => McpSource::User,
            AgentOrigin::Project | AgentOrigin::BuiltIn => McpSource::Workspace,
            AgentOrigin::Plugin => McpSource::Plugin,
        };
        // `.github/agents/name.md` belongs to the folder with `.github`, `agents/name.md` of a plugin to
        // the plugin.
        let above = |depth| {
            agent
                .path
                .as_deref()
                .and_then(|path| path.ancestors().nth(depth))
        };
        let (base, plugin) = match source {
            McpSource::User => (None, None),
            McpSource::Workspace => (above(3), None),
            McpSource::Plugin => (above(2), above(2)),
        };
        let variables = Variables {
            seen,
            // What a project brings may not name secrets of the user.
            named: Some(match source {
                McpSource::User => self.launch.env(),
                McpSource::Workspace | McpSource::Plugin => seen,
            }),
            env_by_name: false,
            base: base.unwrap_or(&self.cwd),
            cwd: &self.cwd,
            plugin,
        };
        let wanted = of_entry(name, config, &variables, off, Some(source));
        let owner = Owner::Agent;
        Wanted { owner, ..wanted }
    }

    /// Returns what the definitions of the agents at work say about servers.
    pub(super) fn servers_of_agents(&self) -> Vec<(Arc<AgentDefinition>, AgentServers)> {
        let roster = self.agents.roster.get();
        let agents = self.agents.names.iter();
        let agents = agents.filter_map(|name| roster.get(name).cloned());
        agents
            .map(|agent| (agent.clone(), AgentServers::of(&agent)))
            .collect()
    }

    /// Returns what people are told about servers that agents name and the session does not have.
    pub(super) fn unknown_names(
        &self,
        agents: &[(Arc<AgentDefinition>, AgentServers)],
        wanted: &[Wanted],
    ) -> Vec<String> {
        let above = self.cell.all_known();
        let known = |name: &str| {
            let mut names = wanted.iter().map(|wanted| &wanted.known.name);
            names.any(|it| it == name) || above.iter().any(|it| it.name == name)
        };
        let mut unknown = Vec::new();
        for (agent, servers) in agents {
            for name in servers.named.iter().filter(|name| !known(name)) {
                let what =
                    format!("`mcpServers` names `{name}`, and the session has no such server");
                unknown.push(told_of(agent, &what));
            }
        }
        self.cell.new_unknown(unknown)
    }
}

/// Says what is wrong with the servers of an agent.
pub(super) fn problems(agent: &AgentDefinition, servers: &AgentServers) -> Vec<String> {
    let problems = servers.problems.iter();
    problems.map(|what| told_of(agent, what)).collect()
}

fn told_of(agent: &AgentDefinition, what: &str) -> String {
    match agent.path.as_deref() {
        Some(path) => Problem::new(path, what.to_owned()).to_string(),
        None => format!("the agent `{}`: {what}", agent.name),
    }
}
