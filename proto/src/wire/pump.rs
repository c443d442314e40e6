//! Drives one connection in one task: reads frames, polls handlers, writes the outbox. The daemon
//! calls `serve`, clients call `connect`. Spawns no task, knows no method except `$/cancelRequest`,
//! and replies to each request exactly once unless the connection ends first.

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
use super::handler::{Finished, Handler, Load, panic_text, panicked};
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

/// Returns the peer of a stream, and the future that drives the connection.
pub fn connect<S>(
    stream: S,
    service: Arc<dyn Service>,
    limits: Limits,
) -> (Peer, impl Future<Output = CloseReason> + Send + use<S>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let peer = Peer::new(limits.clone());
    // Created before the future is first polled: dropping an unpolled one must close the peer, too.
    let guard = CloseOnDrop(peer.clone());
    (peer, drive(stream, service, limits, guard))
}

/// Closes the peer when the connection is no longer driven.
struct CloseOnDrop(Peer);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close(CloseReason::Abandoned);
        self.0.outbox().discard();
        self.0.fail_calls();
    }
}

async fn drive<S>(
    stream: S,
    service: Arc<dyn Service>,
    limits: Limits,
    guard: CloseOnDrop,
) -> CloseReason
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let peer = &guard.0;
    let flush_time = limits.flush_time;
    let (read, write) = tokio::io::split(stream);
    let mut reader = FrameReader::admitting(read, peer.admission(), limits.depth_limit);
    let framing = reader.framing();
    let mut pump = Pump::new(peer.clone(), service, limits);
    let mut writing = pin!(outbox::write_out(peer.outbox(), &framing, write));
    let mut written = None;
    let reading = async {
        let ended = tokio::select! {
            reason = pump.run(&mut reader) => Some(reason),
            () = peer.refusing() => None,
        };
        let until = pump.refuse_running();
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
    // The connection has ended: no handler is needed any more, and no reply will come.
    drop(pump);
    peer.fail_calls();
    let reason = peer.closed().await;
    // A slow reader that is cut gets its last word, if there is one and it reads again in time.
    let has_last_word = reason == CloseReason::TooSlow && !peer.outbox().is_empty();
    if written.is_none() && (reason.allows_flush() || has_last_word) {
        match tokio::time::timeout(flush_time, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(peer = %peer.id(), %error, "the last flush failed"),
            Err(_) => tracing::debug!(peer = %peer.id(), "the last flush took too long"),
        }
    }
    tracing::debug!(peer = %peer.id(), %reason, "connection closed");
    reason
}

/// The reading side of a connection and its running handlers.
struct Pump {
    peer: Peer,
    service: Arc<dyn Service>,
    limits: Limits,
    running: FuturesUnordered<Handler>,
    aborts: HashMap<RequestId, AbortHandle>,
    /// The frame sizes of all requests in `running` that work.
    held_bytes: usize,
    /// How many requests in `running` only wait for an event.
    waiting: usize,
    /// A request that arrived at the limit. Nothing is read until it has started.
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

    /// Reads frames and replies until the connection ends. Cancel safe.
    async fn run<R: AsyncRead + Unpin>(&mut self, reader: &mut FrameReader<R>) -> CloseReason {
        loop {
            self.release_parked();
            let intake = self.peer.outbox().intake();
            if intake == Intake::Closed {
                return self.peer.closed().await;
            }
            let mode = match (&self.parked, intake) {
                (Some(_), _) => ReadMode::End,
                (None, Intake::Open) => ReadMode::Frame,
                (None, Intake::Full | Intake::Closed) => ReadMode::Nothing,
            };
            // Handlers come first: they are bounded by what was read, so they cannot starve it.
            tokio::select! {
                biased;
                Some(finished) = self.running.next() => {
                    self.aborts.remove(&finished.id);
                    match finished.load {
                        Load::Working { bytes } => {
                            self.held_bytes = self.held_bytes.saturating_sub(bytes);
                        }
                        Load::Waiting => self.waiting = self.waiting.saturating_sub(1),
                    }
                    self.finish(finished);
                }
                () = self.peer.outbox().resumed(), if mode != ReadMode::Frame => {}
                frame = read(reader, mode) => {
                    let accepted = match frame {
                        Ok(Some(frame)) => self.accept_frame(frame),
                        Ok(None) => Err(CloseReason::EndOfStream),
                        Err(error) => self.refuse_frame(error),
                    };
                    if let Err(reason) = accepted {
                        return reason;
                    }
                }
            }
        }
    }

    /// Replies to the running requests with the refusal, if there is one, and returns until when
    /// requests are refused. The other side may have closed its half because it knows of the
    /// refusal; its requests still get a reply.
    fn refuse_running(&mut self) -> Option<RefuseUntil> {
        let refusal = self.peer.refusal()?;
        // Handlers are dropped first: nothing may be done for a request after it was refused.
        self.running.clear();
        (self.held_bytes, self.waiting) = (0, 0);
        let parked = self.parked.take().map(|(request, _)| request.id);
        for id in self.aborts.drain().map(|(id, _)| id).chain(parked) {
            push_reply(&self.peer, Reply::error(&id, refusal.error.clone()));
        }
        Some(refusal.until)
    }

