//! The rules of a session: what needs no question, what is never allowed.

use std::path::Path;

use loopd_proto::params::permission::{
    ConfigureParams, EnabledParams, ModifyRulesParams, RequiredParams, RuleScope,
};
use loopd_proto::params::session::{Of, Success};
use loopd_proto::permission::{PermissionRule, Permissions};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::command::Command;
use loopd_kernel::policy::{check_denied, check_kind};

/// Reads the rules, changes them, writes them back.
pub(super) async fn change(
    session: &SessionHandle,
    change: impl FnOnce(&mut Permissions),
) -> Result<Success, RpcError> {
    let mut permissions = session.state(|state| state.permissions.clone()).await?;
    change(&mut permissions);
    session
        .command(Command::SetPermissions(Box::new(permissions)))
        .await?;
    Ok(Success::YES)
}

pub(super) async fn approve_all(
    context: Context,
    params: EnabledParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    change(&session, |p| p.approve_all = params.enabled).await
}

pub(super) async fn unrestrict_urls(
    context: Context,
    params: EnabledParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    change(&session, |p| p.unrestricted_urls = params.enabled).await
}

/// Adds the real path of every denied place, so that no link leads around a rule.
pub(super) fn with_real_places(rules: Vec<PermissionRule>) -> Vec<PermissionRule> {
    let mut all = rules.clone();
    for rule in rules {
        let is_place = matches!(rule.kind.as_str(), "read" | "write");
        let real = rule.argument.as_deref().filter(|_| is_place).map(real_path);
        if let Some(real) = real.filter(|real| rule.argument.as_deref() != Some(real)) {
            all.push(PermissionRule {
                kind: rule.kind,
                argument: Some(real),
            });
        }
    }
    all
}

/// The path without links, as far as it exists.
fn real_path(path: &str) -> String {
    let path = Path::new(path);
    for ancestor in path.ancestors().filter(|ancestor| ancestor.is_absolute()) {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return real.join(rest).to_string_lossy().into_owned();
        }
    }
    path.to_string_lossy().into_owned()
}

/// Refuses rules that would do nothing; capitals do not matter.
fn check_kinds(member: &str, rules: &mut [PermissionRule]) -> Result<(), RpcError> {
    for (at, rule) in rules.iter_mut().enumerate() {
        rule.kind = rule.kind.to_ascii_lowercase();
        check_kind(rule)
            .map_err(|why| RpcError::InvalidParams(format!("{member}[{at}].kind: {why}")))?;
    }
    Ok(())
}

pub(super) async fn configure(
    context: Context,
    params: ConfigureParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    let mut params = params;
    if let Some(rules) = &mut params.rules {
        check_kinds("rules.denied", &mut rules.denied)?;
        check_kinds("rules.approved", &mut rules.approved)?;
        for rule in &rules.denied {
            check_denied(rule).map_err(|error| {
                let argument = rule.argument.as_deref().unwrap_or_default();
                RpcError::InvalidParams(format!(
                    "rules.denied: the rule {}({argument}) cannot be understood: {error}",
                    rule.kind
                ))
            })?;
        }
        let denied = std::mem::take(&mut rules.denied);
        rules.denied = tokio::task::spawn_blocking(move || with_real_places(denied))
            .await
            .map_err(|error| RpcError::Failed(error.to_string()))?;
    }
    change(&session, |permissions| {
        if let Some(all) = params.approve_all_tool_permission_requests {
            permissions.approve_all = all;
        }
        if let Some(reads) = params.approve_all_read_permission_requests {
            permissions.approve_all_reads = reads;
        }
        if let Some(rules) = params.rules {
            permissions.approved = rules.approved;
            permissions.denied = rules.denied;
        }
        if let Some(paths) = params.paths {
            if let Some(unrestricted) = paths.unrestricted {
                permissions.unrestricted_paths = unrestricted;
            }
            if let Some(directories) = paths.additional_directories {
                permissions.directories = directories;
            }
            if paths.include_temp_directory == Some(true) {
                let temp = std::env::temp_dir().to_string_lossy().into_owned();
                permissions.directories.push(temp);
            }
            if paths.workspace_path.is_some() {
                permissions.primary_directory = paths.workspace_path;
            }
        }
        if let Some(urls) = params.urls {
            if let Some(unrestricted) = urls.unrestricted {
                permissions.unrestricted_urls = unrestricted;
            }
            if let Some(allowed) = urls.initial_allowed {
                permissions.allowed_urls = allowed;
            }
        }
    })
    .await
}

pub(super) async fn modify_rules(
    context: Context,
    params: ModifyRulesParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    if params.scope == RuleScope::Location {
        return Err(RpcError::InvalidParams(
            "scope: rules of a location are added with session.permissions.locations.addToolApproval"
                .to_owned(),
        ));
    }
    let mut params = params;
    check_kinds("add", &mut params.add)?;
    change(&session, |permissions| {
        if params.remove_all {
            permissions.approved.clear();
        }
        permissions
            .approved
            .retain(|rule| !params.remove.contains(rule));
        let new: Vec<PermissionRule> = params
            .add
            .into_iter()
            .filter(|rule| !permissions.approved.contains(rule))
            .collect();
        permissions.approved.extend(new);
    })
    .await
}

/// Whether questions reach the caller is part of what it offered when it attached.
pub(super) async fn set_required(
    context: Context,
    params: RequiredParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    session
        .require_permissions(context.connection.id(), params.required)
        .await?;
    Ok(Success::YES)
}

pub(super) async fn reset(context: Context, params: Of) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    change(&session, |permissions| {
        permissions.approve_all = false;
        permissions.approved.clear();
        permissions.allowed_urls.clear();
    })
    .await
}
