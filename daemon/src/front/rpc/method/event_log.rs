//! Reads a session's events: all stored ones, or those after a cursor.
//!
//! A cursor is `seq.epoch.tick`. `seq` is the position in the log. For a live session, `epoch`
//! names the current run of its actor, and `tick` counts everything that was published in it. A
//! cursor from another run is still valid by its `seq`.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::Seq;
use loopd_proto::params::event_log::{
    CursorStatus, Events, Interest, InterestParams, ReadParams, ReadResult, ReleaseParams, Tail,
};
use loopd_proto::params::session::{Of, Success};
use loopd_store::{StoredEvent, Visibility};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::session::view::View;
use loopd_kernel::rewind::{HiddenRange, counts};

/// The most events in one answer, and the longest wait.
const MAX_EVENTS: usize = 1_000;
const MAX_WAIT: Duration = Duration::from_secs(60);

pub(super) async fn messages(context: Context, params: Of) -> Result<Events, RpcError> {
    let session = context.session(&params.session_id)?;
    // When this view is answered, everything decided before this request is committed.
    let look = session.state(|state| (state.seq, state.rewinds.hidden()));
    let (last, hidden) = look.await?;
    let stored = context
        .app
        .services
        .store
        .read(&params.session_id, Seq::START, usize::MAX)
        .await?;
    let counted = |event: &StoredEvent| event.seq <= last && counts(&hidden, event.seq);
    let events = stored.into_iter().filter(counted);
    Ok(Events {
        events: events.filter_map(|event| public(&event)).collect(),
    })
}

fn public(event: &StoredEvent) -> Option<Box<RawValue>> {
    (event.visible == Visibility::Public)
        .then(|| raw(&event.json))
        .flatten()
}

fn raw(line: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(line.to_owned()).ok()
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    seq: Seq,
    epoch: u64,
    tick: u64,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (seq, rest) = text.split_once('.')?;
        let (epoch, tick) = rest.split_once('.')?;
        Some(Self {
            seq: Seq(seq.parse().ok()?),
            epoch: u64::from_str_radix(epoch, 16).ok()?,
            tick: tick.parse().ok()?,
        })
    }

    pub(super) fn here(view: &View<'_>) -> Self {
        Self {
            seq: view.state.seq,
            epoch: view.recent.epoch(),
            tick: view.recent.tick(),
        }
    }

    /// Returns a cursor for a position in the log alone, without a run of the session.
    fn stored(seq: Seq) -> Self {
        Self {
            seq,
            epoch: 0,
            tick: 0,
        }
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:x}.{}", self.seq.0, self.epoch, self.tick)
    }
}

/// What a live session has published after a cursor.
struct Look {
    /// `None` if the events have to be read from the store.
    recent: Option<Vec<(Cursor, &'static str, Arc<str>)>>,
    ticks: watch::Receiver<u64>,
    here: Cursor,
    /// What rewinds took back.
    hidden: Vec<HiddenRange>,
}

pub(super) async fn read(context: Context, params: ReadParams) -> Result<ReadResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let max = params.max.unwrap_or(100).clamp(1, MAX_EVENTS);
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(MAX_WAIT);
    let mut cursor = match params.cursor.as_deref() {
        None => Cursor::stored(Seq::START),
        Some(text) => Cursor::parse(text).ok_or_else(|| {
            RpcError::InvalidParams("cursor: not a cursor of this session's event log".to_owned())
        })?,
    };
    let wants = |kind: &str| {
        params
            .types
            .as_ref()
            .is_none_or(|types| types.contains(kind))
    };
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let mut look = look(&session, cursor).await?;
        let result = match look.recent.take() {
            Some(recent) => from_recent(recent, cursor, max, &wants),
            None => from_store(&context, &params, cursor, &look, max, &wants).await?,
        };
        if !result.events.is_empty() || result.has_more || wait.is_zero() {
            return Ok(result);
        }
        cursor = Cursor::parse(&result.cursor).unwrap_or(cursor);
        if tokio::time::timeout_at(deadline, look.ticks.changed())
            .await
            .is_err()
        {
            return Ok(result);
        }
    }
}

