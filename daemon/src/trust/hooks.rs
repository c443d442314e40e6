//! Which hooks run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::event::hook::VouchedFolder;
use loopd_store::Store;

use super::TrustedContent;
use super::own_guards::{self, OwnFound, OwnGuards};
use crate::discovery::Problem;
use crate::discovery::hooks::{
    GuardRecord, HeldFolder, HookDefinition, HookOrigin, HookPlaces, HookSource, LoadedHooks,
    UserHookPlaces, load,
};

/// Whether a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookState {
    Runs,
    /// Its folder is not trusted with it.
    NotTrusted {
        /// The folder was trusted, but the hook is new or has changed since.
        changed: bool,
    },
    /// `disableAllHooks` of this file turns it off.
    Off(PathBuf),
    /// The folder is trusted with this guard, and it is not there any more as it was trusted. It denies
    /// what it would be asked about.
    Missing,
}

/// A guard that a session has in force.
#[derive(Debug, Clone)]
pub struct HeldGuard {
    /// The folder that is trusted with it.
    pub folder: PathBuf,
    pub record: GuardRecord,
}

impl HeldGuard {
    /// Returns what a session keeps of a hook; `None` if it is no guard that needs trust.
    pub fn of(hook: &HookDefinition) -> Option<Self> {
        Some(Self {
            folder: hook.source.folder.clone()?,
            record: GuardRecord::of(hook)?,
        })
    }
}

/// The guards that have to be there.
struct WantedGuards<'a> {
    /// The folders that were searched.
    folders: &'a [PathBuf],
    /// The guards that the session has in force.
    held: &'a [HeldGuard],
    /// The folders that apps named.
    vouched: &'a [VouchedFolder],
    trusted: &'a TrustedContent,
    /// The guards that the user's own files had.
    own: Option<OwnGuards>,
    user: &'a UserHookPlaces,
}

impl WantedGuards<'_> {
    fn origin(&self, folder: &Path) -> HookOrigin {
        let mut vouched = self.vouched.iter();
        if vouched.any(|vouched| Path::new(&vouched.path) == folder) {
            HookOrigin::App
        } else {
            HookOrigin::Project
        }
    }

    /// Returns those that the folders are trusted with and that are not among the hooks found.
    fn missing(&self, found: &[GatedHook]) -> Vec<GatedHook> {
        let mut missing: Vec<GatedHook> = Vec::new();
        for folder in self.folders {
            let held = self.held.iter().filter(|guard| guard.folder == *folder);
            let recorded = self.trusted.guards(folder).iter();
            // Those of agents are looked for with the agents.
            let recorded = recorded.filter(|record| record.agent.is_none());
            for record in recorded.chain(held.map(|guard| &guard.record)) {
                let is_it = |gated: &GatedHook| {
                    gated.hook.source.folder.as_ref() == Some(folder)
                        && gated.hook.hash == record.hash
                        && !matches!(gated.state, HookState::NotTrusted { .. })
                };
                // A folder that was trusted again without it does not want it any more.
                let is_wanted = self.trusted.covers(folder, &record.hash);
                if !is_wanted || found.iter().chain(&missing).any(is_it) {
                    continue;
                }
                let source = HookSource::of_folder(self.origin(folder), folder);
                missing.extend(record.stand_in(source).map(|hook| GatedHook {
                    hook,
                    state: HookState::Missing,
                }));
            }
        }
        missing
    }
}

/// A hook, and whether it runs.
#[derive(Debug, Clone)]
pub struct GatedHook {
    pub hook: HookDefinition,
    pub state: HookState,
}

/// The hooks of a session, and what people should know about them.
#[derive(Debug, Clone, Default)]
pub struct GatedHooks {
    /// In the order of their origins: policy, user, project, plugins.
    pub hooks: Vec<GatedHook>,
    /// What is wrong with files.
    pub problems: Vec<Problem>,
    /// What does not count for want of trust, a notice per file.
    pub untrusted: Vec<Problem>,
    /// What to remember of the user's own files.
    pub own: OwnFound,
}

impl GatedHooks {
    /// Returns the hooks that run, and those that stand in for missing ones.
    pub fn running(&self) -> impl Iterator<Item = &HookDefinition> {
        let running = self.hooks.iter();
        let running = running.filter(|it| matches!(it.state, HookState::Runs | HookState::Missing));
        running.map(|it| &it.hook)
    }

