//! Lists the hooks of files.

use std::path::Path;

use loopd_proto::params::discovery::FileProblem;
use loopd_proto::params::hook_list::{
    DiscoveredHook, DiscoveredHooks, HookActionKind, HookList, HookListParams, HooksAccepted,
    HooksParams, ListedHook, ListedHookState,
};
use loopd_proto::session::SessionOptions;

use super::discover::{host, look, places, shown};
use super::discovery_problems::describe;
use super::hook_folders;
use crate::discovery::Problem;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::{
    self, GuardRecord, HookAction, HookOrigin, HookPlaces, UserHookPlaces,
};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::hook_times::HookTimes;
use crate::subagent::definitions::{self, ProjectTrust, Roster, RosterInput};
use crate::trust::{
    ACCEPT, AcceptedGuards, GatedHook, GatedHooks, HookState, OwnContent, accept_agent_guards,
    accept_own, hold_above, load_hooks, own_agent_guards, project_root, tell_unseen,
};

pub(super) async fn list(context: Context, params: HookListParams) -> Result<HookList, RpcError> {
    let named = params.cwd.map(|path| vec![path]);
    let named = places(&context, "cwd", named.as_deref())?;
    let cwd = named.into_iter().next();
    let cwd = cwd.unwrap_or_else(|| context.connection.launch().cwd.clone());
    let mut found = load(&context, &cwd).await;
    add_agents(&context, &cwd, &mut found).await?;
    let times = &context.app.services.hook_times;
    Ok(HookList {
        hooks: found.hooks.iter().map(|hook| listed(hook, times)).collect(),
        problems: found.notices().map(describe).collect(),
    })
}

/// Loads the hooks for sessions that this client opens in a directory.
pub(super) async fn load(context: &Context, cwd: &Path) -> GatedHooks {
    let mut places = places_of(context, cwd);
    let store = context.app.services.store.as_ref();
    hold_above(store, &mut places).await;
    load_hooks(store, places, Vec::new()).await
}

/// Returns the agents that sessions in this directory may start or work as.
async fn roster(context: &Context, cwd: &Path) -> Result<Roster, RpcError> {
    let store = context.app.services.store.as_ref();
    let trust = ProjectTrust::read(store, cwd).await?;
    let options = SessionOptions {
        enable_config_discovery: Some(true),
        ..SessionOptions::default()
    };
    let mut agents = RosterInput::of_session(&options, cwd, host(context), trust);
    agents.plugins.extend(context.connection.launch().plugins());
    agents.own_guards = own_agent_guards(store).await;
    look(move || definitions::load(&agents)).await
}

/// Adds the hooks of agents that sessions in this directory may start or work as.
async fn add_agents(context: &Context, cwd: &Path, found: &mut GatedHooks) -> Result<(), RpcError> {
    let roster = roster(context, cwd).await?;
    for own in roster.hooks() {
        found.hooks.extend(own.hooks.iter().map(|hook| GatedHook {
            hook: hook.clone(),
            state: if hook.missing {
                HookState::Missing
            } else {
                HookState::Runs
            },
        }));
    }
    found.problems.extend_from_slice(roster.hook_problems());
    Ok(())
}

/// Accepts the user's own files of hooks as they are now.
pub(super) async fn accept(
    context: Context,
    params: HookListParams,
) -> Result<HooksAccepted, RpcError> {
    let named = params.cwd.map(|path| vec![path]);
    let named = places(&context, "cwd", named.as_deref())?;
    let cwd = named.into_iter().next();
    let cwd = cwd.unwrap_or_else(|| context.connection.launch().cwd.clone());
    let places = places_of(&context, &cwd);
    let user = places.user.clone();
    let hooks = look(move || hooks::load(&places)).await?;
    let store = context.app.services.store.as_ref();
    let AcceptedGuards {
        mut given_up,
        mut added,
        switches,
    } = accept_own(store, &hooks, &user).await?;
    // Whoever accepts the files knows what is in them.
    let accepted = load(&context, &cwd).await;
    let own: Vec<OwnContent> = OwnContent::of_hooks(&accepted).collect();
    tell_unseen(store, &own).await;
    let agents = roster(&context, &cwd).await?;
    let of_agents = accept_agent_guards(store, agents.own_guards()).await?;
    given_up.extend(of_agents.given_up);
    added.extend(of_agents.added);
    Ok(HooksAccepted {
        given_up: given_up.iter().map(placed).collect(),
        added: added.iter().map(placed).collect(),
        turned_off_by: switches.iter().map(|file| shown(file)).collect(),
    })
}

/// Names a guard with its place.
fn placed(guard: &GuardRecord) -> FileProblem {
    FileProblem {
        file: shown(&guard.file),
        line: Some(guard.line),
        message: guard.shown(),
    }
}

