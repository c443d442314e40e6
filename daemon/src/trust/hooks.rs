//! Which hooks run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_store::Store;

use super::TrustedContent;
use crate::discovery::Problem;
use crate::discovery::hooks::{HookDefinition, HookOrigin, HookPlaces, LoadedHooks, load};

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
}

impl GatedHooks {
    /// Returns the hooks that run.
    pub fn running(&self) -> impl Iterator<Item = &HookDefinition> {
        let running = self.hooks.iter().filter(|it| it.state == HookState::Runs);
        running.map(|it| &it.hook)
    }

    /// Returns everything that people should know.
    pub fn notices(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(&self.untrusted)
    }

    /// Decides which of the hooks that were found run.
    pub fn decide(loaded: LoadedHooks, trusted: &TrustedContent) -> Self {
        let mut withheld = Vec::new();
        let mut off = None;
        for switch in loaded.switches {
            if trusted.covers(&switch.folder, &switch.hash) {
                off.get_or_insert(switch.file);
            } else {
                let what = format!(
                    "`disableAllHooks` does not turn off your own hooks, because this folder is not \
                     trusted with it; to trust it: loop trust {}",
                    quoted(&switch.folder)
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
        let hooks: Vec<GatedHook> = hooks.collect();
        withheld.extend(untrusted(&hooks));
        Self {
            hooks,
            problems: loaded.notices,
            untrusted: withheld,
        }
    }
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
        let folder = quoted(first.hook.source.folder.as_deref()?);
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
        let what = format!("{number} not run: {why}; to look and to trust: loop trust {folder}");
        Some(Problem {
            line: Some(first.hook.line),
            ..Problem::new(file, what)
        })
    });
    notices.collect()
}

/// Returns a path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@:".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Loads the hooks of a session and decides which run. If the record of trust cannot be read, nothing
/// of a project runs.
pub async fn load_hooks(store: &dyn Store, places: HookPlaces) -> GatedHooks {
    if !places.has_files() {
        // The usual case, in which no other thread is needed.
        return GatedHooks::default();
    }
    let root = places.projects.first().cloned().unwrap_or_default();
    let read = tokio::task::spawn_blocking(move || load(&places)).await;
    let mut loaded = read.unwrap_or_else(|error| LoadedHooks {
        notices: vec![Problem::new(
            &root,
            format!("its hooks could not be read: {error}"),
        )],
        ..LoadedHooks::default()
    });
    let trusted = TrustedContent::read(store).await.unwrap_or_else(|error| {
        let what = format!("its hooks do not run: what is trusted could not be read: {error}");
        loaded.notices.push(Problem::new(&root, what));
        TrustedContent::default()
    });
    GatedHooks::decide(loaded, &trusted)
}
