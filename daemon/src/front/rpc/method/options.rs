//! `session.options.update`.

use std::path::PathBuf;

use loopd_proto::params::options::OptionsParams;
use loopd_proto::params::session::Success;

use super::{hook_folders, permission_path, session_options};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::Command;

/// Changes all options that the request names, or none.
pub(super) async fn update(context: Context, params: OptionsParams) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let mut patch = params.patch;
    session_options::check(&patch.options)?;
    if let Some(directory) = &patch.options.working_directory {
        permission_path::checked("workingDirectory", directory)?;
    }
    let folders = [
        &patch.options.agent_directories,
        &patch.options.hook_directories,
        &patch.options.instruction_directories,
        &patch.options.skill_directories,
    ];
    if folders.into_iter().any(Option::is_some) {
        let cwd = session.state(|state| PathBuf::from(&state.cwd)).await?;
        let cwd = patch
            .options
            .working_directory
            .as_ref()
            .map_or(cwd, PathBuf::from);
        session_options::resolve_folders(&mut patch.options, &cwd);
        let folders = patch.options.hook_directories.as_deref();
        patch.vouched_hooks = hook_folders::vouched(&context, folders, &cwd).await?;
        patch.options.hook_directories = hook_folders::names(patch.vouched_hooks.as_deref());
    }
    let named = patch.options.clone();
    let change = Command::UpdateOptions(Box::new(patch));
    session.command(change).await?;
    session_options::warn_of_context_tier(&session, &named).await;
    session_options::warn_of_members(&session, &params.without_effect).await;
    session_options::warn_of_tools(&context, &session, &named, &[]).await?;
    Ok(Success::YES)
}
