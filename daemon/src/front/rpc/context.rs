//! What a handler gets: the daemon and the connection that sent the request.

use parking_lot::Mutex;
use std::sync::Arc;

use loopd_proto::event::fact::ClientRef;

use super::server::Server;
use crate::front::connection::Connection;

/// An action that runs right after the reply has entered the connection's queue.
pub type AfterReply = Box<dyn FnOnce() + Send>;

/// The daemon and the connection that sent the request.
#[derive(Clone)]
pub struct Context {
    pub app: Arc<Server>,
    pub connection: Arc<Connection>,
    after: Arc<Mutex<Option<AfterReply>>>,
}

impl Context {
    pub fn new(app: Arc<Server>, connection: Arc<Connection>) -> Self {
        Self {
            app,
            connection,
            after: Arc::default(),
        }
    }

    /// Returns how logs name the client that sent the request.
    pub fn caller(&self) -> ClientRef {
        let clock = &self.app.services.clock;
        self.connection.logged(|| clock.id().to_string())
    }

    /// Runs `action` right after the reply has entered the connection's queue.
    pub fn after_reply(&self, action: impl FnOnce() + Send + 'static) {
        *self.after.lock() = Some(Box::new(action));
    }

    pub(super) fn take_after(&self) -> Option<AfterReply> {
        self.after.lock().take()
    }
}
