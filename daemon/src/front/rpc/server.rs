//! The running daemon as connections see it: it serves them, knows their launches and ends them.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use loopd_proto::error as code;
use loopd_proto::home_paths::FileId;
use loopd_proto::params::launch::{JoinNotification, JoinTransport, LINK_CLOSED, LinkClosed};
use loopd_proto::time::Timestamp;
use loopd_proto::wire::{self, CloseReason, ErrorObject, Framing};
use loopd_store::lock::HomeLock;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ConnectionService, Table, limit};
use crate::client::ClientId;
use crate::front::connection::{Connection, Trust};
use crate::launch::Launch;
use crate::services::Services;
use crate::session::clients::attach::DetachReason;
use crate::session::hooks::STOP_WAIT;
use crate::session::registry::Sessions;

/// How long a refused connection may stay, so that the client can read why.
const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// How long a client may take to say who it is.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(5);
/// How many clients may be connected that have not said who they are.
const MOST_STRANGERS: usize = 256;

/// The running daemon.
pub struct Server {
    pub services: Arc<Services>,
    pub sessions: Arc<Sessions>,
    pub table: Table,
    /// Cancelled when the daemon is to end.
    pub ending: CancellationToken,
    pub started: Timestamp,
    /// Held by whoever takes a part of a bundle or imports one.
    pub imports: tokio::sync::Mutex<()>,
    pub(super) connections: TaskTracker,
    visitors: Mutex<Visitors>,
    /// The lock of the home, held as long as the daemon owns the home.
    lock: Option<HomeLock>,
}

/// The open connections and launches. One mutex guards all of it: a client that connects while the
/// daemon leaves its emptied home either is part of the handover or is refused.
#[derive(Default)]
pub(super) struct Visitors {
    pub(super) launches: HashMap<String, KnownLaunch>,
    pub(super) connections: Vec<Weak<Connection>>,
    /// The home was emptied; new connections and launches are refused.
    pub(super) closed: bool,
}

impl Visitors {
    fn strangers(&self) -> usize {
        let open = self.connections.iter().filter_map(Weak::upgrade);
        open.filter(|connection| !connection.is_introduced())
            .count()
    }

    /// Returns the oldest connection that has not said who it is; first of those that need a token.
    fn longest_silent(&self) -> Option<Arc<Connection>> {
        let open = self.connections.iter().filter_map(Weak::upgrade);
        let silent = open.filter(|connection| !connection.is_introduced());
        silent.min_by_key(|connection| connection.is_authenticated())
    }

    pub(super) fn connections_of(&self, launch: &Arc<Launch>) -> Vec<Arc<Connection>> {
        let open = self.connections.iter().filter_map(Weak::upgrade);
        open.filter(|connection| Arc::ptr_eq(&connection.launch(), launch))
            .collect()
    }
}

/// A launch that one connection registered and others may join.
pub(super) struct KnownLaunch {
    pub(super) launch: Weak<Launch>,
    /// The connection that registered the launch.
    pub(super) control: Weak<Connection>,
    /// Whether `control` is a relay that goes on with the next daemon when the home is emptied.
    pub(super) outlives_home: bool,
}

/// The home was emptied, and the daemon is about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the daemon leaves, because its home was emptied")]
pub struct Leaving;

/// Why a connection is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NotLetIn {
    #[error(transparent)]
    Leaving(#[from] Leaving),
    #[error("{MOST_STRANGERS} connections have not said who they are; try again in {} s", HANDSHAKE_WAIT.as_secs())]
    Crowded,
}

/// Tells a client why it is not served, and ends its connection.
fn refuse(connection: &Connection, code: i32, why: String) {
    connection.peer.refuse(&ErrorObject::new(code.into(), why));
}

impl Server {
    /// Creates the server and its registry of sessions.
    pub fn new(services: Arc<Services>, table: Table, lock: Option<HomeLock>) -> Self {
        Self {
            sessions: Arc::new(Sessions::new(services.clone())),
            started: services.clock.now(),
            imports: tokio::sync::Mutex::default(),
            services,
            table,
            ending: CancellationToken::new(),
            connections: TaskTracker::new(),
            visitors: Mutex::default(),
            lock,
        }
    }

