//! When the servers of a session are looked for: before a prompt goes to the model, and by whoever asks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_mcp::port::HttpPort;
use loopd_proto::session::McpTokenStorage;

use super::tokens::SessionTokens;
use crate::discovery::mcp::McpPlaces;
use crate::launch::Launch;
use crate::mcp::{AgentsAtWork, LaunchWeb, LookupMode, McpLookup, RequiredServers, TokensOf};
use crate::session::actor::Actor;
use crate::session::effects::Reporter;
use crate::trust;
use loopd_kernel::command::Command;

/// The type of warnings about files of servers.
const FILE_WARNING: &str = "mcp_file";

impl Actor {
    /// Returns a lookup of the servers of the session; `None` if there are none and were none. A
    /// sub-agent uses the servers of its parents, and looks only for those of its own definition.
    pub(in crate::session) fn mcp_lookup(&self) -> Option<McpLookup> {
        if !self.services.config.mcp.enabled {
            return None;
        }
        let launch = self.clients.launch()?;
        let mut options = self.options.clone();
        let cwd = Path::new(&self.state.cwd);
        let agents = self.agents_with_servers();
        let places = if self.subagents.is_child() {
            options.mcp_servers = None;
            McpPlaces::default()
        } else {
            let (env, home) = (launch.env(), &self.services.home);
            let root = || trust::project_root(cwd);
            McpPlaces::of_session(&options, env, home, cwd, launch.plugins(), root)
        };
        let given = options.mcp_servers.as_ref();
        let has_any = given.is_some_and(|it| !it.is_empty())
            || !self.mcp.brought.is_empty()
            || !self.mcp.cell.known().is_empty()
            || !agents.is_empty()
            || places.has_files();
        if !has_any {
            return None;
        }
        self.mcp.port.set_roots(self.roots());
        // What was disabled and enabled in the session is in its state.
        options
            .disabled_mcp_servers
            .clone_from(&self.state.options.disabled_mcp_servers);
        options.env_value_mode = self.state.options.env_value_mode;
        Some(McpLookup {
            cell: self.mcp.cell.clone(),
            services: self.services.clone(),
            launch: launch.clone(),
            session: self.state.id.clone(),
            options,
            brought: self.mcp.brought.clone(),
            agents: AgentsAtWork {
                names: agents,
                roster: self.subagents.roster_cell(),
            },
            cwd: cwd.to_owned(),
            places,
            port: self.mcp.port.clone(),
            tokens: self.token_source(launch),
        })
    }

    /// Returns the agents that the session works as, as far as their definitions may say something about
    /// servers. That of a sub-agent is known; others may be looked up later.
    fn agents_with_servers(&self) -> Vec<String> {
        let own = self.state.subagent.as_ref();
        let own = own.map(|own| own.profile.agent_type.as_str());
        let selected = self.state.agent.as_deref();
        let in_force = self.state.agent_in_force();
        let mut agents: Vec<String> = Vec::new();
        for name in [own, selected, in_force].into_iter().flatten() {
            if !agents.iter().any(|known| known == name) {
                agents.push(name.to_owned());
            }
        }
        if self.subagents.is_child() {
            let roster = self.subagents.roster();
            agents.retain(|name| {
                let agent = roster.get(name);
                agent.is_some_and(|agent| {
                    agent.mcp_servers.is_some() || !agent.required_mcp_servers.is_empty()
                })
            });
        }
        agents
    }

    /// Returns what waits for the servers that the agents of the session cannot work without; `None` if
    /// it works as no agent.
    pub(in crate::session) fn required_servers(&self) -> Option<RequiredServers> {
        let agents = self.agents_with_servers();
        let settings = &self.services.config.mcp;
        (!agents.is_empty()).then(|| RequiredServers {
            cell: self.mcp.cell.clone(),
            roster: self.subagents.roster_cell(),
            agents,
            enabled: settings.enabled,
            limit: settings.required_wait(),
        })
    }

    /// Returns what makes the tokens of servers.
    fn token_source(&self, launch: &Arc<Launch>) -> TokensOf {
        let (mailbox, services) = (self.mailbox.clone(), self.services.clone());
        let http: Arc<dyn HttpPort> = Arc::new(LaunchWeb(Arc::new(launch.http.apart())));
        let storage = self.state.options.mcp_token_storage;
        let storage = storage.unwrap_or(McpTokenStorage::Persistent);
        Arc::new(move |config| {
            SessionTokens::of(config, &mailbox, &services, http.clone(), storage)
        })
    }

    /// Returns the directories that the session works in.
    fn roots(&self) -> Vec<PathBuf> {
        let own = std::iter::once(PathBuf::from(&self.state.cwd));
        let more = self.state.permissions.directories.iter().map(PathBuf::from);
        own.chain(more).collect()
    }
}

/// Looks for the servers of a session and starts them, before a prompt goes to the model.
pub(in crate::session) async fn look_and_start(lookup: McpLookup, reporter: &Reporter) {
    let (cell, limit) = (lookup.cell.clone(), lookup.first_wait());
    look(lookup, reporter).await;
    cell.wait_for_tools(limit).await;
}

/// Looks for the servers of a session and starts them.
pub(in crate::session) async fn look(lookup: McpLookup, reporter: &Reporter) {
    let port = lookup.port.clone();
    let (notices, changed) = lookup.run(LookupMode::Start).await;
    if changed {
        port.servers_changed();
    }
    for notice in notices {
        reporter
            .report(Command::file_warning(FILE_WARNING, notice))
            .await;
    }
}
