//! Disables every program that a repository's configuration makes git run. The repository and its
//! configuration are not trusted.
//!
//! Our settings come last and override those of the repository: hooks, filters, the file system
//! monitor, credential helpers and all transports are disabled. They are passed as
//! `GIT_CONFIG_KEY_<n>` variables, because `git -c` would misread some names.

use std::collections::{BTreeMap, BTreeSet};

/// A path at which there can be no hook.
const NO_HOOKS: &str = "/dev/null";

/// The maximum number of filters and hooks that are disabled; with more, git is not run.
const MAX_NAMES: usize = 200;

/// The maximum number of settings that are kept from the caller's environment.
const MAX_GIVEN: usize = 100;

/// Settings that override those of every repository.
const ALWAYS: [(&str, &str); 18] = [
    ("core.hooksPath", NO_HOOKS),
    ("core.fsmonitor", "false"),
    // Turn off features by which git assumes that a file is unchanged.
    ("core.untrackedCache", "false"),
    ("core.ignoreStat", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    // Commits of an agent are found in the reflog of HEAD.
    ("core.logAllRefUpdates", "true"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("status.showUntrackedFiles", "all"),
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("credential.interactive", "false"),
    ("protocol.allow", "never"),
    // Relative paths would raise the format version of the user's repository.
    ("worktree.useRelativePaths", "false"),
];

/// Environment variables that override those of the caller.
const VARIABLES: [(&str, &str); 7] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    // Overrides `protocol.<name>.allow`: no protocol is allowed.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    // Error messages are parsed in English.
    ("LC_ALL", "C"),
    ("LANGUAGE", ""),
];

/// The programs that a configuration names and that must be disabled by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DisabledPrograms {
    pub(super) filters: BTreeSet<String>,
    /// Hooks in the configuration, which newer versions of git support.
    hooks: BTreeSet<String>,
    /// Whether this is a partial clone, in which objects may be missing.
    pub(super) partial: bool,
}

/// Why git must not be run with a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnusableConfiguration {
    /// Our settings have no effect.
    GitTooOld,
    Odd(String),
}

impl DisabledPrograms {
    /// Parses the output of `git config --list -z`, which must have been run with our settings.
    pub(super) fn of_list(list: &[u8]) -> Result<Self, UnusableConfiguration> {
        let mut disabled = Self::default();
        let mut hooks_path = None;
        for entry in list.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
            let mut parts = entry.splitn(2, |byte| *byte == b'\n');
            let key = parts.next().unwrap_or_default();
            let value = parts.next().unwrap_or_default();
            match key {
                b"core.hookspath" => hooks_path = Some(value),
                b"extensions.partialclone" => disabled.partial = true,
                _ => disabled.take(key)?,
            }
        }
        if hooks_path != Some(NO_HOOKS.as_bytes()) {
            return Err(UnusableConfiguration::GitTooOld);
        }
        Ok(disabled)
    }

    fn take(&mut self, key: &[u8]) -> Result<(), UnusableConfiguration> {
        let names = if key.starts_with(b"filter.") {
            &mut self.filters
        } else if key.starts_with(b"hook.") {
            &mut self.hooks
        } else {
            self.partial |= key.starts_with(b"remote.") && key.ends_with(b".promisor");
            return Ok(());
        };
        let name = String::from_utf8(key.to_vec())
            .map_err(|_| UnusableConfiguration::Odd("a name is not UTF-8".to_owned()))?;
        // The name in the middle may contain dots.
        if let Some((section, _)) = name.rsplit_once('.')
            && let Some((_, name)) = section.split_once('.')
        {
            names.insert(name.to_owned());
        }
        if names.len() > MAX_NAMES {
            return Err(UnusableConfiguration::Odd(format!("more than {MAX_NAMES}")));
        }
        Ok(())
    }

    /// The environment in which git runs no other program.
    pub(super) fn environment(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env: BTreeMap<String, String> = given
            .iter()
            .filter(|(name, _)| is_kept(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for (name, value) in VARIABLES {
            env.insert(name.to_owned(), value.to_owned());
        }
        let always = ALWAYS.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut settings = given_settings(given);
        settings.extend(always);
        for name in &self.filters {
            for (key, value) in [
                ("smudge", ""),
                ("clean", ""),
                ("process", ""),
                ("required", "false"),
            ] {
                settings.push((format!("filter.{name}.{key}"), value.to_owned()));
            }
        }
        for name in &self.hooks {
            settings.push((format!("hook.{name}.enabled"), "false".to_owned()));
        }
        env.insert("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string());
        for (index, (key, value)) in settings.into_iter().enumerate() {
            env.insert(format!("GIT_CONFIG_KEY_{index}"), key);
            env.insert(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        env
    }
}

/// Whether a `GIT_` variable is kept. Such variables can point to other repositories, programs and
/// files; only those are kept that locate the user's configuration and control how repositories are
/// found.
fn is_kept(name: &str) -> bool {
    const KEPT: [&str; 6] = [
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_EXEC_PATH",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    ];
    !name.starts_with("GIT_") || KEPT.contains(&name)
}

/// The settings in the caller's environment, such as `safe.directory`; all of them or none.
fn given_settings(given: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let count = given.get("GIT_CONFIG_COUNT");
    let count: usize = count.and_then(|text| text.parse().ok()).unwrap_or(0);
    if count > MAX_GIVEN {
        return Vec::new();
    }
    let setting = |index: usize| {
        let key = given.get(&format!("GIT_CONFIG_KEY_{index}"))?;
        let value = given.get(&format!("GIT_CONFIG_VALUE_{index}"))?;
        Some((key.clone(), value.clone()))
    };
    (0..count)
        .map(setting)
        .collect::<Option<_>>()
        .unwrap_or_default()
}
