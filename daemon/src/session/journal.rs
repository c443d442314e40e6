//! Turns decided steps into stored, applied and published events.

use std::sync::Arc;

use loopd_proto::event::{self, Durable, Ephemeral, Head, Visibility};
use loopd_proto::id::{AgentId, EventId, Seq};
use loopd_store::StoredEvent;

use crate::client::Class;
use loopd_exec::clock::Clock;
use loopd_kernel::apply::apply;
use loopd_kernel::state::State;

/// An event that is ready to be published.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) id: EventId,
    pub(super) seq: Seq,
    pub(super) durable: bool,
    pub(super) visible: bool,
    pub(super) class: Class,
    pub(super) kind: &'static str,
    pub(super) line: Arc<str>,
}

/// Writes a durable event as a log line and applies it to the state.
///
/// The state is ahead of the disk by one transaction. The actor publishes none of its events before
/// the commit, and goes back to the stored state if the commit fails.
pub(super) fn record(
    state: &mut State,
    clock: &Clock,
    event: &Durable,
) -> Result<(StoredEvent, Outgoing), serde_json::Error> {
    let head = Head {
        id: clock.id().into(),
        timestamp: clock.now(),
        parent_id: state.tip.clone(),
        agent_id: agent(state, event),
        ephemeral: None,
    };
    let line: Arc<str> = event::write(&head, event)?.into();
    apply(state, &head, event);
    let visible = event.visibility();
    let stored = StoredEvent {
        seq: state.seq,
        id: head.id.clone(),
        kind: event.kind().into(),
        visible,
        json: line.clone(),
    };
    let outgoing = Outgoing {
        id: head.id,
        seq: state.seq,
        durable: true,
        visible: visible == Visibility::Public,
        class: Class::Event,
        kind: event.kind(),
        line,
    };
    Ok((stored, outgoing))
}

/// Returns the sub-agent that an event is about. The start and the end of a sub-agent are about
/// that sub-agent; every other event is about the owner of this session.
fn agent(state: &State, event: &Durable) -> Option<AgentId> {
    let call = match event {
        Durable::SubagentStarted(started) => &started.tool_call_id,
        Durable::SubagentCompleted(completed) => &completed.tool_call_id,
        Durable::SubagentFailed(failed) => &failed.tool_call_id,
        _ => return state.subagent.as_ref().map(|own| own.agent_id()),
    };
    let task = state.tasks.by_call(call);
    let task = task.or_else(|| state.tasks.get(call.as_str()));
    task.map(|task| AgentId::new(task.id.as_str()))
}

/// Writes an ephemeral event as a line.
pub(super) fn pass(
    state: &State,
    clock: &Clock,
    event: &Ephemeral,
) -> Result<Outgoing, serde_json::Error> {
    let head = Head {
        id: clock.id().into(),
        timestamp: clock.now(),
        parent_id: state.tip.clone(),
        agent_id: state.subagent.as_ref().map(|own| own.agent_id()),
        ephemeral: Some(true),
    };
    let line: Arc<str> = event::write(&head, event)?.into();
    Ok(Outgoing {
        id: head.id,
        seq: state.seq,
        durable: false,
        visible: true,
        class: if event.is_delta() {
            Class::Delta
        } else {
            Class::Event
        },
        kind: event.kind(),
        line,
    })
}
