//! The plan: a Markdown file in the session's folder.

use std::io::ErrorKind;

use loopd_proto::event::session::FileOperation;
use loopd_proto::home_paths::create_private;
use loopd_proto::params::session::Of;
use loopd_proto::params::settings::{Plan, PlanParams};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use loopd_kernel::command::Command;

fn plan_file(context: &Context, id: &loopd_proto::id::SessionId) -> std::path::PathBuf {
    context.app.services.session_folder(id).join("plan.md")
}

pub(super) async fn read(context: Context, params: Of) -> Result<Plan, RpcError> {
    context.session(&params.session_id)?;
    let path = plan_file(&context, &params.session_id);
    let text = match tokio::fs::read_to_string(&path).await {
        Ok(text) => Some(text),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(unusable(&path, &error)),
    };
    Ok(Plan {
        exists: text.is_some(),
        content: text,
        path: Some(path.to_string_lossy().into_owned()),
    })
}

pub(super) async fn update(context: Context, params: PlanParams) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    limit::plan(&params.content)?;
    let path = plan_file(&context, &params.session_id);
    let folder = context.app.services.session_folder(&params.session_id);
    session
        .change_file(move || {
            let existed = path.try_exists().unwrap_or(false);
            create_private(&folder).map_err(|error| unusable(&folder, &error))?;
            std::fs::write(&path, params.content).map_err(|error| unusable(&path, &error))?;
            Ok(Some(Command::PlanChanged(if existed {
                FileOperation::Update
            } else {
                FileOperation::Create
            })))
        })
        .await
}

pub(super) async fn delete(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let path = plan_file(&context, &params.session_id);
    session
        .change_file(move || match std::fs::remove_file(&path) {
            Ok(()) => Ok(Some(Command::PlanChanged(FileOperation::Delete))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(&path, &error)),
        })
        .await
}

fn unusable(path: &std::path::Path, error: &std::io::Error) -> RpcError {
    RpcError::Failed(format!("{} cannot be used: {error}", path.display()))
}
