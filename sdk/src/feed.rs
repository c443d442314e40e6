//! One session's events on their way from the connection to the streams: each exactly once, in
//! order, across connections.
//!
//! The daemon numbers its log but not the events it sends, so the feed keeps a cursor of the log
//! and the ids it has seen since. After a break it reads from the cursor on, leaves out what it
//! has seen, and only then lets through what the new connection brought meanwhile.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};

use loopd_proto::event::session::Idle;
use loopd_proto::event::{Body, Durable, Ephemeral, Event, Head};
use loopd_proto::id::{EventId, RequestId, ToolCallId};
use loopd_proto::permission::PermissionRequest;
use loopd_proto::time::Timestamp;
use ulid::Ulid;

use crate::events::{End, Events, Queue, is_fragment};

/// How many events may come before the cursor is asked for again.
const REFRESH_AFTER: usize = 256;
/// How many events are kept for the first stream.
const OPENING: usize = 1024;

/// What a feed is at.
#[derive(Debug)]
enum Phase {
    Live,
    /// What a new connection brings waits until the past is read.
    Held(Vec<Event>),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// The place in the log up to which everything was seen; `None` is its beginning.
    cursor: Option<String>,
    /// What was seen after the cursor; more does no harm.
    seen: HashSet<EventId>,
    /// What was seen since a newer cursor was asked for.
    fresh: Option<HashSet<EventId>>,
    /// Open questions, which the daemon shows again to whoever joins.
    questions: HashMap<RequestId, Option<ToolCallId>>,
    streams: Vec<Weak<Queue>>,
    /// What happened before anybody listened.
    opening: Option<VecDeque<Event>>,
    /// Whether the last thing heard of the loop is that it rests.
    resting: bool,
    /// How often that was heard.
    rests: u64,
    tip: Option<EventId>,
    end: Option<End>,
}

/// One session's events.
#[derive(Debug)]
pub(crate) struct Feed {
    state: Mutex<State>,
}

impl Feed {
    /// The feed of a session of which nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Live,
                cursor: None,
                seen: HashSet::new(),
                fresh: None,
                questions: HashMap::new(),
                streams: Vec::new(),
                opening: Some(VecDeque::new()),
                resting: false,
                rests: 0,
                tip: None,
                end: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// A stream of what happens from now on; the first one begins with the session's opening.
    pub(crate) fn stream(&self) -> Events {
        let mut state = self.state();
        let opening = state.opening.take().unwrap_or_default();
        state.subscribe(opening)
    }

    /// A stream of what happens from now on and nothing else.
    pub(crate) fn stream_from_here(&self) -> Events {
        self.state().subscribe(VecDeque::new())
    }

    /// Takes an event from the connection; returns what may now be acted upon.
    pub(crate) fn receive(&self, event: Event) -> Vec<Event> {
        let mut state = self.state();
        if let Phase::Held(held) = &mut state.phase {
            // Bounded by the time that one catching up takes.
            held.push(event);
            return Vec::new();
        }
        state.pass(&event);
        vec![event]
    }

    /// Holds back what a new connection brings; returns the cursor to read from.
    pub(crate) fn hold(&self) -> Option<String> {
        let mut state = self.state();
        state.phase = Phase::Held(Vec::new());
        let fresh = state.fresh.take().unwrap_or_default();
        state.seen.extend(fresh);
        state.cursor.clone()
    }

    /// Takes events that were read from the log.
    pub(crate) fn catch_up(&self, events: &[Event]) {
        let mut state = self.state();
        for event in events {
            state.pass(event);
        }
    }

    /// Lets through what was held back; returns it, to be acted upon.
    pub(crate) fn release(&self, cursor: String) -> Vec<Event> {
        let mut state = self.state();
        let Phase::Held(held) = std::mem::replace(&mut state.phase, Phase::Live) else {
            return Vec::new();
        };
        // Fragments before an event that was read already belong to what it tells whole.
        let told = held.iter().rposition(|event| state.knows(event));
        let told = told.map_or(0, |last| last + 1);
        let ids = held.iter().map(|event| event.head.id.clone()).collect();
        for (position, event) in held.iter().enumerate() {
            if position >= told || !is_fragment(event) {
                state.pass(event);
            }
        }
        state.cursor = Some(cursor);
        state.seen = ids;
        held
    }

    /// Tells the streams that the loop rests, when that was said while nobody listened.
    pub(crate) fn rest(&self, now: Timestamp) {
        let mut state = self.state();
        if state.resting {
            return;
        }
        let idle = Idle {
            aborted: Some(true),
            mode: None,
        };
        let event = Event {
            head: Head {
                id: Ulid::generate().into(),
                timestamp: now,
                parent_id: state.tip.clone(),
                agent_id: None,
                ephemeral: Some(true),
            },
            body: Body::Ephemeral(Ephemeral::SessionIdle(idle)),
        };
        state.pass(&event);
    }

