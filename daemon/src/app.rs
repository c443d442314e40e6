//! The one place that puts the parts of the daemon together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loopd_mcp::SharedServers;
use loopd_store::lock::{HomeLock, LockError, Owner};
use loopd_store::{Location, OpenError, SqliteStore, Store};

use crate::config::{Config, UnattendedTimeout};
use crate::front::rpc::QueuedCommands;
use crate::front::rpc::server::Server;
use crate::front::rpc::{Table, TableError};
use crate::hook_times::HookTimes;
use crate::logins::Logins;
use crate::mcp::ProcessLauncher;
use crate::services::Services;
use crate::token_cache::TokenCache;
use crate::tool::catalog::Catalog;
use loopd_exec::clock::Clock;
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::Processes;
use loopd_exec::worktree::Worktrees;

/// The daemon's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The whole daemon.
pub type App = Server;

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error("this build is broken: {0}")]
    Table(#[from] TableError),
}

impl Server {
    /// Locks the home directory and opens its store. `unattended` comes before the time that the
    /// configuration says.
    pub async fn open(
        home: &Path,
        socket: Option<&Path>,
        unattended: Option<Duration>,
    ) -> Result<Arc<Self>, StartError> {
        let owner = Owner {
            pid: std::process::id(),
            build: loopd_proto::build_id::current().to_owned(),
            socket: socket
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
        };
        let lock = HomeLock::acquire(home, &owner)?;
        let store =
            SqliteStore::open(Location::File(home.join(loopd_proto::home_paths::DATABASE))).await?;
        // If the home was emptied meanwhile, it may belong to another daemon by now.
        lock.check()?;
        let mut config = Config::load(home);
        if let Some(unattended) = unattended {
            config.unattended = UnattendedTimeout(unattended);
        }
        let app = Self::assemble(home, Arc::new(store), Some(lock), config)?;
        let (folder, sessions) = (home.to_owned(), app.services.sessions_folder());
        let removed = tokio::task::spawn_blocking(move || {
            loopd_exec::sandbox::remove_left_scratch(&folder, &sessions);
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "scratch folders could not be looked for");
        }
        let found = app.services.processes.recover().await;
        if !found.is_empty() {
            tracing::info!(count = found.len(), "detached commands were found again");
        }
        Ok(app)
    }

    /// Puts the parts together around a store; tests pass their own store.
    pub fn with_store(
        home: &Path,
        store: Arc<dyn Store>,
        lock: Option<HomeLock>,
    ) -> Result<Arc<Self>, StartError> {
        Self::assemble(home, store, lock, Config::load(home))
    }

    fn assemble(
        home: &Path,
        store: Arc<dyn Store>,
        lock: Option<HomeLock>,
        config: Config,
    ) -> Result<Arc<Self>, StartError> {
        let catalog = Catalog::new();
        let keep_alive = KeepAlive::default();
        let processes = Processes::new(home, keep_alive.clone());
        let services = Arc::new(Services {
            store,
            clock: Clock::default(),
            tool_specs: catalog.specs(),
            catalog,
            config,
            model_lists: Arc::default(),
            recording: Arc::default(),
            home: home.to_path_buf(),
            worktrees: Worktrees::new(home, processes.clone()),
            shared_servers: SharedServers::new(Arc::new(ProcessLauncher {
                processes: processes.clone(),
                session: None,
            })),
            processes,
            logins: Logins::new(home, keep_alive.clone()),
            keep_alive,
            hook_times: HookTimes::default(),
            tokens: TokenCache::default(),
            version: VERSION,
        });
        let server = Arc::new(Self::new(services, Table::new()?, lock));
        let commands = QueuedCommands::of(&server);
        server.sessions.set_commands(Arc::new(commands));
        Ok(server)
    }
}
