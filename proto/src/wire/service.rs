//! The trait that handles incoming requests and notifications, and the reply it returns.
//! Implemented by the daemon's method table and by clients. Never touches a stream or a queue.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;

use super::envelope::{
    self, ErrorObject, INTERNAL_ERROR, METHOD_NOT_FOUND, Notification, Request, RequestId,
};
use super::peer::Peer;

/// A complete response message, and an action that must follow it.
pub struct Reply {
    pub message: Bytes,
    /// Runs right after the message was queued; dropped if the connection is closed.
    pub after: Option<Box<dyn FnOnce() + Send>>,
}

impl Reply {
    /// Creates the response that carries a result, or an internal error if it is not valid JSON.
    pub fn result<T: Serialize + ?Sized>(id: &RequestId, value: &T) -> Self {
        match envelope::result(id, value) {
            Ok(message) => Self {
                message,
                after: None,
            },
            Err(error) => {
                tracing::error!(%id, %error, "a result cannot be written as JSON");
                let message = format!("the result cannot be written as JSON: {error}");
                Self::error(id, ErrorObject::new(INTERNAL_ERROR, message))
            }
        }
    }

    /// Creates the response that carries an error.
    pub fn error(id: &RequestId, error: ErrorObject) -> Self {
        Self {
            message: envelope::error(Some(id), &error),
            after: None,
        }
    }

    /// Adds an action that runs right after the message was queued.
    #[must_use]
    pub fn then(mut self, after: impl FnOnce() + Send + 'static) -> Self {
        self.after = Some(Box::new(after));
        self
    }
}

/// Handles the requests and notifications of the other side.
pub trait Service: Send + Sync + 'static {
    /// Handles a request. The future is polled once before the next frame is read, so that what it
    /// does before its first wait happens in the order of arrival.
    fn call(&self, peer: &Peer, request: Request) -> BoxFuture<'static, Reply>;

    /// Handles a notification.
    fn notify(&self, peer: &Peer, notification: Notification);

    /// Returns whether the reply to a method waits for an event that another request of the caller
    /// may cause. Such a request must not hold up that other request.
    fn awaits(&self, _method: &str) -> bool {
        false
    }
}

/// The service of a side that handles nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoMethods;

impl Service for NoMethods {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        let message = format!("Unhandled method {}", request.method);
        let error = ErrorObject::new(METHOD_NOT_FOUND, message);
        futures::future::ready(Reply::error(&request.id, error)).boxed()
    }

    fn notify(&self, peer: &Peer, notification: Notification) {
        let method = notification.method;
        tracing::debug!(peer = %peer.id(), method, "a notification was ignored");
    }
}
