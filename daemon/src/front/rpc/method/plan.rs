//! The plan: a Markdown file in the session's folder.

use loopd_proto::event::session::FileOperation;
use loopd_proto::id::SessionId;
use loopd_proto::params::session::Of;
use loopd_proto::params::settings::{Plan, PlanParams};

use super::discover::{look, shown};
use super::workspace::files::{self, FileError, Inside, OwnFolder};
use super::workspace::own_folder;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use crate::services::PLAN;
use loopd_kernel::command::Command;

/// Returns the folder and the name of the plan.
fn plan(context: &Context, id: &SessionId) -> Result<(OwnFolder, Inside), FileError> {
    Ok((own_folder(context, id, ""), Inside::new(PLAN)?))
}

pub(super) async fn read(context: Context, params: Of) -> Result<Plan, RpcError> {
    context.session(&params.session_id)?;
    let (folder, file) = plan(&context, &params.session_id)?;
    let text = look(move || match files::read(&folder, &file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    })
    .await??;
    let folder = context.app.services.session_folder(&params.session_id);
    Ok(Plan {
        exists: text.is_some(),
        content: text,
        path: Some(shown(&folder.join(PLAN))),
    })
}

pub(super) async fn update(context: Context, params: PlanParams) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    limit::plan(&params.content)?;
    let (folder, file) = plan(&context, &params.session_id)?;
    session
        .change_file(move || {
            let operation = files::write(&folder, &file, params.content.as_bytes())?;
            Ok(Some(Command::PlanChanged(operation)))
        })
        .await
}

pub(super) async fn delete(context: Context, params: Of) -> Result<(), RpcError> {
    let session = context.session(&params.session_id)?;
    let (folder, file) = plan(&context, &params.session_id)?;
    session
        .change_file(move || {
            let removed = files::remove(&folder, &file)?;
            Ok(removed.then_some(Command::PlanChanged(FileOperation::Delete)))
        })
        .await
}