    /// How often the loop was heard to rest.
    pub(crate) fn rests(&self) -> u64 {
        self.state().rests
    }

    /// Takes note that the loop was given something to do, unless it has rested since.
    pub(crate) fn stir(&self, rests: u64) {
        let mut state = self.state();
        if state.rests == rests {
            state.resting = false;
        }
    }

    /// Begins to ask for a newer cursor, when it is time.
    pub(crate) fn begin_refresh(&self, when: Refresh) -> bool {
        let mut state = self.state();
        let live = matches!(state.phase, Phase::Live);
        let due = when == Refresh::Now || state.seen.len() >= REFRESH_AFTER;
        if !live || !due || state.fresh.is_some() {
            return false;
        }
        state.fresh = Some(HashSet::new());
        true
    }

    /// Ends that, with the cursor or without.
    pub(crate) fn end_refresh(&self, cursor: Option<String>) {
        let mut state = self.state();
        let Some(fresh) = state.fresh.take() else {
            // The connection broke meanwhile; the cursor may be of a life that is over.
            return;
        };
        match cursor {
            Some(cursor) => {
                state.cursor = Some(cursor);
                state.seen = fresh;
            }
            None => state.seen.extend(fresh),
        }
    }

    /// Ends all streams.
    pub(crate) fn end(&self, end: End) {
        let mut state = self.state();
        for stream in state
            .streams
            .drain(..)
            .filter_map(|stream| stream.upgrade())
        {
            stream.end(end.clone());
        }
        state.end = Some(end);
    }
}

/// When a newer cursor is worth asking for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refresh {
    Now,
    WhenDue,
}

impl State {
    fn subscribe(&mut self, events: VecDeque<Event>) -> Events {
        let queue = Arc::new(Queue::beginning_with(events));
        match &self.end {
            Some(end) => queue.end(end.clone()),
            None => self.streams.push(Arc::downgrade(&queue)),
        }
        Events { queue }
    }

    fn knows(&self, event: &Event) -> bool {
        let id = &event.head.id;
        self.seen.contains(id) || self.fresh.as_ref().is_some_and(|fresh| fresh.contains(id))
    }

    /// Passes an event on, unless it was passed on before.
    fn pass(&mut self, event: &Event) {
        if self.knows(event) || !self.note(event) {
            return;
        }
        if !is_fragment(event) {
            let fresh = self.fresh.as_mut();
            fresh
                .unwrap_or(&mut self.seen)
                .insert(event.head.id.clone());
        }
        self.streams.retain(|stream| match stream.upgrade() {
            Some(stream) => {
                stream.push(event);
                true
            }
            None => false,
        });
        if let Some(opening) = &mut self.opening {
            if opening.len() >= OPENING {
                opening.pop_front();
            }
            opening.push_back(event.clone());
        }
    }

    /// Keeps what has to be known of the session; `false` for a question that was shown before.
    fn note(&mut self, event: &Event) -> bool {
        match &event.body {
            Body::Durable(durable) => {
                // What sub-agents do is in logs of their own, and says nothing of this loop.
                let own = event.head.agent_id.is_none();
                if own {
                    self.tip = Some(event.head.id.clone());
                }
                match durable {
                    Durable::UserMessage(_) | Durable::TurnStart(_) if own => {
                        self.resting = false;
                    }
                    Durable::PermissionRequested(asked) => {
                        let call = call_of(&asked.permission_request).cloned();
                        return self.ask(&asked.request_id, call);
                    }
                    Durable::ExternalToolRequested(asked) => {
                        return self.ask(&asked.request_id, Some(asked.tool_call_id.clone()));
                    }
                    Durable::PermissionCompleted(completed) => {
                        self.questions.remove(&completed.request_id);
                    }
                    Durable::ToolComplete(completed) => {
                        let done = &completed.tool_call_id;
                        self.questions
                            .retain(|_, call| call.as_ref().is_none_or(|call| call != done));
                    }
                    _ => {}
                }
            }
            Body::Ephemeral(Ephemeral::SessionIdle(_)) => {
                self.resting = true;
                self.rests += 1;
            }
            Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
        true
    }

    fn ask(&mut self, request: &RequestId, call: Option<ToolCallId>) -> bool {
        self.questions.insert(request.clone(), call).is_none()
    }
}

fn call_of(request: &PermissionRequest) -> Option<&ToolCallId> {
    match request {
        PermissionRequest::Shell { tool_call_id, .. }
        | PermissionRequest::Write { tool_call_id, .. }
        | PermissionRequest::Read { tool_call_id, .. }
        | PermissionRequest::Url { tool_call_id, .. }
        | PermissionRequest::Mcp { tool_call_id, .. }
        | PermissionRequest::CustomTool { tool_call_id, .. } => tool_call_id.as_ref(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
