//! The policy that an app sets for its users when it opens a session. The daemon enforces all of
//! it, or refuses the session and names the setting that it cannot enforce.

use std::path::Path;

use loopd_proto::permission::ManagedPermissions;
use loopd_proto::session::PolicyParams;
use serde_json::Value;

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
    if let Some(why) = unenforceable(given) {
        return Err(RpcError::InvalidParams(why.to_owned()));
    }
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

/// Names the first setting that would restrict the session and that the daemon cannot enforce.
fn unenforceable(given: &PolicyParams) -> Option<&'static str> {
    let is_some = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let sandboxed =
        |config: &Value| !config.is_null() && config.get("enabled") != Some(&false.into());
    if given.enable_managed_settings == Some(true) {
        Some(
            "enableManagedSettings: the policy of an account or a device cannot be fetched here; give its rules as managedSettings",
        )
    } else if is_some(&given.excluded_managed_settings) {
        Some("excludedManagedSettings: there is no fetched policy to leave anything out of")
    } else if given.enforce_managed_model_defaults == Some(true) {
        Some(
            "enforceManagedModelDefaults: there is no fetched policy whose defaults could be enforced",
        )
    } else if given.sandbox_config.as_ref().is_some_and(sandboxed) {
        Some(
            "sandboxConfig: commands cannot be sandboxed yet; leave it out or set `enabled` to false",
        )
    } else if is_some(&given.allowed_models) {
        Some(
            "allowedModels: the choice of models cannot be narrowed yet; leave it out and name one model",
        )
    } else {
        None
    }
}
