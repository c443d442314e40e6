//! Drives one connection in one task: frames in, handlers polled, the outbox written. The daemon
//! calls `serve`, clients call `connect`. Never spawns, never knows a method other than
//! `$/cancelRequest`, and answers each request exactly once unless the connection ends first.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::AbortHandle;
use futures::stream::{FuturesUnordered, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop;

use super::codec::{FrameError, FrameReader};
use super::envelope::{
    self, ErrorObject, INVALID_REQUEST, Message, Notification, OVERLOADED, PARSE_ERROR, Request,
    RequestId,
};
use super::handler::{Finished, Handler, Weight, panic_text, panicked};
use super::outbox::{self, Class, Intake};
use super::peer::{Peer, RefuseUntil};
use super::service::{Reply, Service};
use super::{CANCEL_REQUEST, CloseReason, Limits};

/// Serves a connection until it ends; `on_open` gets the peer before anything is read.
pub async fn serve<S>(
    stream: S,
    service: Arc<dyn Service>,
    limits: Limits,
    on_open: impl FnOnce(Peer),
) -> CloseReason
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (peer, driving) = connect(stream, service, limits);
    on_open(peer);
    driving.await
}

/// Returns the other end of a stream, and the future that must be driven for it to live.
pub fn connect<S>(
    stream: S,
    service: Arc<dyn Service>,
    limits: Limits,
) -> (Peer, impl Future<Output = CloseReason> + Send + use<S>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let peer = Peer::new(limits.clone());
    // Made before the future is first polled: dropping an unpolled one must close the peer, too.
    let open = Open(peer.clone());
    (peer, drive(stream, service, limits, open))
}

/// Closes the peer for good when the connection is no longer driven.
struct Open(Peer);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close(CloseReason::Abandoned);
        self.0.outbox().discard();
        self.0.fail_calls();
    }
}

async fn drive<S>(stream: S, service: Arc<dyn Service>, limits: Limits, open: Open) -> CloseReason
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let peer = &open.0;
    let flush_time = limits.flush_time;
    let (read, write) = tokio::io::split(stream);
    let mut reader = FrameReader::new(read, limits.frame_limit, limits.depth_limit);
    let framing = reader.framing();
    let mut pump = Pump::new(peer.clone(), service, limits);
    let mut writing = pin!(outbox::write_out(peer.outbox(), &framing, write));
    let mut written = None;
    let reading = async {
        let ended = tokio::select! {
            reason = pump.run(&mut reader) => Some(reason),
            () = peer.refusing() => None,
        };
        let until = pump.refuse_under_way();
        match (ended, until) {
            (None, Some(RefuseUntil::Answered)) => CloseReason::Done,
            // Also at the end of the stream: requests may have been read ahead.
            (None | Some(CloseReason::EndOfStream), Some(RefuseUntil::EndOfStream))
            | (None, None) => pump.run(&mut reader).await,
            (Some(reason), _) => reason,
        }
    };
    // Polled in random order, so that neither direction starves the other.
    tokio::select! {
        _ = peer.closed() => {}
        reason = reading => peer.close(reason),
        result = &mut writing => {
            if let Err(error) = &result {
                peer.close(CloseReason::Failed(error.to_string()));
            }
            written = Some(result);
        }
    }
    // Nobody waits for a handler of a connection that has ended, nor for an answer from it.
    drop(pump);
    peer.fail_calls();
    let reason = peer.closed().await;
    if written.is_none() && reason.allows_flush() {
        match tokio::time::timeout(flush_time, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(peer = %peer.id(), %error, "the last flush failed"),
            Err(_) => tracing::debug!(peer = %peer.id(), "the last flush took too long"),
        }
    }
    tracing::debug!(peer = %peer.id(), %reason, "connection closed");
    reason
}

/// The reading side of a connection and the handlers under way.
struct Pump {
    peer: Peer,
    service: Arc<dyn Service>,
    limits: Limits,
    running: FuturesUnordered<Handler>,
    aborts: HashMap<RequestId, AbortHandle>,
    /// The frame sizes of all requests in `running` that work.
    held_bytes: usize,
    /// How many of them only wait.
    waiting: usize,
    /// The request that arrived when the limit was reached; nothing is read while it waits.
    parked: Option<(Request, usize)>,
}

