//! Delivers the events of one session to its streams: each exactly once, in order, across
//! reconnects.
//!
//! The daemon numbers its log but not the events it sends. So the feed keeps a cursor into the log
//! and the ids of the events seen since. After a reconnect it reads the log from the cursor, skips
//! the events it has seen, and then delivers the events that the new connection sent meanwhile.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};

use loopd_proto::event::session::Idle;
use loopd_proto::event::{Body, Durable, Ephemeral, Event, Head};
use loopd_proto::id::{EventId, RequestId, ToolCallId};
use loopd_proto::permission::PermissionRequest;
use loopd_proto::time::Timestamp;
use ulid::Ulid;

use crate::events::{End, Events, Queue, is_delta};

/// How many events may come before the cursor is due for a refresh.
const REFRESH_AFTER: usize = 256;
/// The maximum number of events kept for the first stream.
const BACKLOG_LIMIT: usize = 1024;

/// Whether the feed delivers events or holds them back.
#[derive(Debug)]
enum Phase {
    Live,
    /// The events of a new connection wait here until the log has been read.
    Held(Vec<Event>),
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// The position in the log up to which every event was seen; `None` is the beginning.
    cursor: Option<String>,
    /// The events seen after the cursor. Older ones in the set do no harm.
    seen: HashSet<EventId>,
    /// The events seen since the running cursor refresh began; `None` while none is running.
    seen_since_refresh: Option<HashSet<EventId>>,
    /// The open questions. The daemon repeats them to whoever joins.
    questions: HashMap<RequestId, Option<ToolCallId>>,
    streams: Vec<Weak<Queue>>,
    /// The events before the first stream; `None` once that exists.
    backlog: Option<VecDeque<Event>>,
    /// Whether the session was idle according to the last event.
    idle: bool,
    /// How many idle events have come.
    idle_count: u64,
    last_event: Option<EventId>,
    end: Option<End>,
}

/// The events of one session.
#[derive(Debug)]
pub(crate) struct Feed {
    state: Mutex<State>,
}

impl Feed {
    /// Creates the feed of a session that has no events yet.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Live,
                cursor: None,
                seen: HashSet::new(),
                seen_since_refresh: None,
                questions: HashMap::new(),
                streams: Vec::new(),
                backlog: Some(VecDeque::new()),
                idle: false,
                idle_count: 0,
                last_event: None,
                end: None,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Opens a stream of the events from now on. The first stream begins with the backlog.
    pub(crate) fn stream(&self) -> Events {
        let mut state = self.state();
        let backlog = state.backlog.take().unwrap_or_default();
        state.subscribe(backlog)
    }

    /// Opens a stream of the events from now on, without the backlog.
    pub(crate) fn stream_from_here(&self) -> Events {
        self.state().subscribe(VecDeque::new())
    }

    /// Takes an event from the connection; returns the events to dispatch to handlers now.
    pub(crate) fn receive(&self, event: Event) -> Vec<Event> {
        let mut state = self.state();
        if let Phase::Held(held) = &mut state.phase {
            // Bounded by the duration of one catch-up.
            held.push(event);
            return Vec::new();
        }
        state.deliver(&event);
        vec![event]
    }

    /// Holds back the events of a new connection; returns the cursor to read the log from.
    pub(crate) fn hold(&self) -> Option<String> {
        let mut state = self.state();
        state.phase = Phase::Held(Vec::new());
        let seen_since_refresh = state.seen_since_refresh.take().unwrap_or_default();
        state.seen.extend(seen_since_refresh);
        state.cursor.clone()
    }

    /// Delivers events that were read from the log.
    pub(crate) fn catch_up(&self, events: &[Event]) {
        let mut state = self.state();
        for event in events {
            state.deliver(event);
        }
    }

    /// Delivers the events that were held back; returns them for dispatch to handlers.
    pub(crate) fn release(&self, cursor: String) -> Vec<Event> {
        let mut state = self.state();
        let Phase::Held(held) = std::mem::replace(&mut state.phase, Phase::Live) else {
            return Vec::new();
        };
        // Deltas before an event of the log belong to messages that the log has complete.
        let stale_end = held.iter().rposition(|event| state.has_seen(event));
        let stale_end = stale_end.map_or(0, |last| last + 1);
        let ids = held.iter().map(|event| event.head.id.clone()).collect();
        for (position, event) in held.iter().enumerate() {
            if position >= stale_end || !is_delta(event) {
                state.deliver(event);
            }
        }
        state.cursor = Some(cursor);
        state.seen = ids;
        held
    }

