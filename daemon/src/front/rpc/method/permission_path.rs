//! The directories that file tools may use.

use std::path::Path;

use loopd_proto::params::permission::{Allowed, PathParams, Paths};
use loopd_proto::params::session::{Of, Success};

use super::permission_policy::change;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::PermissionChange;
use loopd_kernel::policy::within;
use loopd_kernel::state::State;

fn primary(state: &State) -> String {
    let own = state.permissions.primary_directory.as_ref();
    own.unwrap_or(&state.cwd).clone()
}

fn directories(state: &State) -> Vec<String> {
    let mut directories = vec![primary(state)];
    for directory in &state.permissions.directories {
        if !directories.contains(directory) {
            directories.push(directory.clone());
        }
    }
    directories
}

pub(super) async fn list(context: Context, params: Of) -> Result<Paths, RpcError> {
    let session = context.session(&params.session_id)?;
    let paths = session.state(|state| Paths {
        directories: directories(state),
        primary: primary(state),
    });
    Ok(paths.await?)
}

/// Refuses a path that is not a directory, so that a misspelt path allows nothing.
pub(super) fn checked(member: &str, path: &str) -> Result<String, RpcError> {
    let folder = Path::new(path);
    if !folder.is_absolute() || !folder.is_dir() {
        return Err(RpcError::InvalidParams(format!(
            "{member}: {path} is not an existing directory given by its absolute path"
        )));
    }
    Ok(path.to_owned())
}

/// Refuses a relative path: it would count from the directory of the daemon.
pub(super) fn check_absolute(member: &str, path: &str) -> Result<(), RpcError> {
    if Path::new(path).is_absolute() {
        return Ok(());
    }
    Err(RpcError::InvalidParams(format!(
        "{member}: {path} is not an absolute path"
    )))
}

pub(super) async fn add(context: Context, params: PathParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let path = checked("path", &params.path)?;
    change(&session, PermissionChange::AddDirectory(path)).await
}

pub(super) async fn update_primary(
    context: Context,
    params: PathParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let path = checked("path", &params.path)?;
    change(&session, PermissionChange::SetPrimaryDirectory(path)).await
}

pub(super) async fn is_allowed(context: Context, params: PathParams) -> Result<Allowed, RpcError> {
    let session = context.session(&params.session_id)?;
    let allowed = session.state(move |state| {
        state.permissions.unrestricted_paths
            || directories(state)
                .iter()
                .any(|directory| within(directory, &params.path))
    });
    Ok(Allowed {
        allowed: allowed.await?,
    })
}

pub(super) async fn is_in_workspace(
    context: Context,
    params: PathParams,
) -> Result<Allowed, RpcError> {
    let session = context.session(&params.session_id)?;
    let allowed = session.state(move |state| within(&primary(state), &params.path));
    Ok(Allowed {
        allowed: allowed.await?,
    })
}