    /// Returns the folders of projects whose guards are in force, and whether each is a plugin.
    pub fn guarding_folders(&self) -> impl Iterator<Item = (&Path, bool)> {
        // The log has those that apps named already.
        let guards = self.running().filter(|hook| {
            GuardRecord::of(hook).is_some() && hook.source.origin != HookOrigin::App
        });
        guards.filter_map(|hook| {
            let folder = hook.source.folder.as_deref()?;
            Some((folder, hook.source.plugin.is_some()))
        })
    }

    /// Returns everything that people should know.
    pub fn notices(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(&self.untrusted)
    }

    /// Decides which of the hooks that were found run.
    fn decide(loaded: LoadedHooks, wanted: &WantedGuards<'_>) -> Self {
        let trusted = wanted.trusted;
        let mut withheld = Vec::new();
        let mut off = None;
        for switch in loaded.switches {
            if trusted.covers(&switch.folder, &switch.hash) {
                off.get_or_insert(switch.file);
            } else {
                let what = format!(
                    "`disableAllHooks` does not turn off any hooks, because this folder is not trusted \
                     with it; to trust it: loop trust {}",
                    shell_word(&switch.folder)
                );
                withheld.push(Problem::new(&switch.file, what));
            }
        }
        let hooks = loaded.hooks.into_iter().map(|hook| {
            let state = match (&hook.off, &off, hook.source.origin, &hook.source.folder) {
                (_, _, HookOrigin::Policy, _) => HookState::Runs,
                (Some(file), ..) | (None, Some(file), ..) => HookState::Off(file.clone()),
                (None, None, _, Some(folder)) if !trusted.covers(folder, &hook.hash) => {
                    HookState::NotTrusted {
                        changed: trusted.knows(folder),
                    }
                }
                (None, None, ..) => HookState::Runs,
            };
            GatedHook { hook, state }
        });
        // What a folder that the session has left brings without trust never was in force.
        let is_left = |gated: &GatedHook| {
            let folder = gated.hook.source.folder.as_ref();
            matches!(gated.state, HookState::NotTrusted { .. })
                && folder.is_some_and(|folder| loaded.held.contains(folder))
        };
        let mut hooks: Vec<GatedHook> = hooks.filter(|gated| !is_left(gated)).collect();
        if let Some(own) = &wanted.own {
            for gated in &mut hooks {
                gated.hook.is_new = own.is_new(&gated.hook);
            }
        }
        if off.is_none() && loaded.disabled_by.is_none() {
            let missing = wanted.missing(&hooks);
            withheld.extend(missing.iter().filter_map(missed));
            hooks.extend(missing);
        }
        keep_one_of_each(&mut hooks);
        if off.is_none()
            && let Some(own) = &wanted.own
        {
            let missing = own.missing(&hooks, wanted.user);
            withheld.extend(missing.iter().filter_map(own_guards::missed));
            hooks.extend(missing);
        }
        withheld.extend(untrusted(&hooks));
        Self {
            hooks,
            problems: loaded.notices,
            untrusted: withheld,
            own: OwnFound {
                before: wanted.own.clone(),
                switch: loaded.disabled_by,
            },
        }
    }
}

/// Leaves out the hooks of projects and plugins that run because an app named their folder, too: none
/// runs twice.
fn keep_one_of_each(hooks: &mut Vec<GatedHook>) {
    let runs = |gated: &&GatedHook| {
        gated.hook.source.origin == HookOrigin::App && gated.state == HookState::Runs
    };
    let place = |gated: &GatedHook| (gated.hook.file.clone(), gated.hook.line);
    let by_apps: Vec<_> = hooks.iter().filter(runs).map(place).collect();
    hooks.retain(|gated| {
        gated.hook.source.origin == HookOrigin::App
            || gated.state == HookState::Missing
            || !by_apps.contains(&place(gated))
    });
}

/// How an app has its folder of hooks count as it is now.
pub const NAME_AGAIN: &str = "an app has to name the folder again (`hookDirectories` of session.resume or \
                              session.options.update)";

/// Says that a guard is missing.
fn missed(gated: &GatedHook) -> Option<Problem> {
    let hook = &gated.hook;
    let folder = shell_word(hook.source.folder.as_deref()?);
    let guard = GuardRecord::of(hook)?.shown();
    let what = if hook.source.origin == HookOrigin::App {
        format!(
            "the guard {guard} was changed, moved, deleted or turned off since an app named its folder; what \
             it guards is denied; {NAME_AGAIN}"
        )
    } else {
        format!(
            "the guard {guard} that this folder is trusted with was changed, moved, deleted or turned off; \
             what it guards is denied; to look and to trust the folder as it is now: loop trust {folder}"
        )
    };
    Some(Problem {
        line: Some(hook.line),
        ..Problem::new(&hook.file, what)
    })
}

