//! Answers to plans, about models and about limits, answers to questions that this daemon does not ask yet, and the handlers that
//! clients register for such questions.
//!
//! A question of the latter kind is never open. Its answer is parsed in full, and the caller learns that it
//! answered nothing. Code that begins to ask one of these questions has to look up its answer here.

use loopd_proto::id::SessionId;
use loopd_proto::params::pending::{
    AutoModeSwitchParams, ExitPlanModeParams, Handle, HandleParams, HeadersRefreshParams,
    LimitAction, LimitsExhaustedParams, SamplingParams, Unregistered,
};
use loopd_proto::params::session::{Of, Success};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};

/// Tells the caller that no question of this kind is open.
fn none_open(context: &Context, session: &SessionId) -> Result<Success, RpcError> {
    context.session(session)?;
    Ok(Success { success: false })
}

pub(super) async fn sampling(
    context: Context,
    params: SamplingParams,
) -> Result<Success, RpcError> {
    none_open(&context, &params.session_id)
}

pub(super) async fn auto_mode_switch(
    context: Context,
    params: AutoModeSwitchParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let done = session
        .command(Command::AnswerAutoModeSwitch {
            request: params.request_id,
            response: params.response,
        })
        .await?;
    Ok(Success {
        success: done.answer == Answer::Accepted(true),
    })
}

pub(super) async fn exit_plan_mode(
    context: Context,
    params: ExitPlanModeParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let file = context.app.services.plan_file(&params.session_id).into();
    let answered = session.answer_plan(file, params.request_id, params.response);
    Ok(Success {
        success: answered.await?,
    })
}

pub(super) async fn limits_exhausted(
    context: Context,
    params: LimitsExhaustedParams,
) -> Result<Success, RpcError> {
    let response = params.response;
    let needed = match response.action {
        LimitAction::Add => Some(("additionalAiCredits", response.additional_ai_credits)),
        LimitAction::Set => Some(("maxAiCredits", response.max_ai_credits)),
        LimitAction::Unset | LimitAction::Cancel => None,
    };
    if let Some((member, number)) = needed
        && !number.is_some_and(|number| number.is_finite() && number > 0.0)
    {
        return Err(RpcError::InvalidParams(format!(
            "response.{member}: a number above 0 is needed for this action"
        )));
    }
    let session = context.session(&params.session_id)?;
    let answer = Command::AnswerLimits {
        request: params.request_id,
        response,
    };
    Ok(Success {
        success: session.command(answer).await?.answer == Answer::Accepted(true),
    })
}

pub(super) async fn headers_refresh(
    context: Context,
    params: HeadersRefreshParams,
) -> Result<Success, RpcError> {
    none_open(&context, &params.session_id)
}

pub(super) async fn register_direct(context: Context, params: Of) -> Result<Handle, RpcError> {
    context.session(&params.session_id)?;
    let handle = loopd_proto::id::as_uuid(context.app.services.clock.id());
    context
        .connection
        .register(params.session_id, handle.clone())
        .map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(Handle { handle })
}

pub(super) async fn unregister_direct(
    context: Context,
    params: HandleParams,
) -> Result<Unregistered, RpcError> {
    context.session(&params.session_id)?;
    let unregistered = context
        .connection
        .unregister(&params.session_id, &params.handle);
    Ok(Unregistered { unregistered })
}
