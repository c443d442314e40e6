//! Our own methods about hooks of files.

use std::path::Path;

use loopd_proto::params::hook_list::{
    HookActionKind, HookList, HookListParams, ListedHook, ListedHookState,
};

use super::discover::{places, shown};
use super::discovery_problems::describe;
use crate::discovery::hooks::{HookAction, HookPlaces};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust::{GatedHook, GatedHooks, HookState, load_hooks, project_root};

pub(super) async fn list(context: Context, params: HookListParams) -> Result<HookList, RpcError> {
    let named = params.cwd.map(|path| vec![path]);
    let named = places(&context, "cwd", named.as_deref())?;
    let cwd = named.into_iter().next();
    let cwd = cwd.unwrap_or_else(|| context.connection.launch().cwd.clone());
    let found = load(&context, &cwd).await;
    Ok(HookList {
        hooks: found.hooks.iter().map(listed).collect(),
        problems: found.notices.iter().map(describe).collect(),
    })
}

/// Loads the hooks for sessions that this client opens in a directory.
pub(super) async fn load(context: &Context, cwd: &Path) -> GatedHooks {
    let launch = context.connection.launch();
    let services = &context.app.services;
    let mut places = HookPlaces::of(&launch.env, &services.home, cwd, &project_root(cwd));
    places.plugins = launch.plugins();
    load_hooks(services.store.as_ref(), places).await
}

fn listed(gated: &GatedHook) -> ListedHook {
    let hook = &gated.hook;
    let matcher = hook.matcher.to_string();
    let (state, why) = match &gated.state {
        HookState::Runs => (ListedHookState::Runs, None),
        HookState::NotTrusted { changed } => {
            let why = if *changed {
                "new or changed since its folder was trusted; see `loop trust`"
            } else {
                "its folder is not trusted with it; see `loop trust`"
            };
            (ListedHookState::Untrusted, Some(why.to_owned()))
        }
        HookState::Off(file) => {
            let why = format!("`disableAllHooks` of {} turns it off", file.display());
            (ListedHookState::Off, Some(why))
        }
    };
    ListedHook {
        event: hook.kind_name().to_owned(),
        origin: hook.source.origin.name().to_owned(),
        file: shown(&hook.file),
        line: hook.line,
        matcher: Some(matcher).filter(|matcher| !matcher.is_empty()),
        condition: hook.condition.as_ref().map(ToString::to_string),
        action: match hook.action {
            HookAction::Script { .. } | HookAction::Program { .. } => HookActionKind::Command,
            HookAction::Http { .. } => HookActionKind::Http,
            HookAction::Prompt { .. } => HookActionKind::Prompt,
        },
        command: hook.action.to_string(),
        files: hook.named_files.iter().map(|file| shown(file)).collect(),
        timeout_sec: hook.timeout.as_secs_f64(),
        state,
        why,
        hash: hook.hash.to_string(),
        runs: None,
        last_ms: None,
    }
}
