//! Logins at MCP servers, and what servers may ask the model of a session.

use std::sync::Arc;
use std::time::Duration;

use loopd_mcp::Server;
use loopd_mcp::config::Transport;
use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::params::mcp::{
    CancelSamplingParams, LoggedOut, LoginEnded, LoginParams, LoginStarted, LoginStatus,
    LoginWaitParams, OauthAnswer, OauthAnswerParams, SamplingAction, SamplingCancelled,
    SamplingParams, SamplingResult, ServerParams,
};
use loopd_proto::params::session::Success;
use loopd_proto::session::McpTokenStorage;

use super::mcp::SessionServers;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::logins::{Begun, LoginOptions, LoginOutcome, ServerLogin};
use crate::mcp::{LaunchWeb, LookupMode};
use crate::session::SessionHandle;
use crate::session::mcp::ONLY_CLIENTS;
use crate::session::mcp::app_sampling::AppSampled;
use crate::session::mcp::sampling::SampleOrder;
use serde_json::Value;

/// How long one question about a login waits.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

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
    let remote = RemoteServer::find(&context, &params.session_id, &params.server_name).await?;
    // Clients that provide tokens are asked when the server is connected.
    if remote.session.has_token_providers().await? {
        remote.server.restart(None);
        return Ok(LoginStarted {
            authorization_url: None,
        });
    }
    let begun = remote.login.begin(LoginOptions {
        again: params.force_reauth,
        client_name: params.client_name,
        success_message: params.callback_success_message,
        document: context.app.services.config.mcp.client_metadata_url.clone(),
    });
    let begun = begun.await.map_err(|error| {
        let name = &params.server_name;
        RpcError::Failed(format!(
            "the login at MCP server {name} cannot begin: {error}"
        ))
    })?;
    Ok(LoginStarted {
        authorization_url: match begun {
            Begun::Visit(url) => Some(url),
            Begun::LoggedIn => {
                remote.server.restart(None);
                None
            }
        },
    })
}

/// A server on the network, and the login at it.
struct RemoteServer {
    session: SessionHandle,
    server: Arc<Server>,
    login: ServerLogin,
}

impl RemoteServer {
    async fn find(context: &Context, id: &SessionId, name: &str) -> Result<Self, RpcError> {
        let of = SessionServers::look(context, id, LookupMode::Look).await?;
        if of.cell.is_empty() {
            return Err(RpcError::Failed(
                "MCP host is not available on this session: it has no MCP servers".to_owned(),
            ));
        }
        let server = of.server(name)?;
        let config = server.config();
        let Transport::Http(endpoint) = &config.transport else {
            return Err(RpcError::Failed(format!(
                "MCP server {name} is not a remote server"
            )));
        };
        if endpoint.oauth.is_off {
            return Err(RpcError::Failed(format!(
                "MCP server {name} has no login: `oauth` of its entry turns that off"
            )));
        }
        let seen = of.session.view(|view| {
            let storage = view.state.options.mcp_token_storage;
            (view.launch.cloned(), storage)
        });
        let (launch, storage) = seen.await?;
        if storage == Some(McpTokenStorage::InMemory) {
            return Err(RpcError::Failed(format!(
                "MCP server {name}: {ONLY_CLIENTS}"
            )));
        }
        let launch = launch
            .ok_or_else(|| RpcError::Failed("no client is attached to the session".to_owned()))?;
        let http = Arc::new(LaunchWeb(Arc::new(launch.http.clone())));
        let login = context.app.services.logins.of(endpoint, http);
        Ok(Self {
            session: of.session,
            server,
            login,
        })
    }
}

/// Waits until a login has ended.
pub(super) async fn wait(
    context: Context,
    params: LoginWaitParams,
) -> Result<LoginEnded, RpcError> {
    let logins = &context.app.services.logins;
    let (status, error) = match logins.wait(&params.authorization_url, LONGEST_WAIT).await {
        None => (LoginStatus::Unknown, None),
        Some(LoginOutcome::Waiting) => (LoginStatus::Waiting, None),
        Some(LoginOutcome::LoggedIn(warning)) => (LoginStatus::LoggedIn, warning),
        Some(LoginOutcome::Failed(why)) => (LoginStatus::Failed, Some(why)),
    };
    Ok(LoginEnded { status, error })
}

/// Forgets the login at a server.
pub(super) async fn logout(context: Context, params: ServerParams) -> Result<LoggedOut, RpcError> {
    let remote = RemoteServer::find(&context, &params.session_id, &params.server_name).await?;
    let removed = remote.login.log_out().await.map_err(RpcError::Failed)?;
    Ok(LoggedOut { removed })
}

/// Lets the model answer for a server.
pub(super) async fn sample(
    context: Context,
    params: SamplingParams,
) -> Result<SamplingResult, RpcError> {
    let of = SessionServers::look(&context, &params.session_id, LookupMode::Look).await?;
    of.server(&params.server_name)?;
    let order = SampleOrder {
        request: RequestId::from(context.app.services.clock.id()),
        server: params.server_name,
        params: Value::Object(params.request),
    };
    let sampled = of.session.sample(params.request_id, order).await?;
    Ok(match sampled {
        AppSampled::Answered(Ok(result)) => SamplingResult {
            action: SamplingAction::Success,
            result: Some(result),
            error: None,
        },
        AppSampled::Answered(Err(why)) => SamplingResult {
            action: SamplingAction::Failure,
            result: None,
            error: Some(why),
        },
        AppSampled::Cancelled => SamplingResult {
            action: SamplingAction::Cancelled,
            result: None,
            error: None,
        },
    })
}

pub(super) async fn cancel_sampling(
    context: Context,
    params: CancelSamplingParams,
) -> Result<SamplingCancelled, RpcError> {
    let session = context.session(&params.session_id)?;
    Ok(SamplingCancelled {
        cancelled: session.cancel_sample(params.request_id).await?,
    })
}
