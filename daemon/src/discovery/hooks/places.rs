//! Where hooks are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::event::hook::{GuardFolder, VouchedFolder};
use loopd_proto::session::SessionOptions;

use crate::discovery::OWN_FOLDER;
use crate::discovery::project_folders::project_folders;

use super::local_http::LocalHttp;
use super::policy::PolicyFolders;

/// The settings with a block of hooks in a folder of a project.
pub const PROJECT_SETTINGS: [&str; 4] = [
    ".github/copilot/settings.json",
    ".github/copilot/settings.local.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
];
/// The files of hooks in a plugin.
pub(super) const PLUGIN_FILES: [&str; 2] = ["hooks.json", "hooks/hooks.json"];

/// The places that are searched for hooks.
#[derive(Debug, Clone, Default)]
pub struct HookPlaces {
    pub policy: PolicyFolders,
    pub user: UserHookPlaces,
    /// The folders of the project that are searched, its root first.
    pub projects: Vec<PathBuf>,
    /// The root of the project, also if the project is not searched. Plugins inside of it need trust.
    pub root: Option<PathBuf>,
    /// The roots of the plugins in use.
    pub plugins: Vec<PathBuf>,
    /// The folders that the session has left and whose guards are in force all the same.
    pub held: Vec<HeldFolder>,
    /// The folders that apps named, with what they vouch for in them. They hold files of hooks themselves.
    pub vouched: Vec<VouchedFolder>,
    pub local_http: LocalHttp,
}

/// A folder that is searched for guards only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFolder {
    pub path: PathBuf,
    /// The root of the project that it is part of.
    pub root: PathBuf,
    /// Whether it is a plugin.
    pub plugin: bool,
}

impl HeldFolder {
    fn of(folder: &GuardFolder) -> Self {
        Self {
            path: folder.path.clone().into(),
            root: folder.root.clone().into(),
            plugin: folder.plugin,
        }
    }
}

/// The user's own places; none if they are left out.
#[derive(Debug, Clone, Default)]
pub struct UserHookPlaces {
    /// The user's folder, which `~` stands for.
    pub folder: Option<PathBuf>,
    /// Folders with `hooks/*.json` and `settings.json`.
    pub homes: Vec<PathBuf>,
    /// Settings of other programs.
    pub settings: Vec<PathBuf>,
}

impl UserHookPlaces {
    /// Whether this file is searched, be it there or not.
    pub fn has(&self, file: &Path) -> bool {
        let mut homes = self.homes.iter();
        self.settings.iter().any(|it| it == file)
            || homes.any(|home| {
                file == home.join("settings.json") || file.parent() == Some(&home.join("hooks"))
            })
    }

    /// Returns the places of the user with this environment.
    pub fn of(env: &BTreeMap<String, String>, home: &Path) -> Self {
        let variable = |name: &str| env.get(name).filter(|value| !value.is_empty());
        let user = variable("HOME").map(PathBuf::from);
        let copilot = variable("COPILOT_HOME").map(PathBuf::from);
        let copilot = copilot.or_else(|| Some(user.as_ref()?.join(".copilot")));
        Self {
            folder: user.clone(),
            homes: copilot.into_iter().chain([home.to_owned()]).collect(),
            settings: user
                .into_iter()
                .map(|user| user.join(".claude/settings.json"))
                .collect(),
        }
    }
}

impl HookPlaces {
    /// Returns all places for a session that works in `cwd`, except plugins. `root` is the root of
    /// its project. Folders are known without links, so that trust does not depend on the spelling.
    pub fn of(env: &BTreeMap<String, String>, home: &Path, cwd: &Path, root: &Path) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Self {
            policy: PolicyFolders::default(),
            user: UserHookPlaces::of(env, home),
            projects: project_folders(&real(cwd), &real(root)),
            root: Some(real(root)),
            plugins: Vec::new(),
            held: Vec::new(),
            vouched: Vec::new(),
            local_http: LocalHttp::of(env),
        }
    }
}

impl HookPlaces {
    /// Returns the places of a session. Those of the user and of the project count if the session
    /// wants hooks of files, those of plugins unless it does not want any, those of policy always.
    /// `root` finds the root of the project, which is needed only if others than policy count.
    pub fn of_session(
        options: &SessionOptions,
        env: &BTreeMap<String, String>,
        home: &Path,
        cwd: &Path,
        mut plugins: Vec<PathBuf>,
        root: impl FnOnce() -> PathBuf,
    ) -> Self {
        if options.enable_file_hooks == Some(false) {
            return Self::default();
        }
        let named = options.plugin_directories.iter().flatten();
        plugins.extend(named.map(|plugin| cwd.join(plugin)));
        let wants = options.wants_file_hooks();
        if !wants && plugins.is_empty() {
            return Self::default();
        }
        let mut places = Self::of(env, home, cwd, &root());
        if !wants {
            places.user = UserHookPlaces::default();
            places.projects.clear();
        }
        places.plugins = plugins;
        places
    }

    /// Adds the folders that apps named. Whether the session discovers anything does not matter. `root`
    /// finds the root of the project, whose scripts their hooks may run.
    #[must_use]
    pub fn vouching(
        mut self,
        vouched: Vec<VouchedFolder>,
        env: &BTreeMap<String, String>,
        root: impl FnOnce() -> PathBuf,
    ) -> Self {
        if vouched.is_empty() {
            return self;
        }
        if self.root().is_none() {
            let root = root();
            self.root = Some(root.canonicalize().unwrap_or(root));
            self.local_http = LocalHttp::of(env);
        }
        self.vouched = vouched;
        self
    }

