//! Methods about the daemon itself.

use loopd_proto::PROTOCOL_VERSION;
use loopd_proto::params::server::{AuthStatus, NoParams, PingParams, Pong, Status};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

pub(super) async fn ping(context: Context, params: PingParams) -> Result<Pong, RpcError> {
    Ok(Pong {
        message: match params.message {
            Some(message) => format!("pong: {message}"),
            None => "pong".to_owned(),
        },
        timestamp: context.app.services.clock.now(),
        protocol_version: PROTOCOL_VERSION,
    })
}

pub(super) async fn status(context: Context, _: NoParams) -> Result<Status, RpcError> {
    Ok(Status {
        version: context.app.services.version.to_owned(),
        protocol_version: PROTOCOL_VERSION,
    })
}

pub(super) async fn auth_status(context: Context, _: NoParams) -> Result<AuthStatus, RpcError> {
    let has_token = context.connection.launch().api_token.is_some();
    Ok(AuthStatus {
        is_authenticated: has_token,
        auth_type: has_token.then(|| "env".to_owned()),
        host: None,
        login: None,
        status_message: Some(if has_token {
            "A token for the Copilot API was given by the environment".to_owned()
        } else {
            "Not authenticated".to_owned()
        }),
    })
}

/// Ends the sessions of this launch, and answers when everything is flushed.
pub(super) async fn shutdown(context: Context, _: NoParams) -> Result<(), RpcError> {
    let launch = context.connection.launch().clone();
    launch.end();
    context.app.end_launch(&launch).await;
    Ok(())
}
