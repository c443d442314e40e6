//! `connect`: the handshake.

use loopd_proto::PROTOCOL_VERSION;
use loopd_proto::params::server::{ConnectParams, Connected};
use subtle::ConstantTimeEq;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

pub(super) async fn connect(
    context: Context,
    params: ConnectParams,
) -> Result<Connected, RpcError> {
    if !context.connection.is_authenticated() {
        let launch = context.connection.launch();
        let expected = launch.connection_token.as_ref();
        let given = params.token.unwrap_or_default();
        let matches = expected.is_some_and(|expected| {
            bool::from(expected.expose().as_bytes().ct_eq(given.as_bytes()))
        });
        if !matches {
            return Err(RpcError::AuthenticationFailed);
        }
        context.connection.authenticate();
    }
    Ok(Connected {
        ok: true,
        protocol_version: PROTOCOL_VERSION,
        version: context.app.services.version.to_owned(),
    })
}
