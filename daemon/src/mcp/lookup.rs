//! Finds out which servers a session has, and lets its host have exactly those.

mod of_agents;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loopd_mcp::config::{ServerConfig, Trust};
use loopd_mcp::port::{HostSession, Ports, TokenSource};
use loopd_mcp::{Host, ToolCache};
use loopd_proto::event::mcp::{McpSource, McpTransport};
use loopd_proto::id::SessionId;
use loopd_proto::session::{EnvValueMode, SessionOptions};
use serde_json::{Map, Value};

use super::cell::{KnownServer, McpCell, ServerState};
use super::launcher::ProcessLauncher;
use super::resolve::{Variables, resolve};
use super::web::LaunchWeb;
use crate::discovery::agents::AgentDefinition;
use crate::discovery::mcp::of_agent::AgentServers;
use crate::discovery::mcp::{McpDefinition, McpEntry, McpPlaces, check_name};
use crate::launch::Launch;
use crate::services::Services;
use crate::subagent::definitions::refresh::RosterCell;
use crate::trust::{self, GatedServers};

/// What a lookup is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupMode {
    /// The servers that were found are also started.
    Start,
    /// Nothing is started.
    Look,
}

/// Makes the source of tokens of a server.
pub type TokensOf = Arc<dyn Fn(&ServerConfig) -> Option<Arc<dyn TokenSource>> + Send + Sync>;

/// The agents that a session works as, whose definitions may bring servers.
pub struct AgentsAtWork {
    pub names: Vec<String>,
    pub(crate) roster: RosterCell,
}

/// Looks for the servers of a session.
pub struct McpLookup {
    pub cell: McpCell,
    pub services: Arc<Services>,
    pub launch: Arc<Launch>,
    pub session: SessionId,
    /// The configuration with its secrets.
    pub options: SessionOptions,
    /// Servers that clients brought for this session by a method of their own.
    pub brought: BTreeMap<String, Map<String, Value>>,
    pub agents: AgentsAtWork,
    pub cwd: PathBuf,
    pub places: McpPlaces,
    pub port: Arc<dyn HostSession>,
    pub tokens: TokensOf,
}

/// A server with what is wanted of it.
struct Wanted {
    known: KnownServer,
    config: Option<ServerConfig>,
    owner: Owner,
    /// Members of its entry that nobody knows, if the entry is in no file of servers.
    unknown: Vec<String>,
}

/// What a server lives with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Session,
    /// An agent that the session works as now.
    Agent,
}

impl McpLookup {
    /// Looks. Returns what is wrong with files and was not told before, and whether the servers of the
    /// session are others than before.
    pub async fn run(self, mode: LookupMode) -> (Vec<String>, bool) {
        let cell = self.cell.clone();
        let _alone = cell.lock().await;
        let store = self.services.store.clone();
        let plugins = cell.plugins();
        let gated = trust::load_servers(store.as_ref(), self.places.clone(), &plugins).await;
        cell.see_plugins(&gated.usable);
        cell.note_lookup();
        let agents = self.servers_of_agents();
        let mut notices = gated.notices();
        notices.extend(
            agents
                .iter()
                .flat_map(|(agent, servers)| of_agents::problems(agent, servers)),
        );
        let own = cell.new_content(gated.own.clone());
        let wanted = self.wanted(gated, &agents);
        notices.extend(wanted.iter().flat_map(Wanted::problems));
        let mut notices = cell.new_notices(notices);
        if !own.is_empty() {
            notices.extend(trust::tell_unseen(store.as_ref(), &own).await);
        }
        let unknown = self.unknown_names(&agents, &wanted);
        let changed = self.apply(wanted).await;
        notices.extend(unknown);
        if mode == LookupMode::Start
            && let Some(host) = cell.host()
        {
            host.start_all();
        }
        (notices, changed)
    }