fn places_of(context: &Context, cwd: &Path) -> HookPlaces {
    let launch = context.connection.launch();
    let home = &context.app.services.home;
    let mut places = HookPlaces::of(&launch.env, home, cwd, &project_root(cwd));
    places.plugins = launch.plugins();
    places
}

pub(super) async fn discover(
    context: Context,
    params: HooksParams,
) -> Result<DiscoveredHooks, RpcError> {
    let projects = places(&context, "projectPaths", params.project_paths.as_deref())?;
    let given = params.project_paths.unwrap_or_default();
    let mut found = DiscoveredHooks::default();
    // Without a project, the hooks of the user and of policy.
    let cwd = context.connection.launch().cwd.clone();
    let without = vec![(None, cwd)];
    let named: Vec<_> = given.into_iter().map(Some).zip(projects).collect();
    for (project, cwd) in if named.is_empty() { without } else { named } {
        let folders = params.hook_directories.as_deref();
        let vouched = hook_folders::vouched(&context, folders, &cwd).await?;
        let mut places = places_of(&context, &cwd);
        if project.is_none() {
            places.projects.clear();
            places.root = None;
        }
        let env = &context.connection.launch().env;
        let mut places = places.vouching(vouched.unwrap_or_default(), env, || project_root(&cwd));
        if params.exclude_host_hooks {
            places.user = UserHookPlaces::default();
            places.plugins.clear();
        }
        let store = context.app.services.store.as_ref();
        let loaded = load_hooks(store, places, Vec::new()).await;
        let prefix = project.as_ref().map(|project| format!("{project}: "));
        let prefix = prefix.unwrap_or_default();
        let tell = |problem: &Problem| format!("{prefix}{problem}");
        found.errors.extend(loaded.problems.iter().map(tell));
        found.warnings.extend(loaded.untrusted.iter().map(tell));
        for (number, gated) in loaded.hooks.iter().enumerate() {
            found
                .hooks
                .extend(discovered(gated, number, project.as_deref()));
        }
    }
    Ok(found)
}

/// Describes a hook as the public protocol does; `None` if its folder is not trusted with it.
fn discovered(gated: &GatedHook, number: usize, project: Option<&str>) -> Option<DiscoveredHook> {
    let hook = &gated.hook;
    let enabled = match gated.state {
        HookState::Runs | HookState::Missing => true,
        HookState::Off(_) => false,
        HookState::NotTrusted { .. } => return None,
    };
    let source = shown(&hook.file);
    let number = number.to_string();
    let id = [
        project.unwrap_or_default(),
        &source,
        hook.hash.as_str(),
        &number,
    ];
    Some(DiscoveredHook {
        id: ContentHash::of(id.map(str::as_bytes)).to_string(),
        hook_type: hook.kind.native_name().to_owned(),
        origin: match hook.source.origin {
            HookOrigin::Policy => "policy",
            // The public schema has no word for an app.
            HookOrigin::User | HookOrigin::App => "user",
            HookOrigin::Project | HookOrigin::Agent => "repository",
            HookOrigin::Plugin => "plugin",
        }
        .to_owned(),
        source: Some(source),
        project_path: project.map(str::to_owned),
        enabled,
    })
}

fn listed(gated: &GatedHook, times: &HookTimes) -> ListedHook {
    let hook = &gated.hook;
    let time = times.of(&hook.hash);
    let matcher = hook.matcher.to_string();
    let (state, why) = match &gated.state {
        HookState::Runs => {
            let why = hook.unusable.as_ref();
            let why =
                why.map(|why| format!("it cannot be used, and what it guards is denied: {why}"));
            let is_new = hook.is_new.then(|| {
                format!("it is new, and what it allows does not count; if it is yours: {ACCEPT}")
            });
            let why = why.or(is_new);
            (ListedHookState::Runs, why)
        }
        HookState::NotTrusted { changed } => {
            let why = if *changed {
                "new or changed since its folder was trusted; see `loop trust`"
            } else {
                "its folder is not trusted with it; see `loop trust`"
            };
            (ListedHookState::Untrusted, Some(why.to_owned()))
        }
        HookState::Missing if hook.source.folder.is_none() => {
            let why = format!(
                "it was changed, moved, deleted or turned off since loopd last used it, and a person is \
                 asked about what it guards; if this is how you want it: {ACCEPT}"
            );
            (ListedHookState::Untrusted, Some(why))
        }
        HookState::Missing => {
            let why = "it is not there as its folder was trusted with it, and what it guards is denied; \
                       see `loop trust`";
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
        runs: time.map(|time| time.runs),
        last_ms: time.map(|time| u64::try_from(time.last.as_millis()).unwrap_or(u64::MAX)),
    }
}