    /// Adds the folders whose guards are in force and that are not searched any more, as far as the
    /// session wants hooks of files.
    #[must_use]
    pub fn holding(self, folders: &[GuardFolder], options: &SessionOptions) -> Self {
        let wanted = |folder: &GuardFolder| match options.enable_file_hooks {
            Some(false) => false,
            Some(true) | None => folder.plugin || options.wants_file_hooks(),
        };
        self.with_held(folders.iter().filter(|folder| wanted(folder)))
    }

    /// Adds the folders whose rules are in force and that are not searched any more.
    #[must_use]
    pub fn holding_rules(self, folders: &[GuardFolder]) -> Self {
        self.with_held(folders.iter())
    }

    fn with_held<'f>(mut self, folders: impl Iterator<Item = &'f GuardFolder>) -> Self {
        let searched = self.trusted_folders();
        let held = folders.map(HeldFolder::of);
        self.held = held.filter(|held| !searched.contains(&held.path)).collect();
        self
    }

    /// Returns the folder of the log for a folder that guards were found in.
    pub fn guard_folder(&self, path: &Path, plugin: bool) -> GuardFolder {
        let mut held = self.held.iter();
        let held = held.find(|held| held.path == path);
        let root = held.map(|held| held.root.as_path()).or(self.root());
        GuardFolder {
            path: path.to_string_lossy().into_owned(),
            root: root.unwrap_or(path).to_string_lossy().into_owned(),
            plugin: plugin || held.is_some_and(|held| held.plugin),
        }
    }

    pub(super) fn root(&self) -> Option<&Path> {
        self.root
            .as_deref()
            .or(self.projects.first().map(PathBuf::as_path))
    }

    /// Returns the folders whose hooks need trust, without links.
    pub fn trusted_folders(&self) -> Vec<PathBuf> {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let plugins = self.plugins.iter().map(real);
        let inside = |plugin: &PathBuf| self.root().is_some_and(|root| plugin.starts_with(root));
        let plugins = plugins.filter(inside);
        let held = self.held.iter().map(|held| held.path.clone());
        let searched = self.projects.iter().cloned().chain(plugins);
        let vouched = self
            .vouched
            .iter()
            .map(|folder| PathBuf::from(&folder.path));
        searched.chain(held).chain(vouched).collect()
    }

    /// Returns whether there is any file to read. This is much cheaper than reading.
    pub fn has_files(&self) -> bool {
        let users = self.user.homes.iter();
        let users = users.flat_map(|home| [home.join("hooks"), home.join("settings.json")]);
        let held = self.held.iter().filter(|held| !held.plugin);
        let projects = self.projects.iter().chain(held.map(|held| &held.path));
        let projects = projects.flat_map(|folder| {
            let own = format!("{OWN_FOLDER}/hooks");
            let folders = [".github/hooks".to_owned(), own];
            let below = folders
                .into_iter()
                .chain(PROJECT_SETTINGS.map(str::to_owned));
            below.map(|below| folder.join(below)).collect::<Vec<_>>()
        });
        let held = self.held.iter().filter(|held| held.plugin);
        let plugins = self.plugins.iter().chain(held.map(|held| &held.path));
        let plugins = plugins.flat_map(|plugin| PLUGIN_FILES.map(|file| plugin.join(file)));
        let all = self.policy.folders.iter().cloned().chain(users);
        let all = all.chain(self.user.settings.iter().cloned());
        let vouched = self
            .vouched
            .iter()
            .map(|folder| PathBuf::from(&folder.path));
        let mut all = all.chain(projects).chain(plugins).chain(vouched);
        all.any(|path| path.exists())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_discovers_nothing_has_policy_and_plugins() {
        let env = BTreeMap::from([("HOME".to_owned(), "/u".to_owned())]);
        let folder = Path::new("/nowhere");
        let places = |options: &SessionOptions| {
            let root = || folder.to_owned();
            HookPlaces::of_session(options, &env, Path::new("/l"), folder, Vec::new(), root)
        };
        let mut options = SessionOptions {
            plugin_directories: Some(vec!["p".to_owned()]),
            ..SessionOptions::default()
        };
        let quiet = places(&options);
        assert!(quiet.user.homes.is_empty() && quiet.user.settings.is_empty());
        assert!(quiet.projects.is_empty());
        assert_eq!(quiet.plugins, [Path::new("/nowhere/p")]);
        assert_eq!(quiet.policy.folders.len(), 2);
        options.enable_config_discovery = Some(true);
        assert_eq!(places(&options).projects, [folder]);
        assert_eq!(places(&options).user.homes.len(), 2);
        options.enable_file_hooks = Some(false);
        assert!(places(&options).plugins.is_empty() && places(&options).projects.is_empty());
        assert_eq!(places(&options).policy.folders.len(), 2);
    }

    #[test]
    fn the_users_places() {
        let of = |env: &[(&str, &str)]| {
            let env = env.iter();
            let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            UserHookPlaces::of(&env.collect(), Path::new("/l"))
        };
        let usual = of(&[("HOME", "/u")]);
        assert_eq!(usual.homes, [Path::new("/u/.copilot"), Path::new("/l")]);
        assert_eq!(usual.settings, [Path::new("/u/.claude/settings.json")]);
        let named = of(&[("HOME", "/u"), ("COPILOT_HOME", "/c")]);
        assert_eq!(named.homes, [Path::new("/c"), Path::new("/l")]);
        assert_eq!(of(&[]).homes, [Path::new("/l")]);
    }
}
