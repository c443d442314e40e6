//! Clears the conversation of a session. The log keeps it.

use loopd_proto::params::command::Invoked;
use loopd_proto::params::history::{ClearParams, ClearedContext};

use super::builtin::{Call, completed};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::{Answer, ClearOrder, Command};

/// Clears from inside of a tool call.
pub(super) async fn clear(
    context: Context,
    params: ClearParams,
) -> Result<ClearedContext, RpcError> {
    let session = context.session(&params.session_id)?;
    if params.prompt.trim().is_empty() {
        return Err(RpcError::InvalidParams(
            "prompt: it is empty; say what the conversation begins anew with".to_owned(),
        ));
    }
    let order = ClearOrder::InCall {
        prompt: params.prompt,
        sender: context.caller(),
    };
    let messages_cleared = run(&session, order).await?;
    Ok(ClearedContext { messages_cleared })
}

/// The slash command.
pub(super) async fn command(call: Call<'_>) -> Result<Invoked, RpcError> {
    let messages = run(call.session, ClearOrder::AtRest).await?;
    if call.input.is_empty() {
        return Ok(completed(format!(
            "The conversation was cleared: the model reads nothing of {messages} messages any more. The log keeps them, and a \
             rewind brings them back."
        )));
    }
    Ok(Invoked::AgentPrompt {
        prompt: call.input.to_owned(),
        display_prompt: format!("/clear {}", call.input),
        mode: None,
        notice: None,
        run_scope: None,
    })
}

async fn run(session: &SessionHandle, order: ClearOrder) -> Result<u64, RpcError> {
    match session.command(Command::ClearContext(order)).await?.answer {
        Answer::Cleared(messages) => Ok(messages),
        Answer::Done
        | Answer::Message(_)
        | Answer::Accepted(_)
        | Answer::Aborted(_)
        | Answer::Withdrawn { .. }
        | Answer::GuardsLifted(_)
        | Answer::Permissions { .. } => Err(RpcError::Failed(
            "the conversation was not cleared".to_owned(),
        )),
    }
}
