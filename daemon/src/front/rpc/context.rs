//! What a handler gets to know: the daemon and who is asking.

use parking_lot::Mutex;
use std::sync::Arc;

use super::server::Server;
use crate::connection::Connection;

/// What has to happen right after a reply entered the queue.
pub type AfterReply = Box<dyn FnOnce() + Send>;

/// What a handler needs: the daemon and who is asking.
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

    /// Runs this right after the reply has entered the connection's queue.
    pub fn after_reply(&self, action: impl FnOnce() + Send + 'static) {
        *self.after.lock() = Some(Box::new(action));
    }

    pub(super) fn take_after(&self) -> Option<AfterReply> {
        self.after.lock().take()
    }
}
