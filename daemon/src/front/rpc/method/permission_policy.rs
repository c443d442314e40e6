//! The permission rules of a session: what is allowed without asking, and what is denied.

use std::path::Path;

use loopd_proto::params::permission::{
    ConfigureParams, EnabledParams, ModifyRulesParams, PathsConfig, RequiredParams, RuleScope,
    UrlsConfig,
};
use loopd_proto::params::session::{Of, Success};
use loopd_proto::permission::PermissionRule;

use super::permission_path;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::limit;
use crate::session::SessionHandle;
use loopd_kernel::command::{Command, PermissionChange, PermissionsPatch, RuleRemoval, RuleSet};
use loopd_kernel::policy::odd_rule::{OddRule, oddity};
use loopd_kernel::policy::tool_list::BUILT_IN;
use loopd_kernel::policy::{check_denied, check_kind, managed};

/// Changes the permissions of a session; the session decides whether the change is allowed.
pub(super) async fn change(
    session: &SessionHandle,
    change: PermissionChange,
) -> Result<Success, RpcError> {
    session.command(Command::ChangePermissions(change)).await?;
    Ok(Success::YES)
}

pub(super) async fn approve_all(
    context: Context,
    params: EnabledParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    change(&session, PermissionChange::ApproveAll(params.enabled)).await
}

pub(super) async fn unrestrict_urls(
    context: Context,
    params: EnabledParams,
) -> Result<Success, RpcError> {
    let session = context.session(&params.session_id)?;
    change(&session, PermissionChange::UnrestrictUrls(params.enabled)).await
}

/// Adds the real path of every rule for a path, so that no link leads around the rule.
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

/// Resolves links in a path, as far as the path exists.
fn real_path(path: &str) -> String {
    let path = Path::new(path);
    for ancestor in path.ancestors().filter(|ancestor| ancestor.is_absolute()) {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return real.join(rest).to_string_lossy().into_owned();
        }
    }
    path.to_string_lossy().into_owned()
}

/// Makes the paths of rules absolute and adds their real places. A relative path counts from the
/// directory of the session.
async fn placed(
    context: &Context,
    session: &SessionHandle,
    member: &str,
    mut rules: Vec<PermissionRule>,
) -> Result<Vec<PermissionRule>, RpcError> {
    let cwd = session.view(|view| view.state.cwd.clone()).await?;
    let launch = context.connection.launch();
    let user = launch.variable("HOME");
    for (at, rule) in rules.iter_mut().enumerate() {
        absolute(rule, &cwd, user).map_err(|why| {
            let argument = rule.argument.as_deref().unwrap_or_default();
            RpcError::InvalidParams(format!("{member}[{at}]: `{argument}` {why}"))
        })?;
    }
    tokio::task::spawn_blocking(move || with_real_places(rules))
        .await
        .map_err(|error| RpcError::Failed(error.to_string()))
}

/// Makes the path of a rule absolute. A path that could never match is refused.
fn absolute(rule: &mut PermissionRule, cwd: &str, user: Option<&str>) -> Result<(), String> {
    let is_place = matches!(rule.kind.as_str(), "read" | "write");
    if let Some(argument) = rule.argument.as_deref().filter(|_| is_place) {
        rule.argument = Some(managed::place(argument, cwd, user)?);
    }
    Ok(())
}

/// Refuses rules that would do nothing: those of an unknown kind, and those that match nothing of what they
/// seem to be about. The case of letters in the kind and blanks around the argument do not matter.
async fn check(
    context: &Context,
    session: &SessionHandle,
    member: &str,
    rules: &mut [PermissionRule],
) -> Result<(), RpcError> {
    limit::rules(member, rules)?;
    for (at, rule) in rules.iter_mut().enumerate() {
        rule.kind = rule.kind.to_ascii_lowercase();
        check_kind(rule)
            .map_err(|why| RpcError::InvalidParams(format!("{member}[{at}].kind: {why}")))?;
        let Some(argument) = rule.argument.as_deref().map(str::trim) else {
            continue;
        };
        let argument = argument.to_owned();
        let refused = match oddity(&rule.kind, &argument) {
            Some(OddRule::OddName(_)) if exists(context, session, &argument).await? => None,
            Some(odd) => Some(odd.why()),
            None => None,
        };
        if let Some(why) = refused {
            return Err(RpcError::InvalidParams(format!(
                "{member}[{at}]: `{argument}` {why}"
            )));
        }
        rule.argument = Some(argument);
    }
    Ok(())
}

