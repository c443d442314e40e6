//! Compacts the conversation of a session, or stops that.

use loopd_proto::event::compaction::{CompactionComplete, CompactionTrigger};
use loopd_proto::id::Seq;
use loopd_proto::params::command::Invoked;
use loopd_proto::params::history::{
    CompactParams, Compacted, CompactedWindow, CompactionAborted, CompactionCancelled,
};
use loopd_proto::params::session::Of;

use super::builtin::{Call, text};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{SessionError, SessionHandle};
use loopd_kernel::command::{Answer, Command, CompactOrder, StoppedCompactions};
use loopd_kernel::context;
use loopd_kernel::state::State;

/// The longest instructions for a summary, in characters.
const LONGEST_INSTRUCTIONS: usize = 10_000;

pub(super) async fn compact(
    context: Context,
    params: CompactParams,
) -> Result<Compacted, RpcError> {
    match params.trigger {
        None | Some(CompactionTrigger::Manual) => {}
        Some(CompactionTrigger::Threshold | CompactionTrigger::ContextLimitRetry) => {
            return Err(RpcError::InvalidParams(
                "trigger: only `manual` can be asked for; the others begin by themselves"
                    .to_owned(),
            ));
        }
    }
    let session = context.session(&params.session_id)?;
    let complete = run(&session, params.custom_instructions).await?;
    let services = context.app.services.clone();
    let window = session.view(move |view| {
        let account = view.account(&services, None)?;
        Some(CompactedWindow {
            token_limit: account.window.limit,
            current_tokens: account.size.total(),
            messages_length: context::messages(view.state).len() as u64,
            system_tokens: account.size.system,
            conversation_tokens: account.size.conversation,
            tool_definitions_tokens: account.size.tools,
        })
    });
    Ok(Compacted {
        success: complete.success,
        tokens_removed: complete.tokens_removed.unwrap_or(0),
        messages_removed: complete.messages_removed.unwrap_or(0),
        summary_content: complete.summary_content,
        error: complete.error,
        context_window: window.await?,
    })
}

/// Compacts the conversation and waits for the end of that, however it ends. A caller that stops waiting
/// does not stop it.
async fn run(
    session: &SessionHandle,
    instructions: Option<String>,
) -> Result<CompactionComplete, RpcError> {
    let length = instructions.as_deref().map_or(0, str::len);
    if length > LONGEST_INSTRUCTIONS {
        return Err(RpcError::InvalidParams(format!(
            "customInstructions: {length} bytes are too many; up to {LONGEST_INSTRUCTIONS} are taken"
        )));
    }
    let (before, mut ticks) = session
        .view(|view| (ended(view.state), view.ticks.subscribe()))
        .await?;
    let order = CompactOrder { instructions };
    session.command(Command::Compact(order)).await?;
    loop {
        ticks.borrow_and_update();
        let last = session.state(|state| state.compaction.last.clone()).await?;
        if let Some(last) = last
            && Some(last.at) != before
        {
            return Ok(last.complete);
        }
        if ticks.changed().await.is_err() {
            return Err(SessionError::Ended(session.id().clone()).into());
        }
    }
}

fn ended(state: &State) -> Option<Seq> {
    state.compaction.last.as_ref().map(|last| last.at)
}

pub(super) async fn cancel(context: Context, params: Of) -> Result<CompactionCancelled, RpcError> {
    let session = context.session(&params.session_id)?;
    let cancelled = stop(&session, StoppedCompactions::Automatic).await?;
    Ok(CompactionCancelled { cancelled })
}

pub(super) async fn abort(context: Context, params: Of) -> Result<CompactionAborted, RpcError> {
    let session = context.session(&params.session_id)?;
    let aborted = stop(&session, StoppedCompactions::Manual).await?;
    Ok(CompactionAborted { aborted })
}

async fn stop(session: &SessionHandle, which: StoppedCompactions) -> Result<bool, RpcError> {
    let done = session.command(Command::StopCompaction(which)).await?;
    Ok(done.answer == Answer::Accepted(true))
}

/// The slash command.
pub(super) async fn command(call: Call<'_>) -> Result<Invoked, RpcError> {
    let instructions = (!call.input.is_empty()).then(|| call.input.to_owned());
    let complete = run(call.session, instructions).await?;
    match complete.error {
        None => {
            let (before, after) = (
                complete.pre_compaction_tokens.unwrap_or(0),
                complete.post_compaction_tokens.unwrap_or(0),
            );
            let messages = complete.messages_removed.unwrap_or(0);
            Ok(text(format!(
                "The conversation was compacted: {messages} messages fewer, {before} tokens before and {after} now."
            )))
        }
        Some(why) => Err(RpcError::Failed(format!(
            "the conversation was not compacted: {why}"
        ))),
    }
}
