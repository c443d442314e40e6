//! `connect`: the handshake.

use loopd_proto::PROTOCOL_VERSION;
use loopd_proto::error::AUTHENTICATION_FAILED;
use loopd_proto::params::server::{ConnectParams, Connected};
use loopd_proto::wire::ErrorObject;
use subtle::ConstantTimeEq;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// The longest id that a client may give itself.
const LONGEST_ID: usize = 64;

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
            let counted = context.connection.count_wrong_token();
            if let Err(error) = counted {
                let peer = context.connection.peer.clone();
                let reason = ErrorObject::new(AUTHENTICATION_FAILED.into(), error.to_string());
                context.after_reply(move || peer.refuse(&reason));
            } else {
                // Only this answer waits; other connections and right tokens do not.
                tokio::time::sleep(launch.wrong_tokens.next_delay()).await;
            }
            return Err(RpcError::AuthenticationFailed);
        }
        context.connection.authenticate();
    }
    if let Some(id) = params.loopd_client_id {
        if id.is_empty() || id.len() > LONGEST_ID {
            return Err(RpcError::InvalidParams(format!(
                "loopdClientId: 1 to {LONGEST_ID} bytes are expected"
            )));
        }
        context.connection.set_logged_id(id);
    }
    if let Some(name) = params.client_info.and_then(|info| info.editor_name) {
        context.connection.set_name(&name);
    }
    Ok(Connected {
        ok: true,
        protocol_version: PROTOCOL_VERSION,
        version: context.app.services.version.to_owned(),
    })
}
