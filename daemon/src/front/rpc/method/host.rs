//! Settings of a whole launch: values to mask, plugins, and which client keeps session files.

use loopd_proto::params::host::{
    AddFilterValuesParams, Ok as Done, PluginsParams, SessionFilesParams,
};
use loopd_proto::params::session::Success;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::launch::{Launch, LaunchSessions};

pub(super) async fn add_filter_values(
    context: Context,
    params: AddFilterValuesParams,
) -> Result<Done, RpcError> {
    let launch = context.connection.launch();
    launch
        .filter_values(params.values)
        .map_err(|error| RpcError::InvalidParams(format!("values: {error}")))?;
    Ok(Done { ok: true })
}

/// The most plugins that a client may name.
const MOST_PLUGINS: usize = 64;

pub(super) async fn set_plugins(context: Context, params: PluginsParams) -> Result<(), RpcError> {
    if params.paths.len() > MOST_PLUGINS {
        return Err(RpcError::InvalidParams(format!(
            "paths: at most {MOST_PLUGINS} plugins can be named"
        )));
    }
    let launch = context.connection.launch();
    let mut plugins = Vec::with_capacity(params.paths.len());
    for path in params.paths {
        let plugin = launch.cwd.join(&path);
        if !plugin.is_dir() {
            return Err(RpcError::InvalidParams(format!(
                "paths: there is no folder {}",
                plugin.display()
            )));
        }
        plugins.push(plugin);
    }
    launch.set_plugins(plugins);
    Ok(())
}

pub(super) async fn keep_session_files(
    context: Context,
    params: SessionFilesParams,
) -> Result<Success, RpcError> {
    let places = [
        ("initialCwd", &params.initial_cwd),
        ("sessionStatePath", &params.session_state_path),
    ];
    for (name, place) in places {
        if place.is_empty() {
            return Err(RpcError::InvalidParams(format!(
                "{name}: must not be empty"
            )));
        }
    }
    let connection = &context.connection;
    let launch = connection.launch();
    let mut open = context.app.connections_of(&launch).into_iter();
    let sessions = if open.any(|connection| !connection.sessions().is_empty()) {
        LaunchSessions::Some
    } else {
        LaunchSessions::None
    };
    launch
        .keep_session_files(&connection.client, sessions)
        .map_err(|error| RpcError::Failed(error.to_string()))?;
    Ok(Success::YES)
}

/// Refuses sessions in a launch whose client wants to keep their files. The daemon cannot do that
/// yet: it would keep the files in its home.
pub(super) fn check_session_files(launch: &Launch) -> Result<(), RpcError> {
    if launch.client_keeps_session_files() {
        return Err(RpcError::Failed(
            "session files kept by the client are not supported yet; start the client without a \
             session file system"
                .to_owned(),
        ));
    }
    Ok(())
}
