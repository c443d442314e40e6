//! The policy that an app sets for its users when it opens a session. The daemon enforces all of
//! it; settings that it cannot enforce are refused by name with the other members of the request.

use std::path::Path;

use loopd_proto::permission::ManagedPermissions;
use loopd_proto::session::PolicyParams;

use super::permission_policy::with_real_places;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::policy::managed;

/// Returns the permission rules of an app, if it has any.
pub(super) fn managed(
    context: &Context,
    given: &PolicyParams,
    cwd: &Path,
) -> Result<Option<Box<ManagedPermissions>>, RpcError> {
    let permissions = given.managed_settings.as_ref();
    let Some(permissions) = permissions.and_then(|settings| settings.permissions.as_ref()) else {
        return Ok(None);
    };
    let launch = context.connection.launch();
    let mut rules = managed::read(permissions, &cwd.to_string_lossy(), launch.variable("HOME"))
        .map_err(|why| RpcError::InvalidParams(format!("managedSettings.permissions.{why}")))?;
    // This reads the disk a few times, but only for apps that have such rules.
    rules.deny = with_real_places(rules.deny);
    rules.ask = with_real_places(rules.ask);
    Ok(Some(Box::new(rules)))
}
