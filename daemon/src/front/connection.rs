//! The state of one connection: its peer, its launch, the sessions it is attached to, and the
//! handlers that its client registered.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use loopd_proto::event::fact::ClientRef;
use loopd_proto::id::SessionId;
use loopd_proto::params::launch::{LAUNCH_LIMIT, LinkState};
use loopd_proto::wire::Peer;

use super::client_link::ClientLink;
use crate::client::{Client, ClientId};
use crate::launch::Launch;

/// The largest frame of a client that has not shown its token yet.
const STRANGER_FRAME: usize = 64 * 1024;
/// How many wrong tokens one connection may show.
const MOST_WRONG_TOKENS: u32 = 5;

/// How many handlers one connection may have at a time.
const MOST_HANDLERS: usize = 1_000;

/// How many characters of a client's name are kept.
const LONGEST_NAME: usize = 100;

/// One client's connection.
pub struct Connection {
    pub peer: Peer,
    /// The client of this connection, as sessions and launches see it.
    pub client: Arc<dyn Client>,
    launch: Mutex<Arc<Launch>>,
    authenticated: AtomicBool,
    /// Whether the client has said who it is: with its token, a launch, or any first request.
    introduced: AtomicBool,
    wrong_tokens: AtomicU32,
    joined: AtomicBool,
    /// The number that the relay gave this connection, if it came through a relay.
    link: OnceLock<u64>,
    attached: Mutex<BTreeSet<SessionId>>,
    /// Handlers for questions about automatic modes: handle to session.
    handlers: Mutex<BTreeMap<String, SessionId>>,
    /// The id by which logs know the client of this connection.
    logged_id: OnceLock<String>,
    /// The name that the client gave itself.
    name: Mutex<Option<String>>,
}

impl Connection {
    /// Creates a connection. Only with `Trust::Token` it has to authenticate.
    pub fn new(peer: Peer, launch: Arc<Launch>, trust: Trust) -> Self {
        match trust {
            Trust::Transport => {}
            Trust::LocalSocket => peer.restrict(LAUNCH_LIMIT),
            Trust::Token => peer.restrict(STRANGER_FRAME),
        }
        Self {
            client: Arc::new(ClientLink::new(peer.clone())),
            peer,
            launch: Mutex::new(launch),
            authenticated: AtomicBool::new(trust != Trust::Token),
            introduced: AtomicBool::new(trust == Trust::Transport),
            wrong_tokens: AtomicU32::new(0),
            // A client that needs a token came without a relay. It keeps its listener's launch.
            joined: AtomicBool::new(trust == Trust::Token),
            link: OnceLock::new(),
            attached: Mutex::default(),
            handlers: Mutex::default(),
            logged_id: OnceLock::new(),
            name: Mutex::default(),
        }
    }

    pub fn id(&self) -> ClientId {
        self.client.id()
    }

    /// Sets the id by which logs know the client. The first call wins.
    pub fn set_logged_id(&self, id: String) {
        self.logged_id.get_or_init(|| id);
    }

    /// Sets the name of the client, as far as it can be shown to people on one line.
    pub fn set_name(&self, name: &str) {
        let shown = name.trim().chars().filter(|letter| !letter.is_control());
        let name: String = shown.take(LONGEST_NAME).collect();
        if !name.is_empty() {
            *self.name.lock() = Some(name);
        }
    }

    /// Returns how logs name the client of this connection.
    pub fn logged(&self, new_id: impl FnOnce() -> String) -> ClientRef {
        ClientRef {
            id: self.logged_id.get_or_init(new_id).clone(),
            name: self.name.lock().clone(),
        }
    }

    /// Returns the launch that this connection belongs to.
    pub fn launch(&self) -> Arc<Launch> {
        let launch = self.launch.lock();
        launch.clone()
    }

