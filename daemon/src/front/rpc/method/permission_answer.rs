//! Answers to permission requests.

use loopd_proto::id::RequestId;
use loopd_proto::params::permission::{HandleParams, Pending, PendingItem, PromptShownParams};
use loopd_proto::params::session::{Of, Success};
use loopd_proto::permission::{PermissionDecision, PermissionPrompt, PermissionRequest};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};

pub(super) async fn handle(context: Context, params: HandleParams) -> Result<Success, RpcError> {
    let session = context
        .asker(&params.session_id, &params.request_id)
        .await?;
    let done = match params.result {
        PermissionDecision::UserNotAvailable {} => {
            let client = context.connection.id();
            session.decline_permission(client, params.request_id).await
        }
        decision => {
            let request = params.request_id;
            let answer = Command::AnswerPermission { request, decision };
            session.command(answer).await
        }
    }?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn pending(context: Context, params: Of) -> Result<Pending, RpcError> {
    let session = context.session(&params.session_id)?;
    let items = session.view(|view| {
        let item = |request_id: &RequestId, request: &PermissionRequest| PendingItem {
            request_id: request_id.clone(),
            request: PermissionPrompt::from(request),
        };
        let own = view
            .state
            .open_permissions()
            .map(|(id, request)| item(id, request));
        let agents = view.tree.iter().flat_map(|tree| tree.questions());
        let agents = agents.filter_map(|(id, question)| Some(item(&id, question.permission()?)));
        own.chain(agents).collect()
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