    /// Returns the servers that there should be, each name once.
    fn wanted(
        &self,
        gated: GatedServers,
        agents: &[(Arc<AgentDefinition>, AgentServers)],
    ) -> Vec<Wanted> {
        let seen = self.launch.child_environment(&self.services.config);
        let off = self.off();
        let mut names = BTreeSet::new();
        let mut wanted = Vec::new();
        for (agent, servers) in agents {
            for (name, config) in &servers.own {
                if names.insert(name.clone()) {
                    wanted.push(self.of_agent(agent, name, config, (&seen, &off)));
                }
            }
        }
        let given = self.options.mcp_servers.iter().flatten();
        let brought = self
            .brought
            .iter()
            .map(|(name, config)| (name, Value::Object(config.clone())));
        for (name, config) in brought.chain(given.map(|(name, config)| (name, config.clone()))) {
            if names.insert(name.clone()) {
                wanted.push(self.of_client(name, &config, (&seen, &off)));
            }
        }
        for server in gated.usable {
            if names.insert(server.name.clone()) {
                wanted.push(self.of_file(server, &seen, &off));
            }
        }
        for server in gated.untrusted {
            if names.insert(server.name.clone()) {
                wanted.push(Wanted {
                    known: known(&server, ServerState::NotTrusted),
                    config: None,
                    owner: Owner::Session,
                    unknown: Vec::new(),
                });
            }
        }
        wanted
    }

    /// Returns the names of servers that the session or its user does without.
    fn off(&self) -> BTreeSet<String> {
        let named = self.options.disabled_mcp_servers.iter().flatten().cloned();
        let file = super::user_file::file(&self.services.home);
        named
            .chain(crate::discovery::mcp::disabled_names(&file))
            .collect()
    }

    /// Returns a server that a client gives, with what servers see and which are turned off.
    fn of_client(
        &self,
        name: &str,
        config: &Value,
        (seen, off): (&BTreeMap<String, String>, &BTreeSet<String>),
    ) -> Wanted {
        let by_name = self.options.env_value_mode == Some(EnvValueMode::Indirect);
        let variables = Variables {
            seen,
            named: by_name.then(|| self.launch.env()),
            env_by_name: by_name,
            base: &self.cwd,
            cwd: &self.cwd,
            plugin: None,
        };
        of_entry(name, config, &variables, off, None)
    }
}

/// Resolves an entry that is in no file of servers.
fn of_entry(
    name: &str,
    config: &Value,
    variables: &Variables<'_>,
    off: &BTreeSet<String>,
    source: Option<McpSource>,
) -> Wanted {
    let entry = check_name(name).and_then(|()| match config {
        Value::Object(config) => McpEntry::read(config),
        _ => Err("has to be an object".to_owned()),
    });
    let transport = entry
        .as_ref()
        .map_or(McpTransport::Stdio, |entry| entry.kind);
    let unknown = entry.as_ref().map(|entry| entry.unknown.clone());
    let unknown = unknown.unwrap_or_default();
    let resolved = entry.and_then(|entry| {
        let enabled = entry.enabled && !off.contains(name);
        let config = resolve(name, &entry, variables);
        config.map(|config| enabled.then_some(config))
    });
    let known = KnownServer {
        name: name.to_owned(),
        transport,
        source,
        plugin: None,
        display_name: None,
        state: ServerState::Used,
    };
    Wanted {
        unknown,
        ..Wanted::of(known, resolved)
    }
}

impl McpLookup {
    fn of_file(
        &self,
        server: McpDefinition,
        seen: &BTreeMap<String, String>,
        off: &BTreeSet<String>,
    ) -> Wanted {
        let plugin = server.plugin.is_some().then_some(server.base.as_path());
        let variables = Variables {
            seen,
            // What a project brings may not name secrets of the user.
            named: Some(match server.source {
                McpSource::User => self.launch.env(),
                McpSource::Workspace | McpSource::Plugin => seen,
            }),
            env_by_name: false,
            base: &server.base,
            cwd: &self.cwd,
            plugin,
        };
        let enabled = server.enabled && !off.contains(&server.name);
        let resolved = if enabled {
            resolve(&server.name, &server.entry, &variables).map(Some)
        } else {
            Ok(None)
        };
        Wanted::of(known(&server, ServerState::Used), resolved)
    }

