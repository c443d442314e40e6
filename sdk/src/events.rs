//! The stream of a session's events, as a caller reads it.
//!
//! A stream buffers unread events, within bounds. It drops text deltas first, because a later event
//! repeats them. If too many other events wait, the stream ends with [`Error::TooSlow`].

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use loopd_proto::event::{Body, Event};
use loopd_proto::id::EventId;

use crate::Error;

/// Deltas are dropped while this many events wait.
const DELTA_LIMIT: usize = 8 * 1024;
/// The stream ends when an event comes while this many wait.
const EVENT_LIMIT: usize = 64 * 1024;

/// A stream of a session's events that survives reconnects.
#[derive(Debug)]
pub struct Events {
    pub(crate) queue: Arc<Queue>,
}

impl Events {
    /// Returns the next event; `None` once the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.queue.poll(context)).await
    }

    /// Returns the number of waiting events.
    pub fn waiting(&self) -> usize {
        self.queue.waiting().events.len()
    }

    /// Removes the waiting events that the reader has already read from the log. All of them are
    /// waiting by now, because the daemon sends a stored event before the log shows it.
    pub(crate) fn skip_read(&mut self, read: &[Event]) {
        let read: HashSet<&EventId> = read.iter().map(|event| &event.head.id).collect();
        let mut waiting = self.queue.waiting();
        // Deltas before an event of the log belong to messages that the log has complete.
        let stale_end = waiting
            .events
            .iter()
            .rposition(|event| read.contains(&event.head.id))
            .map_or(0, |last| last + 1);
        let mut position = 0;
        waiting.events.retain(|event| {
            position += 1;
            let stale = position <= stale_end && is_delta(event);
            !stale && !read.contains(&event.head.id)
        });
    }

    /// Takes all waiting events.
    #[cfg(test)]
    pub(crate) fn drain(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.queue.waiting().events)
    }

    /// Returns why the stream ended; `None` while it goes on.
    pub fn end(&self) -> Option<Error> {
        self.queue.waiting().end.as_ref().map(|end| match end {
            End::TooSlow => Error::TooSlow,
            End::Lost(why) => Error::Lost(why.clone()),
        })
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.queue.poll(context)
    }
}

/// The reason why a stream ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    TooSlow,
    Lost(String),
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    reader: Option<Waker>,
    end: Option<End>,
}

/// The events that wait for one reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
}

impl Queue {
    /// Creates a queue that already holds these events.
    pub(crate) fn starting_with(events: VecDeque<Event>) -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                events,
                ..Waiting::default()
            }),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    pub(crate) fn push(&self, event: &Event) {
        let mut waiting = self.waiting();
        if waiting.end.is_some() || (is_delta(event) && waiting.events.len() >= DELTA_LIMIT) {
            return;
        }
        if waiting.events.len() >= EVENT_LIMIT {
            waiting.end = Some(End::TooSlow);
        } else {
            waiting.events.push_back(event.clone());
        }
        wake(waiting);
    }

    pub(crate) fn end(&self, end: End) {
        let mut waiting = self.waiting();
        waiting.end.get_or_insert(end);
        wake(waiting);
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut waiting = self.waiting();
        if let Some(event) = waiting.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if waiting.end.is_some() {
            return Poll::Ready(None);
        }
        waiting.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

fn wake(mut waiting: MutexGuard<'_, Waiting>) {
    let reader = waiting.reader.take();
    drop(waiting);
    if let Some(reader) = reader {
        reader.wake();
    }
}

/// Returns whether this is a delta, whose text a later event repeats.
pub(crate) fn is_delta(event: &Event) -> bool {
    matches!(&event.body, Body::Ephemeral(event) if event.is_delta())
}