    pub(super) fn visitors(&self) -> MutexGuard<'_, Visitors> {
        self.visitors.lock()
    }

    /// Returns the id of the lock file that the daemon holds.
    pub fn lock_id(&self) -> Option<FileId> {
        self.lock.as_ref().map(HomeLock::id)
    }

    /// Returns whether the home was emptied, deleted or moved away.
    pub fn has_lost_home(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.check().is_err())
    }

    /// Serves one connection until it ends, then detaches it from its sessions.
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
        let (peer, driving) = wire::connect(stream, service.clone(), limit::of_connection());
        let connection = Arc::new(Connection::new(peer.clone(), launch.clone(), trust));
        service.opened(connection.clone());
        match self.let_in(&connection) {
            Ok(()) => {}
            Err(NotLetIn::Leaving(_)) => return CloseReason::Abandoned,
            Err(error @ NotLetIn::Crowded) => {
                refuse(&connection, code::OVERLOADED, error.to_string());
                // Bounded by the time limit of the last flush.
                return driving.await;
            }
        }
        launch.join(&connection.client);
        let _keep_alive = self.services.keep_alive.connection();
        let watchdog = async {
            tokio::time::sleep(HANDSHAKE_WAIT).await;
            if !connection.is_introduced() {
                let seconds = HANDSHAKE_WAIT.as_secs();
                let wanted = if connection.is_authenticated() {
                    "request"
                } else {
                    "`connect` with the right token"
                };
                let why = format!("no {wanted} came within {seconds} s");
                refuse(&connection, code::AUTHENTICATION_FAILED, why);
            }
            std::future::pending::<()>().await;
        };
        let reason = tokio::select! {
            reason = driving => reason,
            () = watchdog => CloseReason::Done,
        };
        self.tell_relay(&connection, &reason);
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

    /// Answers a connection with one error, without reading a message of it.
    pub fn refuse_detached<S>(&self, stream: S, error: &ErrorObject)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut frame = Vec::new();
        Framing::ContentLength.encode(&wire::refusal(error), &mut frame);
        self.connections.spawn(async move {
            let (mut read, mut write) = tokio::io::split(stream);
            let refusing = async {
                write.write_all(&frame).await?;
                write.shutdown().await?;
                // A client that writes to a closed socket would not read the error.
                tokio::io::copy(&mut read, &mut tokio::io::sink()).await
            };
            if let Ok(Err(error)) = tokio::time::timeout(REFUSAL_TIME, refusing).await {
                tracing::debug!(%error, "a refused client was not told why");
            }
        });
    }

    /// Tells the relay of a connection why the daemon has ended it.
    fn tell_relay(&self, connection: &Connection, reason: &CloseReason) {
        let (Some(link), false) = (connection.link(), *reason == CloseReason::EndOfStream) else {
            return;
        };
        let launch = connection.launch();
        let visitors = self.visitors();
        let known = visitors.launches.values();
        let own = known.filter(|known| known.launch.as_ptr() == Arc::as_ptr(&launch));
        for relay in own.filter_map(|known| known.control.upgrade()) {
            let reason = reason.to_string();
            // A relay that is gone needs no reason.
            relay
                .peer
                .notify(LINK_CLOSED, &LinkClosed { link, reason })
                .ok();
        }
    }

    fn let_in(&self, connection: &Arc<Connection>) -> Result<(), NotLetIn> {
        let mut visitors = self.visitors();
        if visitors.closed {
            return Err(Leaving.into());
        }
        let mut silent = None;
        if !connection.is_introduced() && visitors.strangers() >= MOST_STRANGERS {
            // This user's clients do not wait behind connections that say nothing.
            let gives_way = visitors
                .longest_silent()
                .filter(|_| connection.is_authenticated());
            silent = Some(gives_way.ok_or(NotLetIn::Crowded)?);
        }
        let connections = &mut visitors.connections;
        let left = silent.as_ref().map(Arc::downgrade);
        connections.retain(|known| {
            let gives_way = left.as_ref().is_some_and(|left| left.ptr_eq(known));
            known.strong_count() > 0 && !gives_way
        });
        connections.push(Arc::downgrade(connection));
        drop(visitors);
        if let Some(silent) = silent {
            let why = format!("it said nothing, and {}", NotLetIn::Crowded);
            refuse(&silent, code::OVERLOADED, why);
        }
        Ok(())
    }

    /// Registers a launch, so that the connections of its relay can join it.
    pub fn add_launch(
        &self,
        id: String,
        launch: &Arc<Launch>,
        control: &Arc<Connection>,
        outlives_home: bool,
    ) -> Result<(), Leaving> {
        let mut visitors = self.visitors();
        if visitors.closed {
            return Err(Leaving);
        }
        let launches = &mut visitors.launches;
        launches.retain(|_, known| known.launch.strong_count() > 0);
        let known = KnownLaunch {
            launch: Arc::downgrade(launch),
            control: Arc::downgrade(control),
            outlives_home,
        };
        launches.insert(id, known);
        Ok(())
    }

    /// Moves a connection to the launch that its notification names.
    pub fn join(&self, connection: &Arc<Connection>, params: &str) -> Result<(), &'static str> {
        let Ok(join) = serde_json::from_str::<JoinNotification>(params) else {
            return Err("the notification is malformed");
        };
        // The mutex is held until the connection has joined. When the home is emptied, the
        // handover names to the relay exactly the links that have joined; no byte of another
        // link was taken.
        let visitors = self.visitors();
        if visitors.closed {
            return Err("the daemon leaves, because its home was emptied");
        }
        let known = visitors.launches.get(&join.launch_id);
        let launch = known.and_then(|known| known.launch.upgrade());
        let launch = launch.ok_or("the launch is unknown or has ended")?;
        let trust = match join.transport {
            JoinTransport::Pipe => Trust::Transport,
            JoinTransport::Tcp => Trust::Token,
        };
        connection
            .join(launch, trust)
            .map_err(|_| "it belongs to a launch already")?;
        if let Some(number) = join.link {
            connection.set_link(number);
        }
        connection.restore(&join.state);
        Ok(())
    }

    /// Returns how many clients are connected. A relay and the connection of its client are one.
    pub fn clients(&self) -> usize {
        let visitors = self.visitors();
        let open: Vec<Arc<Connection>> = visitors
            .connections
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let is_relay = |connection: &Arc<Connection>| {
            let mut known = visitors.launches.values();
            known.any(|known| {
                known.control.as_ptr() == Arc::as_ptr(connection)
                    && open.iter().any(|other| {
                        !Arc::ptr_eq(other, connection)
                            && known.launch.as_ptr() == Arc::as_ptr(&other.launch())
                    })
            })
        };
        open.iter().filter(|it| !is_relay(it)).count()
    }

    /// Returns the open connection of a client.
    pub fn connection_of(&self, client: ClientId) -> Option<Arc<Connection>> {
        let visitors = self.visitors();
        let mut open = visitors.connections.iter().filter_map(Weak::upgrade);
        open.find(|connection| connection.id() == client)
    }

    /// Returns the open connections of a launch.
    pub fn connections_of(&self, launch: &Arc<Launch>) -> Vec<Arc<Connection>> {
        self.visitors().connections_of(launch)
    }

    async fn vanished(&self, connection: &Connection) {
        for id in connection.sessions() {
            if connection.detach(&id)
                && let Some(session) = self.sessions.get(&id)
                && let Err(error) = session
                    .detach(connection.id(), DetachReason::ConnectionLost)
                    .await
            {
                tracing::debug!(session = %id, %error, "a connection left a session that was gone");
            }
        }
    }

    /// Ends every session of a launch, as if each of its connections had destroyed its sessions.
    pub async fn end_launch(&self, launch: &Arc<Launch>) {
        for connection in self.connections_of(launch) {
            for id in connection.sessions() {
                if connection.detach(&id)
                    && let Some(session) = self.sessions.get(&id)
                    && let Err(error) = session.detach(connection.id(), DetachReason::Destroy).await
                {
                    tracing::warn!(session = %id, %error, "a session could not be ended");
                }
            }
        }
    }

    /// Tells the hooks of all sessions that these end, within a time for all together.
    async fn tell_ends(&self) {
        let sessions = self.sessions.ids().into_iter();
        let sessions = sessions.filter_map(|id| self.sessions.get(&id));
        let told = join_all(sessions.map(|session| session.tell_end()));
        if tokio::time::timeout(STOP_WAIT, told).await.is_err() {
            tracing::warn!("the hooks at the end of sessions took too long");
        }
    }

    /// Stops everything in order: connections, sessions, processes, store.
    pub async fn close(&self) {
        if !self.has_lost_home() {
            self.tell_ends().await;
        }
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
