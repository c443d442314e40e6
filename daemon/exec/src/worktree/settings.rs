//! What git may not do for us: the repository is not trusted, and neither is its configuration.
//!
//! Everything that makes git start a program of the repository's choice is switched off by settings
//! that come last and win: hooks, filters, the file system monitor, credentials, every transport.
//! Settings travel as `GIT_CONFIG_KEY_<n>` variables, which take names that `git -c` would misread.

use std::collections::{BTreeMap, BTreeSet};

/// A folder in which there can be no hook.
const NO_HOOKS: &str = "/dev/null";

/// How many filters and hooks of a configuration are switched off; with more, nothing is run.
const MOST_NAMES: usize = 200;

/// How many settings are taken over from the variables of the caller.
const MOST_GIVEN: usize = 100;

/// What is set whatever the repository says.
const ALWAYS: [(&str, &str); 18] = [
    ("core.hooksPath", NO_HOOKS),
    ("core.fsmonitor", "false"),
    // What makes git trust a file to be as it was.
    ("core.untrackedCache", "false"),
    ("core.ignoreStat", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    // Commits of an agent are found in the log of its HEAD.
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
    // Would raise the version of the user's repository.
    ("worktree.useRelativePaths", "false"),
];

/// What the environment says whatever it said before.
const VARIABLES: [(&str, &str); 7] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    // Wins over `protocol.<name>.allow`: no name is allowed.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    // Messages are read.
    ("LC_ALL", "C"),
    ("LANGUAGE", ""),
];

/// The programs that a configuration names, to be switched off one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Off {
    pub(super) filters: BTreeSet<String>,
    /// Hooks that newer versions of git take from the configuration.
    hooks: BTreeSet<String>,
    /// Whether objects may be missing that a remote could bring.
    pub(super) partial: bool,
}

/// Why a configuration is not one to run git with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// Our settings had no effect.
    GitTooOld,
    Odd(String),
}

impl Off {
    /// Reads `git config --list -z`, which has to have been run with our settings.
    pub(super) fn of_list(list: &[u8]) -> Result<Self, Unusable> {
        let mut off = Self::default();
        let mut hooks_path = None;
        for entry in list.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
            let mut parts = entry.splitn(2, |byte| *byte == b'\n');
            let key = parts.next().unwrap_or_default();
            let value = parts.next().unwrap_or_default();
            match key {
                b"core.hookspath" => hooks_path = Some(value),
                b"extensions.partialclone" => off.partial = true,
                _ => off.take(key)?,
            }
        }
        if hooks_path != Some(NO_HOOKS.as_bytes()) {
            return Err(Unusable::GitTooOld);
        }
        Ok(off)
    }

    fn take(&mut self, key: &[u8]) -> Result<(), Unusable> {
        let names = if key.starts_with(b"filter.") {
            &mut self.filters
        } else if key.starts_with(b"hook.") {
            &mut self.hooks
        } else {
            self.partial |= key.starts_with(b"remote.") && key.ends_with(b".promisor");
            return Ok(());
        };
        let name = String::from_utf8(key.to_vec())
            .map_err(|_| Unusable::Odd("a name is not UTF-8".to_owned()))?;
        // The name in the middle may itself have dots.
        if let Some((section, _)) = name.rsplit_once('.')
            && let Some((_, name)) = section.split_once('.')
        {
            names.insert(name.to_owned());
        }
        if names.len() > MOST_NAMES {
            return Err(Unusable::Odd(format!("more than {MOST_NAMES}")));
        }
        Ok(())
    }

    /// The environment in which git runs nothing but itself.
    pub(super) fn environment(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env: BTreeMap<String, String> = given
            .iter()
            .filter(|(name, _)| may_stay(name))
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

/// Variables of git itself point to other repositories, programs and files; only those stay that say
/// where a person's configuration is and how repositories are found.
fn may_stay(name: &str) -> bool {
    const STAY: [&str; 6] = [
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_EXEC_PATH",
        "GIT_CEILING_DIRECTORIES",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    ];
    !name.starts_with("GIT_") || STAY.contains(&name)
}

/// The settings that the caller's own variables bring, such as `safe.directory`; all or none.
fn given_settings(given: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let count = given.get("GIT_CONFIG_COUNT");
    let count: usize = count.and_then(|text| text.parse().ok()).unwrap_or(0);
    if count > MOST_GIVEN {
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