impl Pump {
    fn new(peer: Peer, service: Arc<dyn Service>, limits: Limits) -> Self {
        Self {
            peer,
            service,
            limits,
            running: FuturesUnordered::new(),
            aborts: HashMap::new(),
            held_bytes: 0,
            waiting: 0,
            parked: None,
        }
    }

    /// Reads and answers until the connection ends; cancel safe.
    async fn run<R: AsyncRead + Unpin>(&mut self, reader: &mut FrameReader<R>) -> CloseReason {
        loop {
            self.release_parked();
            let intake = self.peer.outbox().intake();
            if intake == Intake::Closed {
                return self.peer.closed().await;
            }
            let wanted = match (&self.parked, intake) {
                (Some(_), _) => Wanted::End,
                (None, Intake::Open) => Wanted::Frame,
                (None, Intake::Full | Intake::Closed) => Wanted::Nothing,
            };
            // Handlers come first: they are bounded by what was read, so they cannot starve it.
            tokio::select! {
                biased;
                Some(finished) = self.running.next() => {
                    self.aborts.remove(&finished.id);
                    match finished.weight {
                        Weight::Works { bytes } => {
                            self.held_bytes = self.held_bytes.saturating_sub(bytes);
                        }
                        Weight::Waits => self.waiting = self.waiting.saturating_sub(1),
                    }
                    self.conclude(finished);
                }
                () = self.peer.outbox().resumed(), if wanted != Wanted::Frame => {}
                frame = read(reader, wanted) => match frame {
                    Ok(Some(frame)) => {
                        if let Err(reason) = self.accept(frame) {
                            return reason;
                        }
                    }
                    Ok(None) => return CloseReason::EndOfStream,
                    Err(error) => return self.refuse_frame(error),
                },
            }
        }
    }

    /// Answers what is under way with the refusal, if requests are refused, and says until when
    /// they are. The other side may have closed its half because it knows of the refusal: its
    /// requests are answered all the same.
    fn refuse_under_way(&mut self) -> Option<RefuseUntil> {
        let refusal = self.peer.refusal()?;
        // Dropped before they are answered: nothing is done any more for a request that was refused.
        self.running.clear();
        (self.held_bytes, self.waiting) = (0, 0);
        let parked = self.parked.take().map(|(request, _)| request.id);
        for id in self.aborts.drain().map(|(id, _)| id).chain(parked) {
            push_reply(&self.peer, Reply::error(&id, refusal.error.clone()));
        }
        Some(refusal.until)
    }

    fn accept(&mut self, frame: Bytes) -> Result<(), CloseReason> {
        let bytes = frame.len();
        let message = envelope::parse(&frame);
        // Given back before a handler runs, so that a large frame is not held twice.
        drop(frame);
        match message {
            Ok(Message::Request(request)) => self.take(request, bytes),
            Ok(Message::Notification(notification)) if notification.method == CANCEL_REQUEST => {
                self.cancel(notification.params.as_deref());
            }
            Ok(Message::Notification(notification)) => self.tell(notification),
            Ok(Message::Response(response)) => self.peer.resolve(response),
            Err(error) => {
                self.reply(envelope::error(error.id(), &error.to_object()));
                return Err(CloseReason::Malformed(error.to_string()));
            }
        }
        Ok(())
    }

