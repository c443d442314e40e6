//! Facts about one connection: its peer, its launch, the sessions it is attached to, and what it
//! said it answers by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use loopd_proto::id::SessionId;
use loopd_proto::params::launch::LinkState;
use loopd_proto::wire::Peer;

use super::client_link::ClientLink;
use crate::client::{Client, ClientId};
use crate::launch::Launch;

/// How many handlers one connection may have at a time.
const MOST_HANDLERS: usize = 1_000;

/// One client's connection.
pub struct Connection {
    pub peer: Peer,
    /// The same as sessions and launches see it.
    pub client: Arc<dyn Client>,
    launch: Mutex<Arc<Launch>>,
    authenticated: AtomicBool,
    joined: AtomicBool,
    /// How its relay tells it from its other connections.
    link: OnceLock<u64>,
    attached: Mutex<BTreeSet<SessionId>>,
    /// Handlers for questions about automatic modes, by their handle.
    handlers: Mutex<BTreeMap<String, SessionId>>,
}

impl Connection {
    /// A connection that proved itself by its transport, or has to by a token.
    pub fn new(peer: Peer, launch: Arc<Launch>, trust: Trust) -> Self {
        Self {
            client: Arc::new(ClientLink::new(peer.clone())),
            peer,
            launch: Mutex::new(launch),
            authenticated: AtomicBool::new(trust == Trust::Transport),
            // Who has to show a token came without a relay, and belongs where it came in.
            joined: AtomicBool::new(trust == Trust::Token),
            link: OnceLock::new(),
            attached: Mutex::default(),
            handlers: Mutex::default(),
        }
    }

    pub fn id(&self) -> ClientId {
        self.client.id()
    }

    /// The launch this connection belongs to.
    pub fn launch(&self) -> Arc<Launch> {
        let launch = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        launch.clone()
    }

    /// Moves to its launch, once; how it has to prove itself is decided with it.
    ///
    /// A relay joins before it passes on a byte of its client, so that what the client says about
    /// launches comes too late.
    pub fn join(self: &Arc<Self>, launch: Arc<Launch>, trust: Trust) -> Result<(), AlreadyJoined> {
        if self.joined.swap(true, Ordering::AcqRel) {
            return Err(AlreadyJoined);
        }
        launch.join(&self.client);
        self.authenticated
            .store(trust == Trust::Transport, Ordering::Release);
        let mut own = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        *own = launch;
        Ok(())
    }

    /// Notes the number by which its relay knows it; the first one counts.
    pub fn set_link(&self, number: u64) {
        self.link.get_or_init(|| number);
    }

    /// The number by which its relay knows it, if it came through one that outlives the home.
    pub fn link(&self) -> Option<u64> {
        self.link.get().copied()
    }

    /// What the connection has reached, for the next daemon; it asks its client nothing from now on.
    pub fn link_state(&self) -> LinkState {
        let launch = self.launch();
        LinkState {
            authenticated: self.is_authenticated(),
            carries_inference: launch.inference_of(self.id()).is_some(),
            keeps_session_files: launch.has_session_files_at(self.id()),
            next_request_id: self.peer.seal_calls(),
        }
    }

    /// Gives the connection back what it had with the daemon before.
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

    pub fn authenticate(&self) {
        self.authenticated.store(true, Ordering::Release);
    }

    fn attached(&self) -> std::sync::MutexGuard<'_, BTreeSet<SessionId>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn attach(&self, session: SessionId) {
        self.attached().insert(session);
    }

    /// Leaves a session, and takes its handlers along.
    pub fn detach(&self, session: &SessionId) -> bool {
        self.handlers().retain(|_, of| of != session);
        self.attached().remove(session)
    }

    pub fn is_attached(&self, session: &SessionId) -> bool {
        self.attached().contains(session)
    }

    fn handlers(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, SessionId>> {
        self.handlers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a handler that the client has for a session; it leaves with the connection.
    pub fn register(&self, session: SessionId, handle: String) -> Result<(), TooManyHandlers> {
        let mut handlers = self.handlers();
        if handlers.len() >= MOST_HANDLERS {
            return Err(TooManyHandlers);
        }
        handlers.insert(handle, session);
        Ok(())
    }

    /// Forgets a handler; whether the session had it.
    pub fn unregister(&self, session: &SessionId, handle: &str) -> bool {
        let mut handlers = self.handlers();
        let known = handlers.get(handle) == Some(session);
        known && handlers.remove(handle).is_some()
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.attached().iter().cloned().collect()
    }
}

/// A connection belongs to one launch for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this connection belongs to a launch already")]
pub struct AlreadyJoined;

/// A connection keeps a bounded number of handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this connection has {MOST_HANDLERS} handlers already; unregister some of them first")]
pub struct TooManyHandlers;

/// How a connection shows that it may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A pipe from our parent, or a socket only this user can open.
    Transport,
    /// Whoever connects has to know the token.
    Token,
}
