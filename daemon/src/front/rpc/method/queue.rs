//! The queue of a session and the slash commands in it.

use loopd_proto::event::fact::{PendingMessage, QueueItem, slash_name};
use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::params::queue::{
    EnqueueParams, Enqueued, InsertParams, Inserted, ItemParams, MoveItemParams, Moved, Pending,
    PendingItem, Removed, RespondParams, Steered, UpdateTextParams, Updated, WithdrawParams,
    Withdrawn,
};
use loopd_proto::params::session::{Of, SendMode, SendParams, Success};

use super::commands::AllCommands;
use super::session_send;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{Answer, Command, QueuedLine, Send, SendPlace};
use loopd_kernel::state::State;

/// How many bytes of texts an answer holds before further texts are shortened. As JSON a byte may take
/// six, and the steering messages are in the answer twice; a frame holds 64 MiB.
const ROOM_FOR_TEXTS: usize = 4 * 1024 * 1024;

/// How many characters of a shortened text are left.
const SHORTENED_CHARS: usize = 200;

pub(super) async fn pending(context: Context, params: Of) -> Result<Pending, RpcError> {
    let session = context.session(&params.session_id)?;
    let pending = session.state(|state: &State| Pending {
        items: state.queue.iter().map(describe).collect(),
        steering_messages: Vec::new(),
        steering_items: state.steering.iter().map(describe_message).collect(),
        withdrawable_turn_message_id: state.withdrawable().map(|message| message.id.clone()),
    });
    let mut pending = pending.await?;
    let mut room = ROOM_FOR_TEXTS;
    for item in pending.steering_items.iter_mut().chain(&mut pending.items) {
        shorten(item, &mut room);
    }
    let steering = pending.steering_items.iter();
    pending.steering_messages = steering.map(|item| item.display_text.clone()).collect();
    Ok(pending)
}

/// Leaves only the beginning of a text for which there is no room in the answer.
fn shorten(item: &mut PendingItem, room: &mut usize) {
    if let Some(left) = room.checked_sub(item.display_text.len()) {
        *room = left;
        return;
    }
    let beginning = item.display_text.chars().take(SHORTENED_CHARS);
    let beginning: String = beginning.chain(['…']).collect();
    item.is_shortened = true;
    item.display_text = beginning;
}

/// Returns the text of a message that people see.
fn shown(message: &PendingMessage) -> String {
    let shown = message.display_prompt.as_ref();
    shown.unwrap_or(&message.prompt).clone()
}

fn interactive() -> String {
    "interactive".to_owned()
}

fn describe_message(message: &PendingMessage) -> PendingItem {
    PendingItem {
        id: message.id.clone(),
        message_id: Some(message.id.clone()),
        kind: "message".to_owned(),
        display_text: shown(message),
        is_shortened: false,
        agent_mode: message.agent_mode.clone().unwrap_or_else(interactive),
        source: message.source.clone(),
        sent_by: message.sender.clone(),
    }
}

fn describe(item: &QueueItem) -> PendingItem {
    match item {
        QueueItem::Message(message) => describe_message(message),
        QueueItem::Command(command) => PendingItem {
            id: command.id.clone(),
            message_id: None,
            kind: "command".to_owned(),
            display_text: command.shown().to_owned(),
            is_shortened: false,
            agent_mode: interactive(),
            source: None,
            sent_by: command.sender.clone(),
        },
    }
}

/// Carries out a command; returns whether it changed anything.
async fn changed(context: &Context, of: &SessionId, command: Command) -> Result<bool, RpcError> {
    let done = context.session(of)?.command(command).await?;
    Ok(done.answer == Answer::Accepted(true))
}

pub(super) async fn remove_last(context: Context, params: Of) -> Result<Removed, RpcError> {
    let removed = changed(&context, &params.session_id, Command::RemoveLastQueued).await?;
    Ok(Removed { removed })
}

pub(super) async fn remove(context: Context, params: ItemParams) -> Result<Removed, RpcError> {
    let command = Command::RemoveQueued(params.id);
    let removed = changed(&context, &params.session_id, command).await?;
    Ok(Removed { removed })
}

pub(super) async fn move_item(context: Context, params: MoveItemParams) -> Result<Moved, RpcError> {
    let command = Command::MoveQueued {
        id: params.id,
        to: clamped(params.to_position),
    };
    let changed = changed(&context, &params.session_id, command).await?;
    Ok(Moved { changed })
}

