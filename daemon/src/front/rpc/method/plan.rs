//! The plan: a Markdown file in the session's folder.

use std::io::ErrorKind;

use loopd_proto::event::session::FileOperation;
use loopd_proto::params::session::Of;
use loopd_proto::params::settings::{Plan, PlanParams};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
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
    let path = plan_file(&context, &params.session_id);
    let existed = tokio::fs::try_exists(&path).await.unwrap_or(false);
    let folder = context.app.services.session_folder(&params.session_id);
    crate::home::create_private(&folder)
        .await
        .map_err(|error| unusable(&folder, &error))?;
    tokio::fs::write(&path, params.content)
        .await
        .map_err(|error| unusable(&path, &error))?;
    let operation = if existed {
        FileOperation::Update
    } else {
        FileOperation::Create
    };
    session.command(Command::PlanChanged(operation)).await?;
    Ok(())
}

pub(super) async fn delete(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let path = plan_file(&context, &params.session_id);
    match tokio::fs::remove_file(&path).await {
        Ok(()) => {
            let change = Command::PlanChanged(FileOperation::Delete);
            session.command(change).await?;
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unusable(&path, &error)),
    }
}

fn unusable(path: &std::path::Path, error: &std::io::Error) -> RpcError {
    RpcError::Failed(format!("{} cannot be used: {error}", path.display()))
}