async fn look(session: &SessionHandle, cursor: Cursor) -> Result<Look, RpcError> {
    let look = session.view(move |view| {
        let here = Cursor::here(view);
        let known = cursor.epoch == here.epoch && cursor.tick <= here.tick;
        let recent = known
            .then(|| view.recent.after(cursor.tick))
            .flatten()
            .map(|events| {
                events
                    .map(|event| {
                        let at = Cursor {
                            seq: event.seq,
                            epoch: here.epoch,
                            tick: event.tick,
                        };
                        (at, event.kind, event.line.clone())
                    })
                    .collect()
            });
        Look {
            recent,
            ticks: view.ticks.subscribe(),
            here,
            hidden: view.state.rewinds.hidden(),
        }
    });
    Ok(look.await?)
}

fn from_recent(
    recent: Vec<(Cursor, &'static str, Arc<str>)>,
    from: Cursor,
    max: usize,
    wants: &impl Fn(&str) -> bool,
) -> ReadResult {
    let mut cursor = from;
    let mut events = Vec::new();
    let mut has_more = false;
    for (at, kind, line) in recent {
        if wants(kind) {
            if events.len() == max {
                has_more = true;
                break;
            }
            events.extend(raw(&line));
        }
        cursor = at;
    }
    ReadResult {
        events,
        cursor: cursor.to_string(),
        has_more,
        cursor_status: CursorStatus::Ok,
    }
}

/// Reads from the store, which holds durable events only. A client that follows the session gets
/// ephemeral events, too, from here on.
async fn from_store(
    context: &Context,
    params: &ReadParams,
    cursor: Cursor,
    look: &Look,
    max: usize,
    wants: &impl Fn(&str) -> bool,
) -> Result<ReadResult, RpcError> {
    let here = look.here;
    let store = &context.app.services.store;
    let mut after = cursor.seq;
    let mut events = Vec::new();
    loop {
        let page = store.read(&params.session_id, after, MAX_EVENTS).await?;
        let ended = page.len() < MAX_EVENTS;
        for event in page {
            let is_public = event.visible == Visibility::Public;
            if is_public && counts(&look.hidden, event.seq) && wants(&event.kind) {
                if events.len() == max {
                    return Ok(ReadResult {
                        events,
                        cursor: Cursor::stored(after).to_string(),
                        has_more: true,
                        cursor_status: CursorStatus::Ok,
                    });
                }
                events.extend(raw(&event.json));
            }
            after = event.seq;
        }
        if ended {
            break;
        }
    }
    let caught_up = after <= here.seq;
    Ok(ReadResult {
        events,
        cursor: if caught_up {
            here
        } else {
            Cursor::stored(after)
        }
        .to_string(),
        has_more: false,
        cursor_status: CursorStatus::Ok,
    })
}

pub(super) async fn tail(context: Context, params: Of) -> Result<Tail, RpcError> {
    let session = context.session(&params.session_id)?;
    let cursor = session.view(|view| Cursor::here(view).to_string()).await?;
    Ok(Tail { cursor })
}

/// The event whose readers provide tokens for MCP servers.
const TOKEN_EVENT: &str = "mcp.oauth_required";

/// Registers an interest in events. Every attached connection gets every event anyway, so an
/// interest is only a name that the client can release. A client that is interested in MCP servers that
/// want a token is asked for tokens.
pub(super) async fn register(
    context: Context,
    params: InterestParams,
) -> Result<Interest, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = loopd_proto::id::as_uuid(context.app.services.clock.id());
    let handle = format!("{}:{id}", params.event_type);
    if params.event_type == TOKEN_EVENT {
        let client = context.connection.id();
        session.provide_tokens(client, handle.clone()).await?;
    }
    Ok(Interest { handle })
}

pub(super) async fn release(context: Context, params: ReleaseParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    if params.handle.starts_with(TOKEN_EVENT) {
        session.provide_no_tokens(params.handle).await?;
    }
    Ok(Success::YES)
}
