//! `loopd.launch`: a relay or client brings what belongs to its launch.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::params::launch::{LaunchParams, Launched};

use crate::build_id;
use crate::connection::Trust;
use crate::launch::{Launch, LaunchOptions};
use crate::provider::secret::{self, Secret};
use crate::rpc::context::Context;
use crate::rpc::error::RpcError;

pub(super) async fn launch(context: Context, params: LaunchParams) -> Result<Launched, RpcError> {
    let app = &context.app;
    let own = build_id::current();
    let reasons = app.services.presence.reasons();
    // Only the caller itself is here: a daemon of another build makes room.
    let leaving = params.build != own && reasons.connections <= 1 && reasons.work == 0;
    let id = secret::random_hex().map_err(|error| RpcError::Failed(error.to_string()))?;
    if leaving {
        let ending = app.ending.clone();
        context.after_reply(move || ending.cancel());
    } else {
        let launch = Arc::new(Launch::new(
            params.cwd.into(),
            params.env,
            LaunchOptions {
                auth_token_env: params.auth_token_env,
                connection_token: params.connection_token.map(Secret::new),
                yolo: params.yolo,
                session_idle_timeout: params.session_idle_timeout.map(Duration::from_secs),
            },
        ));
        context
            .connection
            .join(launch.clone(), Trust::Transport)
            .map_err(|error| RpcError::Failed(error.to_string()))?;
        app.add_launch(id.clone(), &launch);
    }
    Ok(Launched {
        launch_id: id,
        build: own.to_owned(),
        leaving,
    })
}