    /// Moves the connection to a launch, and sets how it has to authenticate. This works once.
    ///
    /// A relay joins before it passes on the first byte of its client, so a client behind a relay
    /// cannot choose a launch: its own attempt comes second and is refused.
    pub fn join(self: &Arc<Self>, launch: Arc<Launch>, trust: Trust) -> Result<(), AlreadyJoined> {
        if self.joined.swap(true, Ordering::AcqRel) {
            return Err(AlreadyJoined);
        }
        launch.join(&self.client);
        *self.launch.lock() = launch;
        match trust {
            Trust::Transport | Trust::LocalSocket => self.authenticate(),
            Trust::Token => {
                self.peer.restrict(STRANGER_FRAME);
                self.introduced.store(false, Ordering::Release);
                self.authenticated.store(false, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Stores the number that the relay gave this connection. The first call wins.
    pub fn set_link(&self, number: u64) {
        self.link.get_or_init(|| number);
    }

    /// Returns the number that the relay gave this connection, if the relay outlives the home.
    pub fn link(&self) -> Option<u64> {
        self.link.get().copied()
    }

    /// Returns the state of the connection for the next daemon. From now on this daemon sends no
    /// request to the client.
    pub fn link_state(&self) -> LinkState {
        let launch = self.launch();
        LinkState {
            authenticated: self.is_authenticated(),
            carries_inference: launch.inference_of(self.id()).is_some(),
            keeps_session_files: launch.has_session_files_at(self.id()),
            next_request_id: self.peer.seal_calls(),
        }
    }

    /// Restores the state that the connection had with the previous daemon.
    pub fn restore(&self, state: &LinkState) {
        self.peer.number_calls_from(state.next_request_id);
        if state.authenticated {
            self.authenticate();
        }
        if state.carries_inference {
            self.launch().carry_inference_again(&self.client);
        }
        if state.keeps_session_files {
            self.launch().keep_session_files_again(&self.client);
        }
    }

    pub fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Acquire)
    }

    /// Serves the client from now on.
    pub fn authenticate(&self) {
        self.authenticated.store(true, Ordering::Release);
        self.introduce();
    }

    /// Records that the client has said something. From an authenticated one, frames of every size
    /// are read afterwards.
    pub fn introduce(&self) {
        if self.is_authenticated() && !self.introduced.swap(true, Ordering::AcqRel) {
            self.peer.admit();
        }
    }

    /// Returns whether the client has said who it is.
    pub fn is_introduced(&self) -> bool {
        self.introduced.load(Ordering::Acquire)
    }

    /// Counts a wrong token; fails if the connection has shown too many.
    pub fn count_wrong_token(&self) -> Result<(), TooManyWrongTokens> {
        let before = self.wrong_tokens.fetch_add(1, Ordering::AcqRel);
        if before + 1 >= MOST_WRONG_TOKENS {
            return Err(TooManyWrongTokens);
        }
        Ok(())
    }

    fn attached(&self) -> parking_lot::MutexGuard<'_, BTreeSet<SessionId>> {
        self.attached.lock()
    }

    pub fn attach(&self, session: SessionId) {
        self.attached().insert(session);
    }

    /// Detaches from a session and drops its handlers; returns whether the session was attached.
    pub fn detach(&self, session: &SessionId) -> bool {
        self.handlers().retain(|_, of| of != session);
        self.attached().remove(session)
    }

    pub fn is_attached(&self, session: &SessionId) -> bool {
        self.attached().contains(session)
    }

    fn handlers(&self) -> parking_lot::MutexGuard<'_, BTreeMap<String, SessionId>> {
        self.handlers.lock()
    }

    /// Registers a handler that the client has for a session. It ends with the connection.
    pub fn register(&self, session: SessionId, handle: String) -> Result<(), TooManyHandlers> {
        let mut handlers = self.handlers();
        if handlers.len() >= MOST_HANDLERS {
            return Err(TooManyHandlers);
        }
        handlers.insert(handle, session);
        Ok(())
    }

    /// Removes a handler; returns whether it was registered for this session.
    pub fn unregister(&self, session: &SessionId, handle: &str) -> bool {
        let mut handlers = self.handlers();
        let known = handlers.get(handle) == Some(session);
        known && handlers.remove(handle).is_some()
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.attached().iter().cloned().collect()
    }
}

/// The connection has joined a launch before; it cannot change to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this connection belongs to a launch already")]
pub struct AlreadyJoined;

/// The connection has shown as many wrong tokens as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MOST_WRONG_TOKENS} wrong tokens were shown; connect again with the right one")]
pub struct TooManyWrongTokens;

/// The connection has as many handlers as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this connection has {MOST_HANDLERS} handlers already; unregister some of them first")]
pub struct TooManyHandlers;

/// How a connection authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// By its transport: a pipe from our parent.
    Transport,
    /// By its transport, too: a socket that only this user can open. The client has to say at once
    /// what it wants, and its first message is limited.
    LocalSocket,
    /// By the token, which the client has to send.
    Token,
}