pub(super) async fn update_text(
    context: Context,
    params: UpdateTextParams,
) -> Result<Updated, RpcError> {
    if params.prompt.trim().is_empty() {
        return Err(RpcError::InvalidParams(
            "prompt: it is empty; to take the message out, call session.queue.removeAt".to_owned(),
        ));
    }
    let command = Command::EditQueued {
        id: params.id,
        prompt: params.prompt,
        display_prompt: params.display_prompt,
    };
    let updated = changed(&context, &params.session_id, command).await?;
    Ok(Updated { updated })
}

pub(super) async fn send_now(context: Context, params: ItemParams) -> Result<Steered, RpcError> {
    let command = Command::SteerQueued(params.id);
    let steered = changed(&context, &params.session_id, command).await?;
    Ok(Steered { steered })
}

pub(super) async fn insert(context: Context, params: InsertParams) -> Result<Inserted, RpcError> {
    let session = context.session(&params.session_id)?;
    let message = params.message;
    if message.source.as_deref() == Some("system") {
        return Err(RpcError::InvalidParams(
            "message.source: `system` would hide the message from those who list the queue; leave it out"
                .to_owned(),
        ));
    }
    let send = SendParams {
        session_id: params.session_id,
        prompt: message.prompt,
        message_id: None,
        display_prompt: message.display_prompt,
        attachments: message.attachments,
        mode: SendMode::Enqueue,
        prepend: false,
        agent_mode: message.agent_mode,
        request_headers: message.request_headers,
        source: message.source,
        required_tool: message.required_tool,
        run_scope: None,
        wait: false,
        without_effect: Vec::new(),
    };
    let send = Send {
        place: SendPlace::At(clamped(params.position)),
        ..session_send::message(send, context.caller())?
    };
    let id = session_send::queue(&session, send).await?;
    Ok(Inserted { id })
}

pub(super) async fn withdraw(
    context: Context,
    params: WithdrawParams,
) -> Result<Withdrawn, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session.command(Command::WithdrawMessage {
        id: params.message_id,
        expected: params.expected_prompt,
    });
    let (removed, interrupted) = match done.await?.answer {
        Answer::Withdrawn {
            removed,
            interrupted,
        } => (removed, interrupted),
        Answer::Done
        | Answer::Message(_)
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::GuardsLifted(_)
        | Answer::Cleared(_)
        | Answer::Permissions { .. } => (false, false),
    };
    Ok(Withdrawn {
        removed,
        interrupted,
    })
}

/// Returns a position, or the end of the queue that is nearer to it.
fn clamped(position: i64) -> u32 {
    u32::try_from(position.max(0)).unwrap_or(u32::MAX)
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
    let all = AllCommands::of(&context, &session).await?;
    let name = slash_name(&params.command);
    // No client would run it, and the queue would wait for one.
    if let Some(why) = all.unused_file(name) {
        return Err(RpcError::Failed(why));
    }
    let queued = session.command(Command::EnqueueCommand(QueuedLine {
        runner: all.runner(name),
        command: params.command,
        sender: Some(context.caller()),
        display_text: params.display_text,
    }));
    queued.await?;
    Ok(Enqueued { queued: true })
}

pub(super) async fn respond(context: Context, params: RespondParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let handled = params.result.handled;
    let answer = QueuedAnswer {
        request: params.request_id,
        stop: handled && params.result.stop_processing_queue,
        error: (!handled).then(|| "no client ran it".to_owned()),
    };
    Ok(Success {
        success: answered(&context, &session, answer).await?,
    })
}

/// How a client says that a slash command of the queue ended.
pub(super) struct QueuedAnswer {
    pub(super) request: RequestId,
    pub(super) stop: bool,
    /// Why the command did not run.
    pub(super) error: Option<String>,
}

/// Takes the answer of a client; returns whether it was waited for. A command that was given to one
/// client is answered by that client only.
pub(super) async fn answered(
    context: &Context,
    session: &SessionHandle,
    answer: QueuedAnswer,
) -> Result<bool, RpcError> {
    let given_to = session.view(|view| view.queued_command_of.clone()).await?;
    let client = context.connection.id();
    if given_to.is_some_and(|(request, owner)| request == answer.request && owner != client) {
        return Ok(false);
    }
    let handled = session.command(Command::CommandHandled {
        request: answer.request,
        stop: answer.stop,
        error: answer.error,
    });
    Ok(handled.await?.answer == Answer::Accepted(true))
}
