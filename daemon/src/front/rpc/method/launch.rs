//! `loopd.launch`: a relay or client registers its launch.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::build_id;
use loopd_proto::params::launch::{LaunchParams, Launched};

use crate::front::connection::Trust;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::launch::{Launch, LaunchOptions};
use loopd_model::secret::{self, Secret};

pub(super) async fn launch(context: Context, params: LaunchParams) -> Result<Launched, RpcError> {
    let app = &context.app;
    let own = build_id::current();
    let reasons = app.services.keep_alive.reasons();
    // If the caller has another build, is the only connection, and no work runs, this daemon
    // ends, so that a daemon of the caller's build can start.
    let makes_room = params.build != own && reasons.connections <= 1 && reasons.work == 0;
    // A daemon that has lost its home is about to end anyway.
    let mut leaving = makes_room || app.has_lost_home();
    let id = secret::random_hex().map_err(|error| RpcError::Failed(error.to_string()))?;
    if makes_room {
        let ending = app.ending.clone();
        context.after_reply(move || ending.cancel());
    } else if !leaving {
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
        launch.restore(params.state);
        leaving = app
            .add_launch(
                id.clone(),
                &launch,
                &context.connection,
                params.outlives_home,
            )
            .is_err();
    }
    Ok(Launched {
        launch_id: id,
        build: own.to_owned(),
        leaving,
        lock: app.lock_id(),
    })
}
