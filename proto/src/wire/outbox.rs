//! The one bounded outgoing queue of a connection, and the writer that empties it. Any task may
//! push; the pump drives the writer. A push never blocks, and messages keep their order. A slow
//! reader first loses deltas, then the connection; queued replies only stop the reading. The last
//! message before such a cut says from where on the reader has missed events.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::codec::Framing;
use super::{CloseReason, Limits};

/// The cost of a queued message in addition to its bytes.
const ITEM_COST: usize = 64;
/// How many bytes the writer takes out of the queue at a time.
const CHUNK: usize = 64 * 1024;
/// Messages of at least this size are written directly instead of being copied.
const WRITE_DIRECTLY: usize = 16 * 1024;
/// An empty queue with more slots than this is freed, so that a burst does not keep its memory.
const KEPT_SLOTS: usize = 1024;

/// The kind of an outgoing message, which decides what happens when the reader is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The reply to a request: never dropped; reading stops when too many wait.
    Reply,
    /// A request of ours: never dropped, bounded by the number of unanswered ones.
    Request,
    /// An event that must not be lost: the connection is closed when too many wait.
    Event,
    /// A part of a text that a later event repeats: dropped when too many events wait.
    Delta,
}

/// The place of an event in the log that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlace {
    pub log: Arc<str>,
    pub position: u64,
}

/// Makes the last message for a slow reader from the first place that it missed in each log.
pub type LastWord = fn(missed: &BTreeMap<Arc<str>, u64>) -> Bytes;

/// The connection is closed; nothing can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// Whether the pump may read another frame.
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
    place: Option<LogPlace>,
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

/// What the writer took out of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchState {
    Filled,
    Empty,
    /// Empty, and nothing more will come.
    Ended,
}

/// The outgoing queue, shared by all clones of a peer and the pump.
#[derive(Debug)]
pub(super) struct Outbox {
    state: Mutex<State>,
    limits: Limits,
    /// Notified when the queue is closed or no longer empty. Only the writer waits for it.
    ready: Notify,
    /// Notified when a stopped pump should check [`Outbox::intake`] again. Only the pump waits.
    resume: Notify,
    closed: CancellationToken,
    last_word: OnceLock<LastWord>,
}

impl Outbox {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            state: Mutex::default(),
            limits,
            ready: Notify::new(),
            resume: Notify::new(),
            closed: CancellationToken::new(),
            last_word: OnceLock::new(),
        }
    }

    /// Sets what a slow reader is told before it is cut. The first call wins.
    pub(super) fn set_last_word(&self, last_word: LastWord) {
        self.last_word.get_or_init(|| last_word);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues one complete message. An empty message is not sent.
    pub(super) fn push(&self, class: Class, message: Bytes) -> Result<(), Closed> {
        self.push_from(class, message, None)
    }

    /// Queues one complete message that comes from a place in a log.
    pub(super) fn push_from(
        &self,
        class: Class,
        message: Bytes,
        place: Option<LogPlace>,
    ) -> Result<(), Closed> {
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
        let was_empty = state.queue.is_empty();
        state.queue.push_back(Item {
            class,
            cost,
            message,
            place,
        });
        if state.event_bytes > self.limits.event_limit {
            let missed = std::mem::take(&mut state.queue);
            state.queue.extend(self.last_word(&missed));
            state.closed = Some(CloseReason::TooSlow);
            drop(state);
            drop(missed);
            self.wake_all();
            return Err(Closed);
        }
        drop(state);
        if was_empty {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Returns the last message for a reader that never gets these.
    fn last_word(&self, missed: &VecDeque<Item>) -> Option<Item> {
        let last_word = self.last_word.get()?;
        let mut first = BTreeMap::new();
        for place in missed.iter().filter_map(|item| item.place.as_ref()) {
            first.entry(place.log.clone()).or_insert(place.position);
        }
        let message = last_word(&first);
        (!message.is_empty()).then_some(Item {
            class: Class::Event,
            cost: 0,
            message,
            place: None,
        })
    }

    /// Returns the cost of a message. An event counts at most half the limit: one that is larger than
    /// the limit would otherwise close every connection, again after each reconnect.
    fn cost(&self, class: Class, message: &Bytes) -> usize {
        let cost = message.len() + ITEM_COST;
        match class {
            Class::Event | Class::Delta => cost.min(self.limits.event_limit / 2),
            Class::Reply | Class::Request => cost,
        }
    }

    /// Closes the queue. The first reason is kept; queued messages stay only if the reason allows a
    /// flush.
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
        self.wake_all();
    }

    /// Lets everybody who waits see that the queue is closed.
    fn wake_all(&self) {
        self.closed.cancel();
        self.ready.notify_one();
        self.resume.notify_one();
    }

    /// Discards the messages that were not written in time.
    pub(super) fn discard(&self) {
        let abandoned = std::mem::take(&mut self.lock().queue);
        if !abandoned.is_empty() {
            tracing::debug!(messages = abandoned.len(), "unwritten messages discarded");
        }
    }

    /// Returns whether messages still have to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().queue.is_empty()
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

    /// Waits for a reason to check [`Outbox::intake`] again.
    pub(super) async fn resumed(&self) {
        self.resume.notified().await;
    }

    /// Makes a stopped pump check [`Outbox::intake`] again.
    pub(super) fn resume(&self) {
        self.resume.notify_one();
    }

    /// Moves about one chunk of messages into `batch`. From here on they no longer count as
    /// waiting, so a connection holds at most its limits, one chunk and one message.
    fn take(&self, batch: &mut Vec<Bytes>) -> BatchState {
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
            (false, _) => BatchState::Filled,
            (true, false) => BatchState::Empty,
            (true, true) => BatchState::Ended,
        }
    }
}

/// Writes queued messages until the queue is closed and empty, then shuts the stream down.
pub(super) async fn write_out<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    framing: &OnceLock<Framing>,
    mut stream: W,
) -> io::Result<()> {
    let mut batch = Vec::new();
    loop {
        let state = outbox.take(&mut batch);
        match state {
            BatchState::Filled => {
                let framing = framing.get().copied().unwrap_or(Framing::ContentLength);
                write_batch(&mut batch, framing, &mut stream).await?;
            }
            BatchState::Empty => {
                stream.flush().await?;
                outbox.ready.notified().await;
            }
            BatchState::Ended => {
                stream.flush().await?;
                return stream.shutdown().await;
            }
        }
    }
}

/// Writes small messages together in one piece and large ones directly.
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
