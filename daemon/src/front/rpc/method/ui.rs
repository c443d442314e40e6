//! Questions to the users of a session, and their answers.

use loopd_proto::params::session::Success;
use loopd_proto::params::ui::{
    ElicitationParams, ElicitationResult, HandleElicitationParams, HandleUserInputParams,
};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};

pub(super) async fn elicit(
    context: Context,
    params: ElicitationParams,
) -> Result<ElicitationResult, RpcError> {
    let session = context.session(&params.session_id)?;
    if !params.requested_schema.is_object() {
        return Err(RpcError::InvalidParams(
            "requestedSchema: a JSON schema of an object is expected".to_owned(),
        ));
    }
    if !session.view(|view| view.elicitation).await? {
        return Err(RpcError::Failed(
            "no client of this session can show a form; attach one with requestElicitation"
                .to_owned(),
        ));
    }
    let answer = session
        .elicit(params.message, params.requested_schema)
        .await?;
    Ok(ElicitationResult {
        action: answer.action,
        content: answer.content,
    })
}

pub(super) async fn handle_elicitation(
    context: Context,
    params: HandleElicitationParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::AnswerElicitation {
            request: params.request_id,
            action: params.result.action,
            content: params.result.content,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn handle_user_input(
    context: Context,
    params: HandleUserInputParams,
) -> Result<Success, RpcError> {
    let session = context
        .asker(&params.session_id, &params.request_id)
        .await?;
    let done = session
        .command(Command::AnswerUserInput {
            request: params.request_id,
            answer: params.response.answer,
            freeform: params.response.was_freeform,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}
