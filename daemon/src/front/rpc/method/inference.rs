//! Model requests that a client sends on behalf of its launch.

use loopd_proto::params::inference::{Accepted, ResponseChunk, ResponseStart};
use loopd_proto::params::server::NoParams;
use loopd_proto::params::session::Success;

use std::sync::Arc;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_model::client_http::ClientHttp;

pub(super) async fn set_provider(context: Context, _: NoParams) -> Result<Success, RpcError> {
    let connection = &context.connection;
    connection
        .launch()
        .carry_inference(&connection.client)
        .map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(Success { success: true })
}

pub(super) async fn response_start(
    context: Context,
    params: ResponseStart,
) -> Result<Accepted, RpcError> {
    let accepted = match carried_by(&context) {
        Some(client) => client.take_head(params).await,
        None => false,
    };
    Ok(Accepted { accepted })
}

pub(super) async fn response_chunk(
    context: Context,
    params: ResponseChunk,
) -> Result<Accepted, RpcError> {
    let accepted = match carried_by(&context) {
        Some(client) => client.take_chunk(params).await,
        None => false,
    };
    Ok(Accepted { accepted })
}

/// Returns the HTTP exchanges of the caller. A connection cannot answer for another one.
fn carried_by(context: &Context) -> Option<Arc<ClientHttp>> {
    let connection = &context.connection;
    connection.launch().inference_of(connection.id())
}
