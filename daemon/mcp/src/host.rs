//! The servers of one session and its sub-agents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::RwLock;

use crate::cache::{LastTime, ToolCache};
use crate::config::ServerConfig;
use crate::naming::Names;
use crate::port::{HostSession, Ports, TokenSource};
use crate::server::{Server, Setup};
use crate::shared::{Joined, Membership, SharedServers};
use crate::tools::ServerTool;

/// A tool as it is offered to a model.
#[derive(Clone)]
pub struct OfferedTool {
    /// The name for the model.
    pub name: String,
    pub server: Arc<Server>,
    /// All tools of the server.
    tools: Arc<Vec<ServerTool>>,
    at: usize,
}

impl OfferedTool {
    pub fn tool(&self) -> Option<&ServerTool> {
        self.tools.get(self.at)
    }
}

/// The servers of one session and its sub-agents.
pub struct Host {
    ports: Ports,
    cache: ToolCache,
    /// How long a server is kept that nobody uses.
    idle: Duration,
    /// The servers that sessions share; `None` if this host shares none.
    shared: Option<SharedServers>,
    servers: RwLock<BTreeMap<String, Held>>,
}

/// A server, alone or shared.
struct Held {
    server: Arc<Server>,
    membership: Option<Membership>,
}

impl Held {
    async fn close(self) {
        match self.membership {
            Some(membership) => membership.leave().await,
            None => self.server.close().await,
        }
    }
}

impl Host {
    pub fn new(ports: Ports, cache: ToolCache, idle: Duration) -> Self {
        Self {
            ports,
            cache,
            idle,
            shared: None,
            servers: RwLock::default(),
        }
    }

    /// Lets servers be shared whose configuration asks for it.
    #[must_use]
    pub fn sharing(mut self, shared: SharedServers) -> Self {
        self.shared = Some(shared);
        self
    }

    /// Returns whether a server of this configuration is there.
    pub fn has(&self, config: &ServerConfig) -> bool {
        let server = self.get(&config.name);
        server.is_some_and(|server| *server.config() == *config)
    }

    /// Adds a server without starting it. The tools that it had last time are read from the disk.
    pub async fn add(
        &self,
        config: ServerConfig,
        tokens: Option<Arc<dyn TokenSource>>,
    ) -> Arc<Server> {
        let name = config.name.clone();
        let shared = self.shared.as_ref();
        let shared = shared.filter(|_| config.is_shared && !config.is_remote());
        let (server, membership, joined) = if let Some(shared) = shared {
            let session = self.ports.session.clone();
            let make = |session: Arc<dyn HostSession>| {
                let mut setup = self.setup(tokens);
                setup.ports.session = session;
                setup.ports.launcher = shared.launcher.clone();
                Server::new(config.clone(), setup)
            };
            let (server, membership, joined) = shared.join(&config, session, make);
            (server, Some(membership), joined)
        } else {
            let server = Server::new(config.clone(), self.setup(tokens));
            (server, None, Joined::New)
        };
        if config.keeps_tools && joined == Joined::New {
            let (cache, of) = (self.cache.clone(), config.fingerprint());
            let read = tokio::task::spawn_blocking(move || cache.load(&of)).await;
            match read {
                Ok(Some(LastTime::Tools(tools))) => server.remember(tools),
                Ok(Some(LastTime::Failed)) => server.expect_failure(),
                Ok(None) | Err(_) => {}
            }
        }
        let held = Held {
            server: server.clone(),
            membership,
        };
        let before = self.servers.write().insert(name, held);
        if let Some(before) = before {
            before.close().await;
        }
        server
    }

    fn setup(&self, tokens: Option<Arc<dyn TokenSource>>) -> Setup {
        Setup {
            ports: self.ports.clone(),
            cache: self.cache.clone(),
            idle: self.idle,
            tokens,
        }
    }

    /// Removes a server and ends it.
    pub async fn remove(&self, name: &str) {
        let removed = self.servers.write().remove(name);
        if let Some(server) = removed {
            server.close().await;
        }
    }

    /// Returns the servers in the order of their names.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        let servers = self.servers.read();
        servers.values().map(|held| held.server.clone()).collect()
    }

    pub fn get(&self, name: &str) -> Option<Arc<Server>> {
        let servers = self.servers.read();
        servers.get(name).map(|held| held.server.clone())
    }

    pub fn is_empty(&self) -> bool {
        self.servers.read().is_empty()
    }

    /// Starts all servers that were not started yet. Does not wait.
    pub fn start_all(&self) {
        for server in self.servers() {
            server.start();
        }
    }

    /// Waits until the tools of all servers are known or cannot be had, and no longer than this.
    pub async fn tools_known(&self, limit: Duration) {
        let servers = self.servers();
        let known = join_all(servers.iter().map(|server| server.tools_known()));
        tokio::time::timeout(limit, known).await.ok();
    }

    /// Notes the servers whose tools did not come while they were waited for, so that no other session
    /// waits for them, too.
    pub async fn note_slow(&self) {
        let slow = self.servers().into_iter().filter(|server| server.is_new());
        let slow: Vec<_> = slow.map(|server| server.config()).collect();
        let slow: Vec<_> = slow.iter().filter(|it| it.keeps_tools).collect();
        let slow: Vec<_> = slow.iter().map(|config| config.fingerprint()).collect();
        if slow.is_empty() {
            return;
        }
        let cache = self.cache.clone();
        let noted = tokio::task::spawn_blocking(move || {
            for of in &slow {
                cache.note_failure(of);
            }
        });
        if let Err(error) = noted.await {
            tracing::error!(%error, "slow servers could not be noted");
        }
    }

    /// Ends all servers; nothing of them is left when this resolves.
    pub async fn close(&self) {
        let servers = std::mem::take(&mut *self.servers.write());
        join_all(servers.into_values().map(Held::close)).await;
    }
}

/// Returns the tools of servers with their names for a model. The servers before have the first choice
/// of names.
pub fn offered(servers: &[Arc<Server>]) -> Vec<OfferedTool> {
    let mut names = Names::default();
    let mut offered = Vec::new();
    for server in servers {
        let Some(tools) = server.tools() else {
            continue;
        };
        for (at, tool) in tools.iter().enumerate() {
            offered.push(OfferedTool {
                name: names.name(&server.name, &tool.name),
                server: server.clone(),
                tools: tools.clone(),
                at,
            });
        }
    }
    offered
}