    /// Lets the host have the servers that are wanted; returns whether anything changed.
    async fn apply(&self, wanted: Vec<Wanted>) -> bool {
        let known = wanted.iter().map(|wanted| wanted.known.clone()).collect();
        let mut changed = self.cell.set_known(known);
        let used = wanted.into_iter();
        let used = used.filter_map(|it| Some((it.config?, it.owner)));
        let used: Vec<(ServerConfig, Owner)> = used.collect();
        let host = match self.cell.host() {
            Some(host) => host,
            None if used.is_empty() => return changed,
            None => {
                let host = Arc::new(self.new_host());
                self.cell.set_host(host.clone());
                host
            }
        };
        let names: BTreeSet<&str> = used
            .iter()
            .map(|(config, _)| config.name.as_str())
            .collect();
        for server in host.servers() {
            if !names.contains(&*server.name) {
                host.remove(&server.name).await;
                changed = true;
            }
        }
        for (config, owner) in used {
            if !host.has(&config) {
                if owner == Owner::Agent {
                    self.cell.wait_again();
                }
                let tokens = (self.tokens)(&config);
                host.add(config, tokens).await;
                changed = true;
            }
        }
        changed
    }

    fn new_host(&self) -> Host {
        let ports = Ports {
            launcher: Arc::new(ProcessLauncher {
                processes: self.services.processes.clone(),
                session: Some(self.session.clone()),
            }),
            http: Arc::new(LaunchWeb(Arc::new(self.launch.http.apart()))),
            session: self.port.clone(),
        };
        Host::new(
            ports,
            cache(&self.services.home),
            self.services.config.mcp.idle(),
        )
        .sharing(self.services.shared_servers.clone())
    }

    /// Returns how long the first turn waits for servers whose tools were never known.
    pub fn first_wait(&self) -> Duration {
        self.services.config.mcp.first_wait()
    }
}

/// Returns where lists of tools are kept.
fn cache(home: &Path) -> ToolCache {
    ToolCache::new(home.join("mcp-tools"))
}

fn known(server: &McpDefinition, state: ServerState) -> KnownServer {
    KnownServer {
        name: server.name.clone(),
        transport: server.transport,
        source: Some(server.source),
        plugin: server.plugin.clone(),
        display_name: server.entry.display_name.clone(),
        state,
    }
}

/// Returns on whose word a server is started.
fn trust_of(source: Option<McpSource>) -> Trust {
    match source {
        None => Trust::Client,
        Some(McpSource::User) => Trust::User,
        Some(McpSource::Workspace) => Trust::Project,
        Some(McpSource::Plugin) => Trust::Plugin,
    }
}

impl Wanted {
    /// `resolved` is `None` for a server that is turned off.
    fn of(known: KnownServer, resolved: Result<Option<ServerConfig>, String>) -> Self {
        let (state, config) = match resolved {
            Ok(Some(config)) => {
                let trust = trust_of(known.source);
                (ServerState::Used, Some(ServerConfig { trust, ..config }))
            }
            Ok(None) => (ServerState::Disabled, None),
            Err(why) => (ServerState::Invalid(format!("the server {why}")), None),
        };
        let name = config
            .as_ref()
            .and_then(|config| config.display_name.clone());
        Self {
            known: KnownServer {
                display_name: known.display_name.or(name),
                state,
                ..known
            },
            config,
            owner: Owner::Session,
            unknown: Vec::new(),
        }
    }

    /// Returns what people are told about the entry.
    fn problems(&self) -> impl Iterator<Item = String> {
        let name = &self.known.name;
        let unknown = self.unknown.iter();
        unknown.map(move |member| {
            format!("the MCP server `{name}` has a member `{member}`, which is not known")
        })
    }
}
