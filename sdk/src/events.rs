//! The stream of a session's events as a caller reads it.
//!
//! A stream holds what its reader has not taken yet, within bounds: fragments of text are dropped
//! first, because a later event repeats them; a reader that leaves too many whole events waiting
//! loses the stream, and is told so.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;
use loopd_proto::event::{Body, Event};
use loopd_proto::id::EventId;

use crate::Error;

/// Fragments are dropped while more than this many events wait.
const FRAGMENT_LIMIT: usize = 8 * 1024;
/// The stream ends when more than this many events wait.
const EVENT_LIMIT: usize = 64 * 1024;

/// What happens in a session from some moment on, across broken connections.
#[derive(Debug)]
pub struct Events {
    pub(crate) queue: Arc<Queue>,
}

impl Events {
    /// The next event; `None` once the stream has ended.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.queue.poll(context)).await
    }

    /// How many events wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.waiting().events.len()
    }

    /// Leaves out what its reader has read elsewhere already; such events wait here by now, because
    /// what was stored was sent before it could be read.
    pub(crate) fn leave_out(&mut self, read: &[Event]) {
        let read: HashSet<&EventId> = read.iter().map(|event| &event.head.id).collect();
        let mut waiting = self.queue.waiting();
        // Fragments before an event that was read belong to what it tells whole.
        let told = waiting
            .events
            .iter()
            .rposition(|event| read.contains(&event.head.id))
            .map_or(0, |last| last + 1);
        let mut position = 0;
        waiting.events.retain(|event| {
            position += 1;
            let stale = position <= told && is_fragment(event);
            !stale && !read.contains(&event.head.id)
        });
    }

    /// Takes what waits now.
    #[cfg(test)]
    pub(crate) fn drain(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.queue.waiting().events)
    }

    /// Why the stream ended, once it has.
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

/// Why a stream ends.
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

/// What waits for one reader.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
}

impl Queue {
    /// A queue that begins with what happened already.
    pub(crate) fn beginning_with(events: VecDeque<Event>) -> Self {
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
        if waiting.end.is_some() || (is_fragment(event) && waiting.events.len() >= FRAGMENT_LIMIT) {
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

/// Whether a later event repeats what this one says.
pub(crate) fn is_fragment(event: &Event) -> bool {
    matches!(&event.body, Body::Ephemeral(event) if event.is_delta())
}