/// Says which hooks do not run for want of trust, in a notice per file.
fn untrusted(hooks: &[GatedHook]) -> Vec<Problem> {
    let mut files: BTreeMap<&Path, Vec<&GatedHook>> = BTreeMap::new();
    for gated in hooks {
        if matches!(gated.state, HookState::NotTrusted { .. }) {
            files.entry(&gated.hook.file).or_default().push(gated);
        }
    }
    let notices = files.into_iter().filter_map(|(file, hooks)| {
        let first = hooks.first()?;
        let folder = shell_word(first.hook.source.folder.as_deref()?);
        let changed = hooks
            .iter()
            .all(|it| it.state == HookState::NotTrusted { changed: true });
        let why = if changed {
            "new or changed since the folder was trusted"
        } else {
            "from a folder that is not trusted with hooks"
        };
        let number = match hooks.len() {
            1 => "1 hook does".to_owned(),
            many => format!("{many} hooks do"),
        };
        let what = if first.hook.source.origin == HookOrigin::App {
            format!("{number} not run: new or changed since an app named this folder; {NAME_AGAIN}")
        } else {
            format!("{number} not run: {why}; to look and to trust: loop trust {folder}")
        };
        Some(Problem {
            line: Some(first.hook.line),
            ..Problem::new(file, what)
        })
    });
    notices.collect()
}

/// Returns a path as a shell reads it.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@:".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Adds the trusted folders above a project to its places: their guards, and their rules that deny or
/// ask, hold below them. A repository inside of such a folder, which anybody can make, does not get rid
/// of them.
pub async fn hold_above(store: &dyn Store, places: &mut HookPlaces) {
    let Some(project) = places.projects.first().cloned() else {
        return;
    };
    // A record that cannot be read trusts nothing; `load_hooks` tells why.
    let trusted = TrustedContent::read(store).await.unwrap_or_default();
    for folder in trusted.above(&project) {
        if places.held.iter().any(|held| held.path == folder) {
            continue;
        }
        let root = super::project_root(folder);
        places.held.push(HeldFolder {
            path: folder.to_owned(),
            root: if trusted.knows(&root) {
                root
            } else {
                folder.to_owned()
            },
            plugin: false,
        });
    }
}

/// Loads the hooks of a session and decides which run. `held` are the guards that the session has in
/// force. If the record of trust cannot be read, those stay in force, and nothing else of a project
/// runs.
pub async fn load_hooks(store: &dyn Store, places: HookPlaces, held: Vec<HeldGuard>) -> GatedHooks {
    let root = places.projects.first().cloned().unwrap_or_default();
    let folders = places.trusted_folders();
    let has_files = places.has_files();
    if !has_files && folders.is_empty() {
        // The usual case, in which there is nothing to decide.
        let own = OwnFound {
            before: OwnGuards::read(store).await.unwrap_or_default(),
            switch: None,
        };
        return GatedHooks {
            own,
            ..GatedHooks::default()
        };
    }
    let mut notices = Vec::new();
    let mut trusted = TrustedContent::read(store).await.unwrap_or_else(|error| {
        let what = format!("its hooks do not run: what is trusted could not be read: {error}");
        notices.push(Problem::new(&root, what));
        TrustedContent::of_guards(&held)
    });
    let own = OwnGuards::read(store).await.unwrap_or_else(|error| {
        let what = format!("it is not known which guards your own files had: {error}");
        notices.push(Problem::new(&root, what));
        None
    });
    trusted.vouch(&places.vouched);
    let vouched = places.vouched.clone();
    let user = places.user.clone();
    let mut loaded = LoadedHooks::default();
    if has_files {
        let read = tokio::task::spawn_blocking(move || load(&places)).await;
        loaded = read.unwrap_or_else(|error| {
            let what = format!("its hooks could not be read: {error}");
            notices.push(Problem::new(&root, what));
            LoadedHooks::default()
        });
    }
    loaded.notices.append(&mut notices);
    if let Some(held) = own.as_ref().and_then(|own| own.hold(&mut loaded)) {
        loaded.notices.push(held);
    }
    let wanted = WantedGuards {
        folders: &folders,
        held: &held,
        vouched: &vouched,
        trusted: &trusted,
        own,
        user: &user,
    };
    GatedHooks::decide(loaded, &wanted)
}
