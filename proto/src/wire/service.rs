//! What a side of a connection answers: the trait the pump calls, and the reply it gets back.
//! Implemented by the daemon's method table and by clients. Never touches a stream or a queue.

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Serialize;

use super::envelope::{
    self, ErrorObject, INTERNAL_ERROR, METHOD_NOT_FOUND, Notification, Request, RequestId,
};
use super::peer::Peer;

/// The complete response message, and what has to happen right after it entered the queue.
pub struct Reply {
    pub message: Bytes,
    /// Runs only when the message was queued; it is dropped when the connection is closed.
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

    /// Adds what has to happen right after the message entered the queue.
    #[must_use]
    pub fn then(mut self, after: impl FnOnce() + Send + 'static) -> Self {
        self.after = Some(Box::new(after));
        self
    }
}

/// What answers the other side.
pub trait Service: Send + Sync + 'static {
    /// Answers a request. The future is polled once before the next frame is read, so that what it
    /// does before its first wait happens in the order of arrival.
    fn call(&self, peer: &Peer, request: Request) -> BoxFuture<'static, Reply>;

    /// Takes a notification.
    fn notify(&self, peer: &Peer, notification: Notification);

    /// Says whether a method is answered only when something happens, perhaps at the caller's doing:
    /// such requests must not stand in the way of those that make it happen.
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
