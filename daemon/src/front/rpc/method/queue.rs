//! The queue of a session and the slash commands in it.

use loopd_proto::event::fact::QueueItem;
use loopd_proto::params::queue::{
    EnqueueParams, Enqueued, Pending, PendingItem, Removed, RespondParams,
};
use loopd_proto::params::session::{Of, Success};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};
use loopd_kernel::state::State;

pub(super) async fn pending(context: Context, params: Of) -> Result<Pending, RpcError> {
    let session = context.session(&params.session_id)?;
    let pending = session.state(|state: &State| Pending {
        items: state.queue.iter().map(describe).collect(),
        steering_messages: state
            .steering
            .iter()
            .map(|message| message.prompt.clone())
            .collect(),
    });
    Ok(pending.await?)
}

fn describe(item: &QueueItem) -> PendingItem {
    let interactive = || "interactive".to_owned();
    match item {
        QueueItem::Message(message) => PendingItem {
            id: message.id.clone(),
            kind: "message".to_owned(),
            display_text: message
                .display_prompt
                .clone()
                .unwrap_or_else(|| message.prompt.clone()),
            agent_mode: message.agent_mode.clone().unwrap_or_else(interactive),
        },
        QueueItem::Command(command) => PendingItem {
            id: command.id.clone(),
            kind: "command".to_owned(),
            display_text: command.command.clone(),
            agent_mode: interactive(),
        },
    }
}

pub(super) async fn remove_last(context: Context, params: Of) -> Result<Removed, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session.command(Command::RemoveLastQueued).await?;
    Ok(Removed {
        removed: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn clear(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    session.command(Command::ClearQueue).await?;
    Ok(())
}

pub(super) async fn enqueue_command(
    context: Context,
    params: EnqueueParams,
) -> Result<Enqueued, RpcError> {
    let session = context.session(&params.session_id)?;
    if !params.command.starts_with('/') {
        return Err(RpcError::InvalidParams(
            "command: a slash command begins with `/`".to_owned(),
        ));
    }
    session
        .command(Command::EnqueueCommand(params.command))
        .await?;
    Ok(Enqueued { queued: true })
}

pub(super) async fn respond(context: Context, params: RespondParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::CommandHandled {
            request: params.request_id,
            stop: params.result.handled && params.result.stop_processing_queue,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}
