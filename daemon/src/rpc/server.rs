//! The running daemon as connections see it: serves them, knows their launches, ends them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use loopd_proto::params::launch::{JoinNotification, JoinTransport};
use loopd_proto::time::Timestamp;
use loopd_proto::wire::{self, CloseReason, Limits};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ConnectionService, Table};
use crate::connection::{Connection, Trust};
use crate::launch::Launch;
use crate::services::Services;
use crate::session::attach::Goodbye;
use crate::session::registry::Sessions;
use crate::store::lock::HomeLock;

/// How long a connection may take to show its token.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// The running daemon.
pub struct Server {
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

impl Server {
    /// Ties the parts together.
    pub fn new(services: Arc<Services>, table: Table, lock: Option<HomeLock>) -> Self {
        Self {
            sessions: Arc::new(Sessions::new(services.clone())),
            started: services.ports.now(),
            services,
            table,
            ending: CancellationToken::new(),
            connections: TaskTracker::new(),
            launches: Mutex::default(),
            _lock: lock,
        }
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
        connection
            .join(launch, trust)
            .map_err(|_| "it belongs to a launch already")
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

    /// Stops everything in order: connections, sessions, processes, store.
    pub async fn close(&self) {
        self.ending.cancel();
        for id in self.sessions.ids() {
            if let Some(session) = self.sessions.get(&id) {
                session.stop().await;
            }
        }
        self.sessions.drained().await;
        self.services.processes.shutdown().await;
        if let Err(error) = self.services.store.close().await {
            tracing::error!(%error, "the store could not be closed");
        }
    }
}
