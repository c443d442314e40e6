//! The other end of a connection: sends it notifications and requests, and closes it. Held by
//! handlers, publishers and clients; the pump resolves its calls. Never reads or writes the stream.

use crate::parse_error::plain;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::admission::Admission;
use super::envelope::{self, ErrorObject, RequestId, Response};
use super::outbox::{Class, Closed, LastWord, LogPlace, Outbox};
use super::{CANCEL_REQUEST, CloseReason, Limits};
use crate::error::CONNECTION_REFUSED;

/// Identifies a connection of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(u64);

impl PeerId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Why a request of ours has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection ended before the answer came.
    #[error("the connection closed before the answer came")]
    Closed,
    /// Too many requests wait for an answer, or too many bytes of them wait to be written.
    #[error("too many requests to the other side are unanswered; try again later")]
    Overloaded,
    /// The other side answered with an error.
    #[error("the other side answered: {0}")]
    Remote(#[source] ErrorObject),
    /// The answer is larger than this side takes, or nests too deep.
    #[error("the answer was not taken: {0}")]
    Unreadable(String),
    /// The params cannot be written as JSON.
    #[error("the params cannot be written as JSON: {}", plain(.0))]
    Encode(#[source] serde_json::Error),
    /// The result is not what the caller expected.
    #[error("the result has an unexpected shape: {}", plain(.0))]
    Decode(#[source] serde_json::Error),
}

impl From<Closed> for CallError {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

type Outcome = Result<Box<RawValue>, CallError>;

/// The bit in the next call number that forbids further calls.
const SEALED: u64 = 1 << 63;

/// When a connection that refuses requests ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseUntil {
    /// When the other side has closed its half, so that every request already sent gets a reply.
    EndOfStream,
    /// As soon as the running requests have a reply.
    Answered,
}

/// The reply to every request from now on.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: ErrorObject,
    pub(super) until: RefuseUntil,
}

#[derive(Debug)]
struct Shared {
    id: PeerId,
    outbox: Outbox,
    admission: Arc<Admission>,
    outgoing_limit: usize,
    answer_limit: usize,
    next_call: AtomicU64,
    calls: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    /// Why the other side takes no messages from us.
    turned_away: OnceLock<ErrorObject>,
    refusal: OnceLock<Refusal>,
    refusing: CancellationToken,
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Outcome>>> {
        self.calls.lock()
    }
}

/// The other end of one connection. Clones are cheap and refer to the same connection.
#[derive(Clone, Debug)]
pub struct Peer {
    shared: Arc<Shared>,
}

impl Peer {
    pub(super) fn new(limits: Limits) -> Self {
        let shared = Shared {
            id: PeerId::next(),
            admission: Arc::new(Admission::new(limits.frame_limit)),
            outgoing_limit: limits.outgoing_limit,
            answer_limit: limits.answer_limit,
            outbox: Outbox::new(limits),
            next_call: AtomicU64::new(1),
            calls: Mutex::default(),
            turned_away: OnceLock::new(),
            refusal: OnceLock::new(),
            refusing: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the number that tells this connection apart from all others of the process.
    pub fn id(&self) -> PeerId {
        self.shared.id
    }

    /// Treats the other side as a stranger until [`Peer::admit`]: frames up to this size are read,
    /// and a malformed one ends the connection.
    pub fn restrict(&self, frame_limit: usize) {
        self.shared.admission.restrict(frame_limit);
    }

    /// Reads frames of every size that the limits allow, and goes on after malformed ones.
    pub fn admit(&self) {
        self.shared.admission.admit();
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.shared.admission.is_admitted()
    }

    pub(super) fn admission(&self) -> Arc<Admission> {
        self.shared.admission.clone()
    }

    /// Queues an event.
    pub fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<(), Closed> {
        self.push(Class::Event, envelope::notification(method, params))
    }

    /// Queues a complete, already serialised message.
    pub fn push(&self, class: Class, message: Bytes) -> Result<(), Closed> {
        self.shared.outbox.push(class, message)
    }

    /// Queues a complete event that has a place in a log.
    pub fn push_from(
        &self,
        class: Class,
        message: Bytes,
        place: Option<LogPlace>,
    ) -> Result<(), Closed> {
        self.shared.outbox.push_from(class, message, place)
    }

    /// Sets what the other side is told before it is cut for reading too slowly. The first call wins.
    pub fn set_last_word(&self, last_word: LastWord) {
        self.shared.outbox.set_last_word(last_word);
    }

    /// Sends a request. It is queued at once; dropping the future cancels it.
    pub fn request<P, R>(
        &self,
        method: &str,
        params: &P,
    ) -> impl Future<Output = Result<R, CallError>> + use<P, R>
    where
        P: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let pending = self.start_request(method, params);
        let peer = self.clone();
        async move {
            let answered = match pending {
                Ok(pending) => pending.await,
                Err(closed) => Err(closed.into()),
            };
            let result = answered.map_err(|error| peer.explain(error))?;
            serde_json::from_str(result.get()).map_err(CallError::Decode)
        }
    }

    /// Queues a request and returns the future of its reply.
    pub fn start_request<P: Serialize + ?Sized>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<PendingCall, Closed> {
        let id = self.shared.next_call.fetch_add(1, Ordering::Relaxed);
        if id & SEALED != 0 {
            return Err(Closed);
        }
        let message = match envelope::call(Some(id), method, params) {
            Ok(message) => message,
            Err(error) => return Ok(self.refused(id, CallError::Encode(error))),
        };
        if self.shared.outbox.requests_full() {
            return Ok(self.refused(id, CallError::Overloaded));
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut calls = self.shared.calls();
            if calls.len() >= self.shared.outgoing_limit {
                return Ok(self.refused(id, CallError::Overloaded));
            }
            calls.insert(id, sender);
        }
        // Registered before it is queued: the reply may come at once, and a close after a
        // successful push must find the entry.
        if let Err(closed) = self.push(Class::Request, message) {
            self.shared.calls().remove(&id);
            return Err(closed);
        }
        self.shared.outbox.resume();
        Ok(PendingCall {
            peer: self.clone(),
            id,
            wait: Wait::Answer(receiver),
        })
    }

    fn refused(&self, id: u64, error: CallError) -> PendingCall {
        PendingCall {
            peer: self.clone(),
            id,
            wait: Wait::Refused(error),
        }
    }

    /// Numbers further calls from `first` on. The other side has seen smaller numbers from an earlier
    /// connection, and a late reply to one of those must not answer a call of this one.
    pub fn number_calls_from(&self, first: u64) {
        let next = &self.shared.next_call;
        next.fetch_max(first & !SEALED, Ordering::Relaxed);
    }

    /// Forbids further calls, and returns the first call number that was not used.
    pub fn seal_calls(&self) -> u64 {
        let next = self.shared.next_call.fetch_or(SEALED, Ordering::Relaxed);
        next & !SEALED
    }

    /// Replies to every request with this error from now on, running ones included. Nothing that a
    /// handler does after this call is reported as done. The first refusal counts.
    pub fn refuse_requests(&self, error: ErrorObject, until: RefuseUntil) {
        self.shared.refusal.get_or_init(|| Refusal { error, until });
        self.shared.refusing.cancel();
    }

    pub(super) fn refusal(&self) -> Option<&Refusal> {
        self.shared.refusal.get()
    }

    /// Waits until requests are refused.
    pub(super) async fn refusing(&self) {
        self.shared.refusing.cancelled().await;
    }

    /// Closes the connection. After `CloseReason::Done` the queued messages are still written.
    pub fn close(&self, reason: CloseReason) {
        self.shared.outbox.close(reason);
    }

    /// Tells the other side why it is not served, then closes the connection.
    pub fn refuse(&self, reason: &ErrorObject) {
        // A closed connection needs no reason any more.
        self.push(Class::Reply, envelope::refusal(reason)).ok();
        self.close(CloseReason::Refused(reason.message.clone()));
    }

    /// Returns whether either side has closed the connection.
    pub fn is_closed(&self) -> bool {
        self.close_reason().is_some()
    }

    /// Returns why the connection was closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared.outbox.close_reason()
    }

    /// Waits until the connection is closed.
    pub async fn closed(&self) -> CloseReason {
        self.shared.outbox.closed().await;
        // The reason is stored before the wait ends.
        self.close_reason().unwrap_or(CloseReason::Abandoned)
    }

    /// Returns how many deltas were dropped because the other side reads slowly.
    pub fn dropped_deltas(&self) -> u64 {
        self.shared.outbox.dropped_deltas()
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.shared.outbox
    }

    /// Returns whether a request of ours has no reply yet.
    pub(super) fn awaits_answers(&self) -> bool {
        !self.shared.calls().is_empty()
    }

    /// Passes a reply to the call that waits for it.
    pub(super) fn resolve(&self, response: Response) {
        if let (None, Err(error)) = (&response.id, &response.outcome)
            && error.code == i64::from(CONNECTION_REFUSED)
        {
            self.shared.turned_away.get_or_init(|| error.clone());
        }
        let limit = self.shared.answer_limit;
        let outcome = match response.outcome {
            Ok(result) if result.get().len() > limit => {
                let bytes = result.get().len();
                Err(CallError::Unreadable(format!(
                    "it has {bytes} bytes, more than the limit of {limit} bytes"
                )))
            }
            Ok(result) => Ok(result),
            Err(error) => Err(CallError::Remote(error)),
        };
        self.end_call(response.id.as_ref(), outcome);
    }

    /// Ends the call whose answer came and cannot be read.
    pub(super) fn answer_unread(&self, id: Option<&RequestId>, reason: String) {
        self.end_call(id, Err(CallError::Unreadable(reason)));
    }

    fn end_call(&self, id: Option<&RequestId>, outcome: Outcome) {
        let call = id.and_then(|id| {
            let number = id.as_number()?;
            self.shared.calls().remove(&number)
        });
        let Some(sender) = call else {
            let id = id.map_or("null", |id| id.as_json());
            tracing::debug!(peer = %self.id(), id, "an answer nobody waits for was ignored");
            return;
        };
        if sender.send(outcome).is_err() {
            tracing::trace!(peer = %self.id(), "an answer came while its wait was given up");
        }
    }

    /// Replaces "closed" by what the other side said when it refused the connection.
    fn explain(&self, error: CallError) -> CallError {
        match (error, self.shared.turned_away.get()) {
            (CallError::Closed, Some(refusal)) => CallError::Remote(refusal.clone()),
            (error, _) => error,
        }
    }

    /// Ends all pending calls with [`CallError::Closed`].
    pub(super) fn fail_calls(&self) {
        let calls = std::mem::take(&mut *self.shared.calls());
        // Dropped after the lock was released: waking a waiter may run code that takes it.
        drop(calls);
    }
}

/// The future of the reply to one request. Dropping it early cancels the request.
#[derive(Debug)]
#[must_use = "dropping it cancels the request"]
pub struct PendingCall {
    peer: Peer,
    id: u64,
    wait: Wait,
}

#[derive(Debug)]
enum Wait {
    Answer(oneshot::Receiver<Outcome>),
    Refused(CallError),
    Done,
}

impl Future for PendingCall {
    type Output = Result<Box<RawValue>, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match std::mem::replace(&mut self.wait, Wait::Done) {
            Wait::Answer(mut receiver) => match Pin::new(&mut receiver).poll(context) {
                Poll::Pending => {
                    self.wait = Wait::Answer(receiver);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(outcome)) => outcome,
                Poll::Ready(Err(_)) => Err(CallError::Closed),
            },
            Wait::Refused(error) => Err(error),
            Wait::Done => return Poll::Pending,
        };
        Poll::Ready(outcome)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        #[derive(Serialize)]
        struct OutgoingCancel {
            id: u64,
        }
        let unanswered = matches!(self.wait, Wait::Answer(_))
            && self.peer.shared.calls().remove(&self.id).is_some();
        if unanswered
            && self
                .peer
                .notify(CANCEL_REQUEST, &OutgoingCancel { id: self.id })
                .is_err()
        {
            tracing::trace!(peer = %self.peer.id(), "no cancel was sent: the connection is closed");
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