    fn tell(&self, notification: Notification) {
        let tell = || self.service.notify(&self.peer, notification);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(tell)) {
            let panic = panic_text(&*panic);
            tracing::error!(peer = %self.peer.id(), panic, "a notification handler panicked");
        }
    }

    fn take(&mut self, request: Request, bytes: usize) {
        if self.aborts.contains_key(&request.id) {
            let message = format!("a request with id {} is already under way", request.id);
            self.refuse(&request.id, INVALID_REQUEST, message);
        } else if self.service.awaits(&request.method) {
            if self.waiting >= self.limits.waiting_limit {
                let limit = self.limits.waiting_limit;
                let message = format!(
                    "{limit} requests of this connection wait already, which is the limit; try again when one has ended"
                );
                self.refuse(&request.id, OVERLOADED, message);
            } else {
                self.start(request, Weight::Waits);
            }
        } else if self.is_full() {
            self.parked = Some((request, bytes));
        } else {
            self.start(request, Weight::Works { bytes });
        }
    }

    fn is_full(&self) -> bool {
        let working = self.running.len().saturating_sub(self.waiting);
        working > 0
            && (working >= self.limits.incoming_limit
                || self.held_bytes >= self.limits.incoming_bytes_limit)
    }

    /// Starts the parked request when there is room again. While the other side owes us an answer
    /// it is refused instead: the handlers in its way may wait for just that answer.
    fn release_parked(&mut self) {
        let Some((request, bytes)) = self.parked.take() else {
            return;
        };
        if !self.is_full() {
            self.start(request, Weight::Works { bytes });
        } else if self.peer.awaits_answers() {
            let message = "too many requests are under way; try again later".to_owned();
            self.refuse(&request.id, OVERLOADED, message);
        } else {
            self.parked = Some((request, bytes));
        }
    }

    fn start(&mut self, request: Request, weight: Weight) {
        if let Some(refusal) = self.peer.refusal() {
            return self.answer(Reply::error(&request.id, refusal.error.clone()));
        }
        let id = request.id.clone();
        let method = request.method.clone();
        let created = catch_unwind(AssertUnwindSafe(|| self.service.call(&self.peer, request)));
        let future = match created {
            Ok(future) => future,
            Err(panic) => return self.answer(panicked(&id, &method, &*panic)),
        };
        let (mut handler, abort) = Handler::new(id.clone(), method, weight, future);
        // Unconstrained: with its budget used up, a send into a mailbox would yield before it has
        // taken its place, and a later request could overtake it.
        if let Some(finished) = coop::unconstrained(&mut handler).now_or_never() {
            self.conclude(finished);
        } else {
            self.aborts.insert(id, abort);
            match weight {
                Weight::Works { bytes } => self.held_bytes += bytes,
                Weight::Waits => self.waiting += 1,
            }
            self.running.push(handler);
        }
    }

    fn cancel(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let id = params
            .and_then(|params| serde_json::from_str::<Cancel<'_>>(params.get()).ok())
            .and_then(|cancel| RequestId::from_raw(cancel.id));
        // An unknown id is normal: the answer crossed the cancel on the wire.
        if let Some(abort) = id.and_then(|id| self.aborts.get(&id)) {
            abort.abort();
        }
    }

    /// Answers with what a handler came to, unless requests are refused by now.
    fn conclude(&self, finished: Finished) {
        match self.peer.refusal() {
            Some(refusal) => self.answer(Reply::error(&finished.id, refusal.error.clone())),
            None => self.answer(finished.reply),
        }
    }

    fn answer(&self, reply: Reply) {
        push_reply(&self.peer, reply);
    }

    fn reply(&self, message: Bytes) {
        self.answer(Reply {
            message,
            after: None,
        });
    }

    fn refuse(&self, id: &RequestId, code: i64, message: String) {
        self.answer(Reply::error(id, ErrorObject::new(code, message)));
    }

    /// Answers a frame that cannot be read, where the other side would understand an answer.
    fn refuse_frame(&self, error: FrameError) -> CloseReason {
        let text = error.to_string();
        let code = match error {
            FrameError::Io(_) => return CloseReason::Failed(text),
            FrameError::Truncated => return CloseReason::EndOfStream,
            FrameError::NotJsonRpc { .. } => return CloseReason::Malformed(text),
            FrameError::TooLarge { .. } => INVALID_REQUEST,
            FrameError::HeaderTooLong
            | FrameError::BadHeader { .. }
            | FrameError::MissingLength
            | FrameError::TooDeep { .. } => PARSE_ERROR,
        };
        self.reply(envelope::error(None, &ErrorObject::new(code, text.clone())));
        CloseReason::Malformed(text)
    }
}

/// Queues an answer, then does what follows it.
fn push_reply(peer: &Peer, reply: Reply) {
    if peer.push(Class::Reply, reply.message).is_err() {
        tracing::debug!(peer = %peer.id(), "an answer came after the connection closed");
        return;
    }
    let Some(after) = reply.after else {
        return;
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(after)) {
        let panic = panic_text(&*panic);
        tracing::error!(peer = %peer.id(), panic, "what follows a reply panicked");
    }
}

/// What the pump wants from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Frame,
    /// No frame, but a caller that vanished must be noticed.
    End,
    Nothing,
}

async fn read<R: AsyncRead + Unpin>(
    reader: &mut FrameReader<R>,
    wanted: Wanted,
) -> Result<Option<Bytes>, FrameError> {
    match wanted {
        Wanted::Frame => {
            // Gives way to other tasks when many frames are already buffered.
            coop::consume_budget().await;
            reader.next().await
        }
        Wanted::End => reader.ended().await.map(|()| None),
        Wanted::Nothing => std::future::pending().await,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