    fn accept_frame(&mut self, frame: Bytes) -> Result<(), CloseReason> {
        let bytes = frame.len();
        let message = envelope::parse(&frame);
        // Freed before a handler runs, so that a large frame is not held twice.
        drop(frame);
        match message {
            Ok(Message::Request(request)) => self.accept_request(request, bytes),
            Ok(Message::Notification(notification)) if notification.method == CANCEL_REQUEST => {
                self.cancel(notification.params.as_deref());
            }
            Ok(Message::Notification(notification)) => self.deliver(notification),
            Ok(Message::Response(response)) => self.peer.resolve(response),
            Err(error) => return self.refuse_message(error.id(), &error.to_object()),
        }
        Ok(())
    }

    /// Replies to a message that is no request. The connection goes on, because it is known where the
    /// next frame begins, unless the other side is a stranger.
    fn refuse_message(
        &self,
        id: Option<&RequestId>,
        error: &ErrorObject,
    ) -> Result<(), CloseReason> {
        self.reply(envelope::error(id, error));
        if self.peer.is_admitted() {
            Ok(())
        } else {
            Err(CloseReason::Malformed(error.message.clone()))
        }
    }

    fn deliver(&self, notification: Notification) {
        let deliver = || self.service.notify(&self.peer, notification);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(deliver)) {
            let panic = panic_text(&*panic);
            tracing::error!(peer = %self.peer.id(), panic, "a notification handler panicked");
        }
    }

    fn accept_request(&mut self, request: Request, bytes: usize) {
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
                self.start(request, Load::Waiting);
            }
        } else if self.is_full() {
            self.parked = Some((request, bytes));
        } else {
            self.start(request, Load::Working { bytes });
        }
    }

    fn is_full(&self) -> bool {
        let working = self.running.len().saturating_sub(self.waiting);
        working > 0
            && (working >= self.limits.incoming_limit
                || self.held_bytes >= self.limits.incoming_bytes_limit)
    }

    /// Starts the parked request when there is room again. It is refused instead while a request of
    /// ours has no reply: the running handlers may wait for just that reply.
    fn release_parked(&mut self) {
        let Some((request, bytes)) = self.parked.take() else {
            return;
        };
        if !self.is_full() {
            self.start(request, Load::Working { bytes });
        } else if self.peer.awaits_answers() {
            let message = "too many requests are under way; try again later".to_owned();
            self.refuse(&request.id, OVERLOADED, message);
        } else {
            self.parked = Some((request, bytes));
        }
    }

    fn start(&mut self, request: Request, load: Load) {
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
        let (mut handler, abort) = Handler::new(id.clone(), method, load, future);
        // Unconstrained: without budget, a send into a mailbox would yield before it has queued its
        // message, and a later request could overtake it.
        if let Some(finished) = coop::unconstrained(&mut handler).now_or_never() {
            self.finish(finished);
        } else {
            self.aborts.insert(id, abort);
            match load {
                Load::Working { bytes } => self.held_bytes += bytes,
                Load::Waiting => self.waiting += 1,
            }
            self.running.push(handler);
        }
    }

    fn cancel(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct IncomingCancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let id = params
            .and_then(|params| serde_json::from_str::<IncomingCancel<'_>>(params.get()).ok())
            .and_then(|cancel| RequestId::from_raw(cancel.id));
        // An unknown id is normal: the reply and the cancel may cross on the wire.
        if let Some(abort) = id.and_then(|id| self.aborts.get(&id)) {
            abort.abort();
        }
    }

    /// Sends the reply of a handler, or the refusal if requests are refused by now.
    fn finish(&self, finished: Finished) {
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

    /// Replies to a frame that cannot be read, if the other side would understand a reply. The
    /// connection ends if it is unknown where the next frame begins.
    fn refuse_frame(&self, error: FrameError) -> Result<(), CloseReason> {
        let text = error.to_string();
        let code = match &error {
            FrameError::Io(_) => return Err(CloseReason::Failed(text)),
            FrameError::Truncated => return Err(CloseReason::EndOfStream),
            FrameError::NotJsonRpc { .. } => return Err(CloseReason::Malformed(text)),
            // Its id is one of our numbers: a reply would be taken for that of another request.
            FrameError::Skipped { head, .. } | FrameError::TooDeep { head, .. }
                if head.is_response && self.peer.is_admitted() =>
            {
                self.peer.answer_unread(head.id.as_ref(), text);
                return Ok(());
            }
            FrameError::Skipped { head, .. } => {
                let error = ErrorObject::new(INVALID_REQUEST, text);
                return self.refuse_message(head.id.as_ref(), &error);
            }
            FrameError::TooDeep { head, .. } => {
                let error = ErrorObject::new(PARSE_ERROR, text);
                return self.refuse_message(head.id.as_ref(), &error);
            }
            FrameError::TooLarge { .. } => INVALID_REQUEST,
            FrameError::HeaderTooLong
            | FrameError::BadHeader { .. }
            | FrameError::MissingLength => PARSE_ERROR,
        };
        self.reply(envelope::error(None, &ErrorObject::new(code, text.clone())));
        Err(CloseReason::Malformed(text))
    }
}

/// Queues a reply, then runs the action that follows it.
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

/// What the pump reads from the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMode {
    Frame,
    /// No frame, only the end of the stream, so that a lost client is noticed.
    End,
    Nothing,
}

async fn read<R: AsyncRead + Unpin>(
    reader: &mut FrameReader<R>,
    mode: ReadMode,
) -> Result<Option<Bytes>, FrameError> {
    match mode {
        ReadMode::Frame => {
            // Gives way to other tasks when many frames are already buffered.
            coop::consume_budget().await;
            reader.next().await
        }
        ReadMode::End => reader.ended().await.map(|()| None),
        ReadMode::Nothing => std::future::pending().await,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
