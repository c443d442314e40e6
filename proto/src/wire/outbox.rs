//! The one bounded outgoing queue of a connection, and the writer that empties it. Peers push from
//! anywhere, the pump drives the writer. Never blocks a pusher and never reorders: a slow reader
//! first loses deltas, then the connection; waiting replies only stop the reading.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::sync::OnceLock;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::codec::Framing;
use super::{CloseReason, Limits};

/// What the bookkeeping of one queued message costs beside its bytes.
const ITEM_COST: usize = 64;
/// How much the writer takes out of the queue at a time.
const CHUNK: usize = 64 * 1024;
/// A message from this size on is written from where it lies instead of being copied.
const WRITE_DIRECTLY: usize = 16 * 1024;
/// The queue's own memory is given back when a burst is over and left more than this many slots.
const KEPT_SLOTS: usize = 1024;

/// The kind of an outgoing message, which decides what happens when the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The answer to a request: never dropped, stops the reading when too many wait.
    Reply,
    /// A request of ours: never dropped, bounded by the number of unanswered ones.
    Request,
    /// A fact that must not be lost: the connection is cut when too many wait.
    Event,
    /// A fragment that a later event repeats: dropped when events pile up.
    Delta,
}

/// The connection is closed, so that nothing can be sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// Whether the pump may take in another frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    Open,
    /// Too many bytes of replies wait.
    Full,
    Closed,
}

#[derive(Debug)]
struct Item {
    class: Class,
    cost: usize,
    message: Bytes,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Item>,
    reply_bytes: usize,
    request_bytes: usize,
    /// Events and deltas together.
    event_bytes: usize,
    dropped_deltas: u64,
    closed: Option<CloseReason>,
}

impl State {
    fn waiting(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Reply => &mut self.reply_bytes,
            Class::Request => &mut self.request_bytes,
            Class::Event | Class::Delta => &mut self.event_bytes,
        }
    }
}

/// What the writer found in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Some,
    Empty,
    /// Empty, and nothing more will come.
    Ended,
}

/// The queue; it is shared by every clone of a peer and the pump.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    limits: Limits,
    /// Told when the queue is no longer empty, or closed. Only the writer waits for it.
    ready: Notify,
    /// Told when a stopped pump should look again. Only the pump waits for it.
    resume: Notify,
    closed: CancellationToken,
}

