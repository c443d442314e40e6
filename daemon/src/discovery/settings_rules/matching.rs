//! Finds the files that rules with wildcards name.

use std::collections::VecDeque;
use std::path::PathBuf;

use loopd_kernel::policy::path_pattern;
use loopd_proto::permission::PermissionRule;

/// The most entries of folders that are looked at.
pub(super) const MOST_ENTRIES: usize = 20_000;

/// The files and folders that a pattern names.
pub(super) struct Matching {
    pub(super) paths: Vec<String>,
    pub(super) is_complete: bool,
}

impl Default for Matching {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            is_complete: true,
        }
    }
}

/// Finds what exists, the nearest folders first. Links are not followed.
pub(super) fn matching(rule: &PermissionRule, pattern: &str) -> Matching {
    let argument = rule.argument.as_deref().unwrap_or_default();
    let parts = pattern.split('/').take_while(|it| !it.contains(['*', '?']));
    let start: PathBuf = std::iter::once("/").chain(parts).collect();
    let mut found = Matching::default();
    let mut waiting = VecDeque::from([start]);
    let mut left = MOST_ENTRIES;
    while let Some(folder) = waiting.pop_front() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else {
                found.is_complete = false;
                return found;
            };
            left = fewer;
            let path = entry.path();
            let shown = path.to_string_lossy();
            if path_pattern::covers(argument, &shown) {
                found.paths.push(shown.into_owned());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push_back(path);
            }
        }
    }
    found
}
