//! Facts about one connection: its peer, its launch, the sessions it is attached to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loopd_proto::id::SessionId;
use loopd_proto::wire::Peer;

use crate::app::App;
use crate::launch::Launch;

/// One client's connection.
pub struct Connection {
    pub peer: Peer,
    launch: Mutex<Arc<Launch>>,
    authenticated: AtomicBool,
    attached: Mutex<BTreeSet<SessionId>>,
}

impl Connection {
    /// A connection that proved itself by its transport, or has to by a token.
    pub fn new(peer: Peer, launch: Arc<Launch>, trust: Trust) -> Self {
        Self {
            peer,
            launch: Mutex::new(launch),
            authenticated: AtomicBool::new(trust == Trust::Transport),
            attached: Mutex::default(),
        }
    }

    /// The launch this connection belongs to.
    pub fn launch(&self) -> Arc<Launch> {
        let launch = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        launch.clone()
    }

    /// Moves to another launch; how it has to prove itself is decided anew.
    pub fn join(self: &Arc<Self>, launch: Arc<Launch>, trust: Trust) {
        launch.join(self);
        self.authenticated
            .store(trust == Trust::Transport, Ordering::Release);
        let mut own = self.launch.lock().unwrap_or_else(PoisonError::into_inner);
        *own = launch;
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

    pub fn detach(&self, session: &SessionId) -> bool {
        self.attached().remove(session)
    }

    pub fn is_attached(&self, session: &SessionId) -> bool {
        self.attached().contains(session)
    }

    pub fn sessions(&self) -> Vec<SessionId> {
        self.attached().iter().cloned().collect()
    }
}

/// How a connection shows that it may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A pipe from our parent, or a socket only this user can open.
    Transport,
    /// Whoever connects has to know the token.
    Token,
}

/// What has to happen right after a reply entered the queue.
pub type AfterReply = Box<dyn FnOnce() + Send>;

/// What a handler needs: the daemon and who is asking.
#[derive(Clone)]
pub struct Context {
    pub app: Arc<App>,
    pub connection: Arc<Connection>,
    after: Arc<Mutex<Option<AfterReply>>>,
}

impl Context {
    pub fn new(app: Arc<App>, connection: Arc<Connection>) -> Self {
        Self {
            app,
            connection,
            after: Arc::default(),
        }
    }

    /// Runs this right after the reply has entered the connection's queue.
    pub fn after_reply(&self, action: impl FnOnce() + Send + 'static) {
        *self.after.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
    }

    pub(super) fn take_after(&self) -> Option<AfterReply> {
        self.after
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
