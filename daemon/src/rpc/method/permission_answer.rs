//! Deciding about permissions that were requested.

use loopd_proto::params::permission::{HandleParams, Pending, PendingItem, PromptShownParams};
use loopd_proto::params::session::{Of, Success};
use loopd_proto::permission::PermissionPrompt;

use crate::kernel::command::{Answer, Command};
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;

pub(super) async fn handle(context: Context, params: HandleParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::AnswerPermission {
            request: params.request_id,
            decision: params.result,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn pending(context: Context, params: Of) -> Result<Pending, RpcError> {
    let session = context.session(&params.session_id)?;
    let items = session.state(|state| {
        state
            .open_permissions()
            .map(|(request_id, request)| PendingItem {
                request_id: request_id.clone(),
                request: PermissionPrompt::from(request),
            })
            .collect()
    });
    Ok(Pending {
        items: items.await?,
    })
}

pub(super) async fn prompt_shown(
    context: Context,
    params: PromptShownParams,
) -> Result<Success, RpcError> {
    context.session(&params.session_id)?;
    tracing::debug!(session = %params.session_id, "a permission prompt is on screen");
    Ok(Success::YES)
}
