//! An app trusts the working directory of a session for its user.

use std::path::Path;

use loopd_proto::session::WorkingDirectoryTrust;

use crate::approvals;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust;

/// Trusts a folder with what it brings now, as the client asks for it.
pub(super) async fn trust(
    context: &Context,
    asked: Option<WorkingDirectoryTrust>,
    folder: &Path,
) -> Result<(), RpcError> {
    match asked {
        None => Ok(()),
        Some(WorkingDirectoryTrust::User) => for_user(context, &folder.to_string_lossy()).await,
        Some(WorkingDirectoryTrust::Session) => Err(RpcError::InvalidParams(
            "trustWorkingDirectory: a folder cannot be trusted for one session; say `user` to trust it for good with \
             what it brings now, or leave it out and let a person look with `loop trust`"
                .to_owned(),
        )),
    }
}

/// Trusts a folder for good with what it brings now.
pub(super) async fn for_user(context: &Context, folder: &str) -> Result<(), RpcError> {
    let store = context.app.services.store.as_ref();
    approvals::trust_folder(store, folder).await?;
    // Hooks are trusted one by one: those that are there now.
    if let Ok(found) = super::trust::content(context, folder).await {
        let folder = context.connection.launch().cwd.join(folder);
        trust::record(store, &found.below(&folder)).await?;
    }
    Ok(())
}
