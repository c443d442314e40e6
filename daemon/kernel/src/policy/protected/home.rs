//! The home of the daemon, which is protected whatever its name is.

use std::path::{Component, Path};

use crate::policy::plain;
use crate::policy::shell::write_targets::WriteTargets;

/// Variables that name the home.
const VARIABLES: &[&str] = &["LOOPD_HOME", "COPILOT_HOME"];

/// Whether a path lies in the home. A directory of the session that lies in the home itself is not
/// counted: a session may work in a worktree there.
pub(super) fn has(home: &str, roots: &[String], path: &str) -> bool {
    let (home, path) = (plain(home), plain(path));
    let is_own = |root: &String| {
        let root = plain(root);
        root.starts_with(&home) && path.starts_with(root)
    };
    path.starts_with(&home) && !roots.iter().any(is_own)
}

/// Whether one of the names that a line may write to leads into the home: from a folder that `cd`
/// went to, or behind `~` or a variable.
pub(super) fn is_named<'n>(
    home: &str,
    roots: &[String],
    bases: &[&str],
    text: &str,
    names: impl Iterator<Item = &'n String> + Clone,
) -> bool {
    let mut all = names.clone();
    if all.clone().next().is_none() {
        return false;
    }
    if VARIABLES.iter().any(|variable| text.contains(variable)) {
        return true;
    }
    let expands = text.contains(['~', '$']);
    if expands && names.clone().any(|name| continues(home, name)) {
        return true;
    }
    let Some(targets) = WriteTargets::of(text) else {
        return true;
    };
    all.any(|name| {
        bases.iter().any(|base| {
            let mut folders = targets.directories.folders.iter();
            folders.any(|folder| {
                let path = Path::new(base).join(folder).join(name);
                has(home, roots, &path.to_string_lossy())
            })
        })
    })
}

/// Whether a name begins with the last parts of the home, so that it leads there from a folder above.
fn continues(home: &str, name: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let path = plain(path);
        let parts = path.components().filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        });
        parts.collect()
    };
    let (home, name) = (parts(home), parts(name));
    (1..=home.len()).any(|count| {
        let last = home.get(home.len() - count..).unwrap_or_default();
        name.starts_with(last)
    })
}