impl Outbox {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            state: Mutex::default(),
            limits,
            ready: Notify::new(),
            resume: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues one complete message; a message without bytes is nothing to send.
    pub(super) fn push(&self, class: Class, message: Bytes) -> Result<(), Closed> {
        if message.is_empty() {
            return Ok(());
        }
        let mut state = self.lock();
        if state.closed.is_some() {
            return Err(Closed);
        }
        if class == Class::Delta && state.event_bytes > self.limits.delta_limit {
            state.dropped_deltas += 1;
            return Ok(());
        }
        let cost = self.cost(class, &message);
        let waiting = state.waiting(class);
        *waiting += cost;
        if state.event_bytes > self.limits.event_limit {
            drop(state);
            self.close(CloseReason::TooSlow);
            return Err(Closed);
        }
        let was_empty = state.queue.is_empty();
        state.queue.push_back(Item {
            class,
            cost,
            message,
        });
        drop(state);
        if was_empty {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Counts an event at half the limit at most: one that is larger than the whole limit would
    /// otherwise cut every connection it is sent to, again after each reconnect.
    fn cost(&self, class: Class, message: &Bytes) -> usize {
        let cost = message.len() + ITEM_COST;
        match class {
            Class::Event | Class::Delta => cost.min(self.limits.event_limit / 2),
            Class::Reply | Class::Request => cost,
        }
    }

    /// Closes the queue; the first reason wins, and what waits stays only if it may still be read.
    pub(super) fn close(&self, reason: CloseReason) {
        let mut state = self.lock();
        if state.closed.is_some() {
            return;
        }
        let abandoned = if reason.allows_flush() {
            VecDeque::new()
        } else {
            std::mem::take(&mut state.queue)
        };
        state.closed = Some(reason);
        drop(state);
        drop(abandoned);
        self.closed.cancel();
        self.ready.notify_one();
        self.resume.notify_one();
    }

    /// Throws away what was not written in time.
    pub(super) fn discard(&self) {
        let abandoned = std::mem::take(&mut self.lock().queue);
        if !abandoned.is_empty() {
            tracing::debug!(messages = abandoned.len(), "unwritten messages discarded");
        }
    }

    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.lock().closed.clone()
    }

    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn dropped_deltas(&self) -> u64 {
        self.lock().dropped_deltas
    }

    pub(super) fn intake(&self) -> Intake {
        let state = self.lock();
        if state.closed.is_some() {
            Intake::Closed
        } else if state.reply_bytes > self.limits.reply_limit {
            Intake::Full
        } else {
            Intake::Open
        }
    }

    pub(super) fn requests_full(&self) -> bool {
        self.lock().request_bytes > self.limits.request_limit
    }

    /// Waits for a reason to look at [`Outbox::intake`] again.
    pub(super) async fn resumed(&self) {
        self.resume.notified().await;
    }

    /// Makes a stopped pump look again.
    pub(super) fn resume(&self) {
        self.resume.notify_one();
    }

    /// Moves about one chunk of messages into `batch`. From here on they no longer count as
    /// waiting, so a connection holds at most its limits, one chunk and one message.
    fn take(&self, batch: &mut Vec<Bytes>) -> Taken {
        let mut state = self.lock();
        let were_full = state.reply_bytes > self.limits.reply_limit;
        let mut size = 0;
        while size < CHUNK
            && let Some(item) = state.queue.pop_front()
        {
            let waiting = state.waiting(item.class);
            *waiting = waiting.saturating_sub(item.cost);
            size += item.message.len();
            batch.push(item.message);
        }
        if state.queue.is_empty() && state.queue.capacity() > KEPT_SLOTS {
            state.queue = VecDeque::new();
        }
        let are_full = state.reply_bytes > self.limits.reply_limit;
        let ended = state.closed.is_some();
        drop(state);
        if were_full && !are_full {
            self.resume.notify_one();
        }
        match (batch.is_empty(), ended) {
            (false, _) => Taken::Some,
            (true, false) => Taken::Empty,
            (true, true) => Taken::Ended,
        }
    }
}

/// Writes what is queued until the queue is closed and empty, then shuts the stream down.
pub(super) async fn write_out<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    framing: &OnceLock<Framing>,
    mut stream: W,
) -> io::Result<()> {
    let mut batch = Vec::new();
    loop {
        let taken = outbox.take(&mut batch);
        match taken {
            Taken::Some => {
                let framing = framing.get().copied().unwrap_or(Framing::ContentLength);
                write_batch(&mut batch, framing, &mut stream).await?;
            }
            Taken::Empty => {
                stream.flush().await?;
                outbox.ready.notified().await;
            }
            Taken::Ended => {
                stream.flush().await?;
                return stream.shutdown().await;
            }
        }
    }
}

/// Writes small messages as one piece and large ones from where they lie.
async fn write_batch<W: AsyncWrite + Unpin>(
    batch: &mut Vec<Bytes>,
    framing: Framing,
    stream: &mut W,
) -> io::Result<()> {
    let mut piece = Vec::new();
    for message in batch.drain(..) {
        if message.len() < WRITE_DIRECTLY {
            framing.encode(&message, &mut piece);
            continue;
        }
        let message = framing.adapt(message);
        framing.begin(message.len(), &mut piece);
        if !piece.is_empty() {
            stream.write_all(&piece).await?;
            piece.clear();
        }
        stream.write_all(&message).await?;
        framing.end(&mut piece);
    }
    if !piece.is_empty() {
        stream.write_all(&piece).await?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