/// Whether there is a file with exactly this name.
async fn exists(context: &Context, session: &SessionHandle, path: &str) -> Result<bool, RpcError> {
    let cwd = session.view(|view| view.state.cwd.clone()).await?;
    let launch = context.connection.launch();
    let Ok(path) = managed::place(path, &cwd, launch.variable("HOME")) else {
        return Ok(false);
    };
    Ok(tokio::fs::symlink_metadata(path).await.is_ok())
}

/// Refuses deny rules that would deny nothing: those about commands that cannot be understood, and those that
/// name a built-in tool as one of an app.
fn check_denials(member: &str, rules: &[PermissionRule]) -> Result<(), RpcError> {
    for rule in rules {
        let tool = rule.argument.as_deref().unwrap_or_default();
        if rule.kind == "custom-tool" && BUILT_IN.contains(&tool) {
            return Err(RpcError::InvalidParams(format!(
                "{member}: the rule custom-tool({tool}) denies nothing, because {tool} is a built-in tool; deny \
                 what it does (`shell`, `write`, `read`, `url`), or leave it out with `excludedTools`"
            )));
        }
        check_denied(rule).map_err(|error| {
            let argument = rule.argument.as_deref().unwrap_or_default();
            RpcError::InvalidParams(format!(
                "{member}: the rule {}({argument}) cannot be understood: {error}",
                rule.kind
            ))
        })?;
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
        check(&context, &session, "rules.denied", &mut rules.denied).await?;
        check(&context, &session, "rules.approved", &mut rules.approved).await?;
        check_denials("rules.denied", &rules.denied)?;
        let denied = std::mem::take(&mut rules.denied);
        rules.denied = placed(&context, &session, "rules.denied", denied).await?;
        let approved = std::mem::take(&mut rules.approved);
        rules.approved = placed(&context, &session, "rules.approved", approved).await?;
    }
    if let Some(paths) = &params.paths {
        for folder in paths.additional_directories.iter().flatten() {
            permission_path::check_absolute("paths.additionalDirectories", folder)?;
        }
        if let Some(folder) = &paths.workspace_path {
            permission_path::check_absolute("paths.workspacePath", folder)?;
        }
    }
    let patch = PermissionsPatch {
        approve_all: params.approve_all_tool_permission_requests,
        approve_all_reads: params.approve_all_read_permission_requests,
        rules: params.rules.map(|rules| RuleSet {
            approved: rules.approved,
            denied: rules.denied,
        }),
        ..paths_and_urls(params.paths, params.urls)
    };
    change(&session, PermissionChange::Configure(Box::new(patch))).await
}

fn paths_and_urls(paths: Option<PathsConfig>, urls: Option<UrlsConfig>) -> PermissionsPatch {
    let mut patch = PermissionsPatch::default();
    if let Some(paths) = paths {
        patch.unrestricted_paths = paths.unrestricted;
        patch.directories = paths.additional_directories;
        patch.extra_directory = (paths.include_temp_directory == Some(true))
            .then(|| std::env::temp_dir().to_string_lossy().into_owned());
        patch.primary_directory = paths.workspace_path;
    }
    if let Some(urls) = urls {
        patch.unrestricted_urls = urls.unrestricted;
        patch.allowed_urls = urls.initial_allowed;
    }
    patch
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
    check(&context, &session, "add", &mut params.add).await?;
    check(&context, &session, "loopdDeny", &mut params.deny).await?;
    check_denials("loopdDeny", &params.deny)?;
    // What is denied comes first, so that nothing runs in between.
    let deny = placed(&context, &session, "loopdDeny", params.deny).await?;
    if !deny.is_empty() {
        change(&session, PermissionChange::Deny(deny)).await?;
    }
    let remove = if params.remove_all {
        RuleRemoval::All
    } else {
        // A rule is removed as it is written and as it was stored.
        let mut remove = params.remove.clone();
        remove.extend(placed(&context, &session, "remove", params.remove).await?);
        RuleRemoval::These(remove)
    };
    let add = placed(&context, &session, "add", params.add).await?;
    change(&session, PermissionChange::ModifyRules { remove, add }).await
}

/// Sets whether permission requests go to the caller. The session keeps this with what the client
/// offered when it attached.
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
    change(&session, PermissionChange::Reset).await
}
