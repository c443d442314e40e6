//! The folder of a session's own files, for clients.

pub(super) mod checkpoints;
pub(super) mod diff;
pub(super) mod files;

use std::path::PathBuf;

use loopd_proto::event::session::FileChanged;
use loopd_proto::id::SessionId;
use loopd_proto::params::session::Of;
use loopd_proto::params::workspace::{
    Content, CreateParams, FileParams, Files, Found, Paste, PasteParams, SavedPaste, Workspace,
};
use loopd_proto::time::Timestamp;

use super::discover::{look, shown};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use files::{FileError, Inside, OwnFolder};
use loopd_kernel::command::Command;

/// Returns the folder of a session's own files.
fn folder(context: &Context, id: &SessionId) -> OwnFolder {
    own_folder(context, id, "files")
}

/// Returns a folder below the session's own folder; an empty name means that folder itself.
pub(super) fn own_folder(context: &Context, id: &SessionId, name: &str) -> OwnFolder {
    let services = &context.app.services;
    let folder = services.session_folder(id).join(name);
    let below = folder.strip_prefix(&services.home);
    OwnFolder {
        home: services.home.clone(),
        below: below.map_or_else(|_| folder.clone(), PathBuf::from),
    }
}

/// Returns what the store knows of the session that owns the folder.
pub(super) async fn of(context: &Context, id: &SessionId) -> Result<Option<Workspace>, RpcError> {
    let record = context.app.services.store.record(id).await?;
    Ok(record.map(|record| Workspace {
        id: record.id,
        cwd: record.cwd,
        git_root: record.git_root,
        repository: record.repository,
        branch: record.branch,
        user_named: record.name.is_some(),
        name: record.name.or(record.summary),
        created_at: Timestamp(record.created_ms),
        updated_at: Timestamp(record.modified_ms),
    }))
}

pub(super) async fn describe(context: Context, params: Of) -> Result<Found, RpcError> {
    context.session(&params.session_id)?;
    Ok(Found {
        workspace: of(&context, &params.session_id).await?,
        path: shown(&context.app.services.session_folder(&params.session_id)),
    })
}

pub(super) async fn list(context: Context, params: Of) -> Result<Files, RpcError> {
    context.session(&params.session_id)?;
    let folder = folder(&context, &params.session_id);
    let files = look(move || files::list(&folder)).await??;
    Ok(Files { files })
}

pub(super) async fn read(context: Context, params: FileParams) -> Result<Content, RpcError> {
    context.session(&params.session_id)?;
    let path = inside(&params.path)?;
    let folder = folder(&context, &params.session_id);
    let text = look(move || files::read(&folder, &path)).await??;
    Ok(Content { content: text })
}

pub(super) async fn create(context: Context, params: CreateParams) -> Result<(), RpcError> {
    let path = inside(&params.path)?;
    write(&context, &params.session_id, path, params.content).await
}

pub(super) async fn save_paste(
    context: Context,
    params: PasteParams,
) -> Result<SavedPaste, RpcError> {
    let id = loopd_proto::id::as_uuid(context.app.services.clock.id());
    let filename = format!("paste-{id}.txt");
    let size_bytes = params.content.len() as u64;
    let path = inside(&filename)?;
    write(&context, &params.session_id, path, params.content).await?;
    let folder = context.app.services.session_folder(&params.session_id);
    let file_path = folder.join("files").join(&filename);
    Ok(SavedPaste {
        saved: Some(Paste {
            file_path: shown(&file_path),
            filename,
            size_bytes,
        }),
    })
}

fn inside(path: &str) -> Result<Inside, RpcError> {
    Inside::new(path).map_err(|error| RpcError::InvalidParams(format!("path: {error}")))
}

/// Writes a file, then records that in the log.
async fn write(
    context: &Context,
    id: &SessionId,
    path: Inside,
    text: String,
) -> Result<(), RpcError> {
    let session = context.session(id)?;
    let folder = folder(context, id);
    session
        .change_file(move || {
            let operation = files::write(&folder, &path, text.as_bytes())?;
            Ok(Some(Command::FileChanged(FileChanged {
                path: path.to_string(),
                operation,
            })))
        })
        .await
}

impl From<FileError> for RpcError {
    fn from(error: FileError) -> Self {
        Self::Failed(error.to_string())
    }
}
