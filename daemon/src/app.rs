//! The object graph: the one place that puts the parts together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use loopd_proto::id::SessionId;
use loopd_proto::params::launch::{JoinNotification, JoinTransport};
use loopd_proto::time::Timestamp;
use loopd_proto::wire::{self, CloseReason, Limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::route::Providers;
use crate::config::Config;
use crate::kernel::model::ToolSpec;
use crate::launch::Launch;
use crate::ports::Ports;
use crate::presence::Presence;
use crate::rpc::context::{Connection, Trust};
use crate::rpc::{ConnectionService, Table, TableError};
use crate::session::attach::Goodbye;
use crate::session::registry::Sessions;
use crate::store::lock::{HomeLock, LockError, Owner};
use crate::store::{Location, SqliteStore, Store, StoreError};
use crate::tool::catalog::Catalog;

/// The daemon's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long a connection may take to show its token.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// What sessions need from the daemon.
pub struct Services {
    pub store: Arc<dyn Store>,
    pub ports: Ports,
    pub catalog: Catalog,
    /// What models are told of the built-in tools; schemas are made once.
    pub tool_specs: Vec<ToolSpec>,
    pub config: Config,
    pub providers: Arc<Providers>,
    pub home: PathBuf,
    pub presence: Presence,
    pub version: &'static str,
}

impl Services {
    /// The folder of a session; it exists once something is kept in it.
    pub fn session_folder(&self, id: &SessionId) -> PathBuf {
        self.home.join("session-state").join(id.as_str())
    }

    /// Where large outputs of a session go.
    pub fn scratch_folder(&self, id: &SessionId) -> PathBuf {
        self.session_folder(id).join("temp")
    }

    pub async fn remove_session_folder(&self, id: &SessionId) {
        let folder = self.session_folder(id);
        match tokio::fs::remove_dir_all(&folder).await {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "a session's folder could not be removed");
            }
        }
    }
}

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("this build is broken: {0}")]
    Table(#[from] TableError),
}

/// The running daemon.
pub struct App {
    pub services: Arc<Services>,
    pub sessions: Arc<Sessions>,
    pub table: Table,
    /// Cancelled when the daemon is to end.
    pub ending: CancellationToken,
    pub started: Timestamp,
    connections: TaskTracker,
    launches: Mutex<HashMap<String, Weak<Launch>>>,
    // Held for as long as the daemon owns the home.
    _lock: Option<HomeLock>,
}

impl App {
    /// Takes the home and opens its store.
    pub async fn open(home: &Path, socket: Option<&Path>) -> Result<Arc<Self>, StartError> {
        let owner = Owner {
            pid: std::process::id(),
            build: crate::build_id::current().to_owned(),
            socket: socket
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
        };
        let lock = HomeLock::acquire(home, &owner)?;
        let store = SqliteStore::open(Location::File(home.join("loopd.db"))).await?;
        Self::with_store(home, Arc::new(store), Some(lock))
    }

    /// Puts the parts together around a store; tests bring their own.
    pub fn with_store(
        home: &Path,
        store: Arc<dyn Store>,
        lock: Option<HomeLock>,
    ) -> Result<Arc<Self>, StartError> {
        let catalog = Catalog::new();
        let services = Arc::new(Services {
            store,
            ports: Ports::default(),
            tool_specs: catalog.specs(),
            catalog,
            config: Config::default(),
            providers: Arc::default(),
            home: home.to_path_buf(),
            presence: Presence::default(),
            version: VERSION,
        });
        let started = services.ports.now();
        Ok(Arc::new(Self {
            sessions: Arc::new(Sessions::new(services.clone())),
            services,
            table: Table::new()?,
            started,
            ending: CancellationToken::new(),
            connections: TaskTracker::new(),
            launches: Mutex::default(),
            _lock: lock,
        }))
    }

    /// Serves one connection until it ends, then takes it out of its sessions.
    pub async fn serve<S>(
        self: &Arc<Self>,
        stream: S,
        launch: Arc<Launch>,
        trust: Trust,
    ) -> CloseReason
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let service = Arc::new(ConnectionService::new(self.clone()));
        let (peer, driving) = wire::connect(stream, service.clone(), Limits::default());
        let connection = Arc::new(Connection::new(peer.clone(), launch.clone(), trust));
        service.opened(connection.clone());
        launch.join(&connection);
        let _present = self.services.presence.connection();
        let watchdog = async {
            tokio::time::sleep(HANDSHAKE_WAIT).await;
            if !connection.is_authenticated() {
                peer.close(CloseReason::Done);
            }
            std::future::pending::<()>().await;
        };
        let reason = tokio::select! {
            reason = driving => reason,
            () = watchdog => CloseReason::Done,
        };
        self.vanished(&connection).await;
        reason
    }

    /// Serves a connection on its own task.
    pub fn serve_detached<S>(self: &Arc<Self>, stream: S, launch: Arc<Launch>, trust: Trust)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let app = self.clone();
        self.connections.spawn(async move {
            let reason = app.serve(stream, launch, trust).await;
            tracing::debug!(%reason, "a connection ended");
        });
    }

    /// Keeps a launch findable for the connections that come through it.
    pub fn add_launch(&self, id: String, launch: &Arc<Launch>) {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.retain(|_, known| known.strong_count() > 0);
        launches.insert(id, Arc::downgrade(launch));
    }

    /// Ties a connection to the launch it names.
    pub fn join(&self, connection: &Arc<Connection>, params: &str) -> Result<(), &'static str> {
        let Ok(join) = serde_json::from_str::<JoinNotification>(params) else {
            return Err("the notification is malformed");
        };
        let launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        let launch = launches.get(&join.launch_id).and_then(Weak::upgrade);
        drop(launches);
        let launch = launch.ok_or("the launch is unknown or has ended")?;
        let trust = match join.transport {
            JoinTransport::Pipe => Trust::Transport,
            JoinTransport::Tcp => Trust::Token,
        };
        connection.join(launch, trust);
        Ok(())
    }

    async fn vanished(&self, connection: &Connection) {
        for id in connection.sessions() {
            if connection.detach(&id)
                && let Some(session) = self.sessions.get(&id)
                && let Err(error) = session.detach(connection.peer.id(), Goodbye::Vanish).await
            {
                tracing::debug!(session = %id, %error, "a connection left a session that was gone");
            }
        }
    }

    /// Ends every session that a launch is attached to, as if each connection had said goodbye.
    pub async fn end_launch(&self, launch: &Launch) {
        for connection in launch.connections() {
            for id in connection.sessions() {
                if connection.detach(&id)
                    && let Some(session) = self.sessions.get(&id)
                    && let Err(error) = session.detach(connection.peer.id(), Goodbye::Destroy).await
                {
                    tracing::warn!(session = %id, %error, "a session could not be ended");
                }
            }
        }
    }

    /// Stops everything in order: connections, sessions, store.
    pub async fn close(&self) {
        self.ending.cancel();
        for id in self.sessions.ids() {
            if let Some(session) = self.sessions.get(&id) {
                session.stop().await;
            }
        }
        self.sessions.drained().await;
        if let Err(error) = self.services.store.close().await {
            tracing::error!(%error, "the store could not be closed");
        }
    }
}
