//! Logins at MCP servers, and what servers may ask the model of a session.

use loopd_proto::params::mcp::{
    CancelSamplingParams, LoginParams, LoginStarted, OauthAnswer, OauthAnswerParams,
    SamplingAction, SamplingCancelled, SamplingParams, SamplingResult,
};
use loopd_proto::params::session::Success;

use super::mcp::SessionServers;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::mcp::LookupMode;

/// Answers a server's wish for a token.
pub(super) async fn answer(
    context: Context,
    params: OauthAnswerParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let token = match params.result {
        OauthAnswer::Token {
            access_token,
            token_type,
            ..
        } => {
            let kind = token_type.unwrap_or_else(|| "Bearer".to_owned());
            if !kind.eq_ignore_ascii_case("bearer") {
                return Err(RpcError::InvalidParams(format!(
                    "result.tokenType: {kind:?} cannot be sent; only Bearer can"
                )));
            }
            if access_token.is_empty() || access_token.chars().any(char::is_control) {
                return Err(RpcError::InvalidParams(
                    "result.accessToken: a token without control characters is expected".to_owned(),
                ));
            }
            Some(access_token)
        }
        OauthAnswer::Cancelled {} => None,
    };
    Ok(Success {
        success: session.answer_token(params.request_id, token).await?,
    })
}

/// Connects a server anew, which asks for a token if there is none that it takes.
pub(super) async fn login(context: Context, params: LoginParams) -> Result<LoginStarted, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    if of.cell.is_empty() {
        return Err(RpcError::Failed(
            "MCP host is not available on this session: it has no MCP servers".to_owned(),
        ));
    }
    let server = of.server(&params.server_name)?;
    if !server.config().is_remote() {
        return Err(RpcError::Failed(format!(
            "MCP server {} is not a remote server",
            params.server_name
        )));
    }
    server.restart(None);
    Ok(LoginStarted {
        authorization_url: None,
    })
}

/// Lets the model answer for a server.
pub(super) async fn sample(
    context: Context,
    params: SamplingParams,
) -> Result<SamplingResult, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    of.server(&params.server_name)?;
    Ok(SamplingResult {
        action: SamplingAction::Failure,
        result: None,
        error: Some("sampling is not offered: this daemon lets no server use its model".to_owned()),
    })
}

pub(super) async fn cancel_sampling(
    context: Context,
    params: CancelSamplingParams,
) -> Result<SamplingCancelled, RpcError> {
    context.session(&params.session_id)?;
    Ok(SamplingCancelled { cancelled: false })
}
