//! `session.send`, `session.sendAndWait`, `session.abort` and `session.interruptMainTurn`.

use loopd_proto::event::fact::ClientRef;
use loopd_proto::id::{MessageId, Seq, SessionId};
use loopd_proto::params::session::{
    AbortParams, AbortReason, Aborted, Completed, InterruptParams, Interrupted, SendAndWaitParams,
    SendMode, SendParams, Sent, Until,
};
use serde_json::value::RawValue;

use super::session_options;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::session::waits::Response;
use loopd_kernel::command::{
    AbortOutcome, AbortRequest, AbortWaiting, Answer, Command, Send, SendPlace,
};

/// Answers when the message is stored. The turn runs on its own, unless the client waits for its end.
pub(super) async fn send(context: Context, params: SendParams) -> Result<Sent, RpcError> {
    let session = context.session(&params.session_id)?;
    session_options::warn_of_members(&session, &params.without_effect).await;
    let waits = params.wait;
    let message = message(params, context.caller())?;
    if waits {
        let client = context.connection.id();
        let ended = session
            .send_and_wait(message, Until::Answer, client)
            .await?;
        return Ok(Sent {
            message_id: ended.message,
        });
    }
    let message_id = queue(&session, message).await?;
    Ok(Sent { message_id })
}

/// Queues a message and returns its id.
pub(super) async fn queue(session: &SessionHandle, send: Send) -> Result<MessageId, RpcError> {
    match session.command(Command::Send(send)).await?.answer {
        Answer::Message(id) => Ok(id),
        Answer::Done
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::Withdrawn { .. }
        | Answer::GuardsLifted(_)
        | Answer::Cleared(_)
        | Answer::Permissions { .. } => {
            Err(RpcError::Failed("the message was not accepted".to_owned()))
        }
    }
}

/// Answers when the run of the message has ended. Cancelling the request ends only the wait.
pub(super) async fn send_and_wait(
    context: Context,
    params: SendAndWaitParams,
) -> Result<Completed, RpcError> {
    let id = params.send.session_id.clone();
    let session = context.session(&id)?;
    session_options::warn_of_members(&session, &params.send.without_effect).await;
    let client = context.connection.id();
    let waiting = session.send_and_wait(
        message(params.send, context.caller())?,
        params.until,
        client,
    );
    let completion = waiting.await?;
    let response = match completion.response {
        None => None,
        Some(Response::Line(line)) => Some(line),
        Some(Response::Stored(at)) => Some(stored(&context, &id, at).await?),
    };
    let response = response.map(|line| RawValue::from_string(line.to_string()));
    Ok(Completed {
        message_id: completion.message,
        aborted: completion.aborted,
        response: response
            .transpose()
            .map_err(|error| RpcError::Failed(format!("the answer cannot be read: {error}")))?,
        completion_event_id: completion.event,
    })
}

/// Returns the line of a stored event.
async fn stored(
    context: &Context,
    id: &SessionId,
    at: Seq,
) -> Result<std::sync::Arc<str>, RpcError> {
    let before = Seq(at.0.saturating_sub(1));
    let mut events = context.app.services.store.read(id, before, 1).await?;
    let event = events.pop().filter(|event| event.seq == at);
    event
        .map(|event| event.json)
        .ok_or_else(|| RpcError::Failed("the answer is no longer in the session's log".to_owned()))
}

/// The longest id that a client may give a message.
const LONGEST_ID: usize = 256;

/// The modes of an agent in the public schema.
const MODES: [&str; 4] = ["interactive", "plan", "autopilot", "shell"];

/// Whether a message says nothing at all.
fn is_empty(params: &SendParams) -> bool {
    let attached = params.attachments.as_ref();
    params.prompt.trim().is_empty() && attached.is_none_or(Vec::is_empty)
}

/// Builds the message; refuses options that the daemon does not support.
pub(super) fn message(params: SendParams, sender: ClientRef) -> Result<Send, RpcError> {
    let refused = if is_empty(&params) {
        Some("prompt: it is empty, and nothing is attached; say what to do")
    } else if params.required_tool.as_deref().is_some_and(str::is_empty) {
        Some("requiredTool: must not be empty; leave it out to require none")
    } else if params
        .message_id
        .as_ref()
        .is_some_and(|id| id.as_str().is_empty())
    {
        Some("messageId: must not be empty; leave it out to be given one")
    } else if params
        .message_id
        .as_ref()
        .is_some_and(|id| id.as_str().len() > LONGEST_ID)
    {
        Some("messageId: must not be longer than 256 bytes")
    } else {
        None
    };
    if let Some(why) = refused {
        return Err(RpcError::InvalidParams(why.to_owned()));
    }
    if let Some(mode) = params.agent_mode.as_deref()
        && !MODES.contains(&mode)
    {
        let modes = MODES.join(", ");
        return Err(RpcError::InvalidParams(format!(
            "agentMode: {mode} is none of {modes}"
        )));
    }
    Ok(Send {
        id: params.message_id,
        prompt: params.prompt,
        display_prompt: params.display_prompt,
        attachments: params.attachments.unwrap_or_default(),
        agent_mode: params.agent_mode,
        required_tool: params.required_tool,
        request_headers: params.request_headers,
        source: params.source,
        place: match (params.mode, params.prepend) {
            (SendMode::Immediate, _) => SendPlace::Immediate,
            (SendMode::Enqueue, true) => SendPlace::Prepend,
            (SendMode::Enqueue, false) => SendPlace::Enqueue,
        },
        sender: Some(sender),
        scope: params.run_scope,
    })
}

pub(super) async fn abort(context: Context, params: AbortParams) -> Result<Aborted, RpcError> {
    let session = context.session(&params.session_id)?;
    let request = AbortRequest {
        reason: params.reason.unwrap_or_default(),
        by: Some(context.caller()),
        waiting: AbortWaiting::RemoveOwn,
        only: None,
    };
    let outcome = stop(&session, request).await?;
    Ok(Aborted {
        success: true,
        removed_message_ids: outcome.removed,
    })
}

pub(super) async fn interrupt(
    context: Context,
    params: InterruptParams,
) -> Result<Interrupted, RpcError> {
    let session = context.session(&params.session_id)?;
    let request = AbortRequest {
        reason: AbortReason::UserInitiated,
        by: Some(context.caller()),
        waiting: if params.flush_queued {
            AbortWaiting::Keep
        } else {
            AbortWaiting::RemoveOwn
        },
        only: params.only_message_id,
    };
    let outcome = stop(&session, request).await?;
    let (running_message_id, running_by) = outcome.spared.unzip();
    Ok(Interrupted {
        interrupted: outcome.interrupted,
        removed_message_ids: outcome.removed,
        running_message_id,
        running_by: running_by.flatten(),
    })
}

async fn stop(session: &SessionHandle, request: AbortRequest) -> Result<AbortOutcome, RpcError> {
    match session.command(Command::Abort(request)).await?.answer {
        Answer::Aborted(outcome) => Ok(outcome),
        Answer::Done
        | Answer::Message(_)
        | Answer::Accepted(_)
        | Answer::Withdrawn { .. }
        | Answer::GuardsLifted(_)
        | Answer::Cleared(_)
        | Answer::Permissions { .. } => {
            Err(RpcError::Failed("the turn was not stopped".to_owned()))
        }
    }
}
