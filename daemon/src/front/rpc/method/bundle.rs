//! A session as a bundle for another home: its log and its own files, as a text that a client carries.
//!
//! An export keeps nothing in the daemon: each page says where the next one begins. What a client sends
//! for an import is collected in a file of the home, checked as a whole, and becomes a session in one
//! transaction, or nothing.

mod export;
mod files;
mod format;
mod import;
mod read;
mod upload;

use loopd_proto::params::bundle::{
    ExportPage, ExportParams, ImportParams, ImportPartParams, ImportPartTaken, ImportedSession,
};

use super::discover::look;
use super::session_create::working_directory;
use super::session_options;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use format::BundleError;
use upload::Upload;

/// The most bytes of logs and files that one bundle has.
const MOST_BYTES: u64 = 192 * 1024 * 1024;

impl From<BundleError> for RpcError {
    fn from(error: BundleError) -> Self {
        Self::Failed(error.to_string())
    }
}

pub(super) async fn export(context: Context, params: ExportParams) -> Result<ExportPage, RpcError> {
    export::page(&context, params).await
}

pub(super) async fn take_part(
    context: Context,
    params: ImportPartParams,
) -> Result<ImportPartTaken, RpcError> {
    let upload = Upload::named(&context, &params.upload)?;
    let _one_at_a_time = context.app.imports.lock().await;
    let taken = look(move || upload.take(params.offset, &params.text)).await?;
    Ok(ImportPartTaken { bytes: taken? })
}

pub(super) async fn import(
    context: Context,
    params: ImportParams,
) -> Result<ImportedSession, RpcError> {
    let upload = Upload::named(&context, &params.upload)?;
    let named = params.working_directory.as_deref();
    let cwd = working_directory(&context, named);
    session_options::check_directory(named, &cwd)?;
    let _one_at_a_time = context.app.imports.lock().await;
    import::import(&context, upload, params.new_id, cwd).await
}
