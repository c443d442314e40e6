//! `session.send` and `session.abort`.

use loopd_proto::params::session::{Of, SendMode, SendParams, Sent, Success};

use crate::kernel::command::{Answer, Command, Send, SendPlace};
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;

/// Answers when the message is stored; the turn runs on its own.
pub(super) async fn send(context: Context, params: SendParams) -> Result<Sent, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::Send(Send {
            id: params.message_id,
            prompt: params.prompt,
            display_prompt: params.display_prompt,
            attachments: params.attachments.unwrap_or_default(),
            agent_mode: params.agent_mode,
            request_headers: params.request_headers,
            source: params.source,
            place: match (params.mode, params.prepend) {
                (SendMode::Immediate, _) => SendPlace::Immediate,
                (SendMode::Enqueue, true) => SendPlace::Prepend,
                (SendMode::Enqueue, false) => SendPlace::Enqueue,
            },
        }))
        .await?;
    match done.answer {
        Answer::Message(message_id) => Ok(Sent { message_id }),
        Answer::Done | Answer::Accepted(_) => {
            Err(RpcError::Failed("the message was not accepted".to_owned()))
        }
    }
}

pub(super) async fn abort(context: Context, params: Of) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    session.command(Command::Abort).await?;
    Ok(Success::YES)
}
