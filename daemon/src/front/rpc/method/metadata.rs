//! The metadata of a session, and its working directory.

use loopd_proto::params::metadata::{
    Activity, ContextParams, Directory, DirectoryParams, Processing, Snapshot,
};
use loopd_proto::params::server::NoResult;
use loopd_proto::params::session::Of;

use super::{permission_path, workspace};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::Command;
use loopd_kernel::state::State;

pub(super) async fn snapshot(context: Context, params: Of) -> Result<Snapshot, RpcError> {
    let session = context.session(&params.session_id)?;
    let id = params.session_id;
    let workspace = workspace::of(&context, &id).await?;
    let folder = context.app.services.session_folder(&id);
    let path = folder.to_string_lossy().into_owned();
    let changed = workspace.as_ref().map(|workspace| workspace.updated_at);
    let snapshot = session.state(move |state: &State| Snapshot {
        session_id: id,
        start_time: state.created,
        modified_time: changed.unwrap_or(state.created),
        is_remote: false,
        already_in_use: false,
        workspace_path: Some(path),
        client_name: state.options.client_name.clone(),
        summary: state.name.as_ref().map(|name| name.text.clone()),
        working_directory: state.cwd.clone(),
        current_mode: state.mode,
        selected_model: state.model.clone().or_else(|| state.options.model.clone()),
        session_limits: state.options.session_limits,
        workspace,
    });
    Ok(snapshot.await?)
}

pub(super) async fn is_processing(context: Context, params: Of) -> Result<Processing, RpcError> {
    let session = context.session(&params.session_id)?;
    let processing = session.state(State::is_busy).await?;
    Ok(Processing { processing })
}

pub(super) async fn activity(context: Context, params: Of) -> Result<Activity, RpcError> {
    let session = context.session(&params.session_id)?;
    let activity = session.state(|state| {
        let tasks = state.tasks.iter().any(|task| task.ending().is_none());
        let busy = state.is_busy();
        Activity {
            abortable: busy && !state.turn().is_some_and(|turn| turn.aborting),
            has_active_work: busy || tasks || !state.user_calls.is_empty(),
        }
    });
    Ok(activity.await?)
}

pub(super) async fn set_directory(
    context: Context,
    params: DirectoryParams,
) -> Result<Directory, RpcError> {
    let session = context.session(&params.session_id)?;
    let directory = permission_path::checked("workingDirectory", &params.working_directory)?;
    let change = Command::SetWorkingDirectory(directory.clone());
    session.command(change).await?;
    Ok(Directory {
        working_directory: directory,
    })
}

pub(super) async fn record_context(
    context: Context,
    params: ContextParams,
) -> Result<NoResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let given = params.context;
    if let Some(kind) = given.host_type.as_deref()
        && !matches!(kind, "github" | "ado")
    {
        return Err(RpcError::InvalidParams(format!(
            "context.hostType: {kind} is neither github nor ado"
        )));
    }
    session.command(Command::RecordContext(given)).await?;
    Ok(NoResult {})
}