    /// Delivers an idle event of our own, if the session became idle while we were disconnected.
    pub(crate) fn publish_idle(&self, now: Timestamp) {
        let mut state = self.state();
        if state.idle {
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
                parent_id: state.last_event.clone(),
                agent_id: None,
                ephemeral: Some(true),
            },
            body: Body::Ephemeral(Ephemeral::SessionIdle(idle)),
        };
        state.deliver(&event);
    }

    /// Returns how many idle events have come.
    pub(crate) fn idle_count(&self) -> u64 {
        self.state().idle_count
    }

    /// Marks the session as busy, unless it became idle after `idle_count` was read.
    pub(crate) fn mark_busy(&self, idle_count: u64) {
        let mut state = self.state();
        if state.idle_count == idle_count {
            state.idle = false;
        }
    }

    /// Begins a cursor refresh; returns `false` if none is due or possible.
    pub(crate) fn begin_refresh(&self, when: Refresh) -> bool {
        let mut state = self.state();
        let live = matches!(state.phase, Phase::Live);
        let due = when == Refresh::Now || state.seen.len() >= REFRESH_AFTER;
        if !live || !due || state.seen_since_refresh.is_some() {
            return false;
        }
        state.seen_since_refresh = Some(HashSet::new());
        true
    }

    /// Ends a cursor refresh, with the new cursor or without one.
    pub(crate) fn end_refresh(&self, cursor: Option<String>) {
        let mut state = self.state();
        let Some(seen_since_refresh) = state.seen_since_refresh.take() else {
            // The connection broke meanwhile: the cursor may be that of an earlier daemon.
            return;
        };
        match cursor {
            Some(cursor) => {
                state.cursor = Some(cursor);
                state.seen = seen_since_refresh;
            }
            None => state.seen.extend(seen_since_refresh),
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

/// When to refresh the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refresh {
    Now,
    WhenDue,
}

impl State {
    fn subscribe(&mut self, events: VecDeque<Event>) -> Events {
        let queue = Arc::new(Queue::starting_with(events));
        match &self.end {
            Some(end) => queue.end(end.clone()),
            None => self.streams.push(Arc::downgrade(&queue)),
        }
        Events { queue }
    }

    fn has_seen(&self, event: &Event) -> bool {
        let id = &event.head.id;
        self.seen.contains(id)
            || self
                .seen_since_refresh
                .as_ref()
                .is_some_and(|seen_since_refresh| seen_since_refresh.contains(id))
    }

    /// Delivers an event to all streams, unless it was delivered before.
    fn deliver(&mut self, event: &Event) {
        if self.has_seen(event) || !self.track(event) {
            return;
        }
        if !is_delta(event) {
            let seen_since_refresh = self.seen_since_refresh.as_mut();
            seen_since_refresh
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
        if let Some(backlog) = &mut self.backlog {
            if backlog.len() >= BACKLOG_LIMIT {
                backlog.pop_front();
            }
            backlog.push_back(event.clone());
        }
    }

    /// Updates what the feed knows of the session; returns `false` for a repeated question.
    fn track(&mut self, event: &Event) -> bool {
        match &event.body {
            Body::Durable(durable) => {
                // The events of sub-agents are in their own logs and do not affect this loop.
                let own = event.head.agent_id.is_none();
                if own {
                    self.last_event = Some(event.head.id.clone());
                }
                match durable {
                    Durable::UserMessage(_) | Durable::TurnStart(_) if own => {
                        self.idle = false;
                    }
                    Durable::PermissionRequested(asked) => {
                        let call = tool_call_of(&asked.permission_request).cloned();
                        return self.open_question(&asked.request_id, call);
                    }
                    Durable::ExternalToolRequested(asked) => {
                        return self
                            .open_question(&asked.request_id, Some(asked.tool_call_id.clone()));
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
                self.idle = true;
                self.idle_count += 1;
            }
            Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
        true
    }

    fn open_question(&mut self, request: &RequestId, call: Option<ToolCallId>) -> bool {
        self.questions.insert(request.clone(), call).is_none()
    }
}

fn tool_call_of(request: &PermissionRequest) -> Option<&ToolCallId> {
    match request {
        PermissionRequest::Shell { tool_call_id, .. }
        | PermissionRequest::Write { tool_call_id, .. }
        | PermissionRequest::Read { tool_call_id, .. }
        | PermissionRequest::Url { tool_call_id, .. }
        | PermissionRequest::Mcp { tool_call_id, .. }
        | PermissionRequest::CustomTool { tool_call_id, .. }
        | PermissionRequest::Hook { tool_call_id, .. } => tool_call_id.as_ref(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
