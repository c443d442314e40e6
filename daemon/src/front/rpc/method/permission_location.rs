//! Approvals that belong to a folder instead of a session, and folders that the user trusts.

use std::path::Path;

use loopd_proto::params::permission::{
    AddApprovalParams, Location, LocationApplied, LocationParams, PathParams, Trusted,
};
use loopd_proto::params::session::Success;

use super::permission_policy::change;
use super::trust_folder;
use crate::approvals::{self, locate};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust::TrustedContent;
use loopd_kernel::command::{Answer, Command, PermissionChange};

pub(super) async fn resolve(
    context: Context,
    params: LocationParams,
) -> Result<Location, RpcError> {
    context.session(&params.session_id)?;
    let found = locate(Path::new(&params.working_directory));
    Ok(Location {
        location_key: found.key,
        location_type: found.kind.to_owned(),
    })
}

pub(super) async fn add_approval(
    context: Context,
    params: AddApprovalParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let store = context.app.services.store.as_ref();
    approvals::remember(store, &params.location_key, &params.approval).await?;
    change(&session, PermissionChange::Approve(params.approval.rules())).await
}

pub(super) async fn apply(
    context: Context,
    params: LocationParams,
) -> Result<LocationApplied, RpcError> {
    let session = context.session(&params.session_id)?;
    let found = locate(Path::new(&params.working_directory));
    let store = context.app.services.store.as_ref();
    let rules = approvals::standing(store, Path::new(&params.working_directory)).await?;
    let change = PermissionChange::Approve(rules.clone());
    let done = session.command(Command::ChangePermissions(change)).await?;
    Ok(LocationApplied {
        location_key: found.key,
        location_type: found.kind.to_owned(),
        changed: matches!(done.answer, Answer::Permissions { changed: true, .. }),
        applied_rule_count: rules.len(),
        applied_directory_count: 0,
        applied_rules: rules,
    })
}

pub(super) async fn is_trusted(context: Context, params: PathParams) -> Result<Trusted, RpcError> {
    context.session(&params.session_id)?;
    let store = context.app.services.store.as_ref();
    if approvals::is_trusted(store, &params.path).await? {
        return Ok(Trusted { trusted: true });
    }
    let trusted = TrustedContent::read(store).await?;
    // A folder that does not exist brings nothing that could be trusted.
    let found = super::trust::content(&context, &params.path).await.ok();
    Ok(Trusted {
        trusted: found.is_some_and(|found| trusted.covers_all(&found)),
    })
}

pub(super) async fn add_trusted(context: Context, params: PathParams) -> Result<Success, RpcError> {
    context.session(&params.session_id)?;
    trust_folder::for_user(&context, &params.path).await?;
    Ok(Success::YES)
}
