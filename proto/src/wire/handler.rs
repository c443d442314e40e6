//! One running request: the service's future, with panics caught and a way to cancel it. Owned by
//! the pump. Whatever happens to the future, it ends in exactly one reply.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::{AbortHandle, Abortable, BoxFuture, CatchUnwind};

use super::envelope::{ErrorObject, INTERNAL_ERROR, REQUEST_CANCELLED, RequestId};
use super::service::Reply;

/// One running request.
pub(super) struct Handler {
    id: RequestId,
    method: String,
    load: Load,
    future: Abortable<CatchUnwind<AssertUnwindSafe<BoxFuture<'static, Reply>>>>,
}

/// How a running request counts against the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// It works; `bytes` is the size of its frame.
    Working { bytes: usize },
    /// It waits for an event.
    Waiting,
}

/// A request that has ended, and its reply.
pub(super) struct Finished {
    pub(super) id: RequestId,
    pub(super) load: Load,
    pub(super) reply: Reply,
}

impl Handler {
    /// Wraps the future, and returns the handle that cancels it.
    pub(super) fn new(
        id: RequestId,
        method: String,
        load: Load,
        future: BoxFuture<'static, Reply>,
    ) -> (Self, AbortHandle) {
        let (abort, registration) = AbortHandle::new_pair();
        let future = Abortable::new(AssertUnwindSafe(future).catch_unwind(), registration);
        let handler = Self {
            id,
            method,
            load,
            future,
        };
        (handler, abort)
    }
}

impl Future for Handler {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Finished> {
        let reply = match ready!(self.future.poll_unpin(context)) {
            Ok(Ok(reply)) => reply,
            Ok(Err(panic)) => panicked(&self.id, &self.method, &*panic),
            Err(_aborted) => {
                let error = ErrorObject::new(REQUEST_CANCELLED, "the caller cancelled the request");
                Reply::error(&self.id, error)
            }
        };
        Poll::Ready(Finished {
            id: self.id.clone(),
            load: self.load,
            reply,
        })
    }
}

/// Logs a panic and returns the error reply.
pub(super) fn panicked(id: &RequestId, method: &str, panic: &(dyn Any + Send)) -> Reply {
    let panic = panic_text(panic);
    tracing::error!(%id, method, panic, "a request handler panicked");
    let message = format!("Request {method} failed with message: internal error");
    Reply::error(id, ErrorObject::new(INTERNAL_ERROR, message))
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without text")
}
