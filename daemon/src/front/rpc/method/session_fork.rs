//! `sessions.fork`.

use loopd_proto::event::fact::NamedBy;
use loopd_proto::id::{Seq, SessionId};
use loopd_proto::params::session::{ForkParams, Forked};

use super::discover::look;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{hidden_in, state_of};
use crate::tool::capture::Captures;
use loopd_kernel::command::Command;
use loopd_kernel::rewind::counts;

pub(super) async fn fork(context: Context, params: ForkParams) -> Result<Forked, RpcError> {
    let services = &context.app.services;
    let source = params.session_id;
    let Some((record, events)) = services.store.load(&source).await? else {
        return Err(RpcError::Failed(format!(
            "Session {source} not found or has no persisted events"
        )));
    };
    let through = match &params.to_event_id {
        None => events.last().map_or(Seq::START, |event| event.seq),
        // The fork ends before this event, so that what the event began can be done again.
        Some(wanted) => {
            // What a rewind took back is not part of the conversation.
            let hidden = hidden_in(&events);
            let mut counted = events.iter().filter(|it| counts(&hidden, it.seq));
            let at = counted.find(|event| event.id == *wanted);
            let at = at.ok_or_else(|| {
                RpcError::Failed(format!("event {wanted} not found in session {source}"))
            })?;
            Seq(at.seq.0.saturating_sub(1))
        }
    };
    let id: SessionId = services.clock.id().into();
    let now = services.clock.now().0;
    let given = params.name;
    let name = given.clone().or_else(|| record.name.clone());
    let shown = name.clone().or_else(|| record.summary.clone());
    let mut forked = record;
    forked.id = id.clone();
    forked.parent = Some(source.clone());
    forked.created_ms = now;
    forked.modified_ms = now;
    forked.name = name;
    services.store.fork(forked, &source, through).await?;
    // The earlier versions of files are those of the source.
    let folder = services.session_folder(&id);
    look(move || Captures::begin_at(&folder, through.next()))
        .await?
        .map_err(|error| RpcError::Failed(format!("the fork cannot be recorded: {error}")))?;
    // The fork is opened once, so that its log says what is true of it: nothing is in flight,
    // the queue belongs to the source, and a new name is an event and not only in the record.
    let session = context.app.sessions.open_fork(id.clone());
    session.command(Command::ClearQueue).await?;
    let full = state_of(&source, &events)?;
    session.command(Command::NarrowLike(Box::new(full))).await?;
    // Sub-agents go on for the source only: two sessions must not use one sub-agent.
    let agents = session.state(|state| {
        let agents = state.tasks.iter().filter(|task| task.agent().is_some());
        agents.map(|task| task.id.clone()).collect::<Vec<_>>()
    });
    for agent in agents.await? {
        session.command(Command::RemoveTask(agent)).await?;
    }
    if let Some(name) = given {
        let by = NamedBy::User;
        session.command(Command::SetName { name, by }).await?;
    }
    session.stop().await;
    Ok(Forked {
        session_id: id,
        name: shown,
    })
}
