//! Reads the hooks of all places.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::discovery::content_hash::ContentHash;
use crate::discovery::files::FolderReader;
use crate::discovery::{OWN_FOLDER, Problem};

use super::definition::{HookDefinition, HookOrigin, HookSource};
use super::local_http::LocalHttp;
use super::named_files;
use super::parse::{HookFile, HookFileContent, HookText, parse};
use super::places::{HeldFolder, HookPlaces, PLUGIN_FILES, PROJECT_SETTINGS};
use super::unusable::UnusableGuard;

/// The most bytes in all files together.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The hooks that were found, in the order of their origins, and what is wrong with their files.
#[derive(Debug, Default)]
pub struct LoadedHooks {
    pub hooks: Vec<HookDefinition>,
    pub notices: Vec<Problem>,
    /// Settings of the project that turn off hooks. They count only in a folder that is trusted with
    /// them.
    pub switches: Vec<HookSwitch>,
    /// The settings of the user that turn off all hooks but those of policy.
    pub disabled_by: Option<PathBuf>,
    /// The folders that were searched for guards only.
    pub held: Vec<PathBuf>,
}

impl From<HookFileContent> for LoadedHooks {
    fn from(content: HookFileContent) -> Self {
        Self {
            hooks: content.hooks,
            notices: content.problems,
            ..Self::default()
        }
    }
}

/// `disableAllHooks` in the settings of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSwitch {
    pub file: PathBuf,
    pub folder: PathBuf,
    pub hash: ContentHash,
}

/// Reads the hooks. Blocks on the disk, within bounds, and only reads.
pub fn load(places: &HookPlaces) -> LoadedHooks {
    let mut loader = Loader {
        local_http: places.local_http,
        room: MOST_BYTES,
        seen: HashSet::new(),
        disabled_by: None,
        found: LoadedHooks::default(),
    };
    loader.policy(places);
    loader.user(places);
    loader.vouched(places);
    for folder in &places.projects {
        loader.project(folder);
    }
    for plugin in &places.plugins {
        loader.plugin(plugin, places);
    }
    for hook in &mut loader.found.hooks {
        named_files::include_own(hook, &places.user);
    }
    if let Some(root) = places.root() {
        for hook in &mut loader.found.hooks {
            named_files::include(hook, root);
        }
    }
    for held in &places.held {
        loader.held(held);
    }
    let Loader {
        mut found,
        disabled_by,
        ..
    } = loader;
    for hook in &mut found.hooks {
        if hook.source.origin != HookOrigin::Policy {
            hook.off = hook.off.take().or_else(|| disabled_by.clone());
        }
    }
    found.disabled_by = disabled_by;
    found
}

/// Reads one file that a person names, for example to try a hook. Needs no trust: the person chose it.
pub fn load_file(path: &Path, local_http: LocalHttp) -> HookFileContent {
    let text = FolderReader::own().text(path);
    let text = text.and_then(|it| it.ok_or_else(|| Problem::new(path, "does not exist")));
    let text = match text {
        Ok(text) => text,
        Err(problem) => {
            return HookFileContent {
                problems: vec![problem],
                ..HookFileContent::default()
            };
        }
    };
    let name = path.file_name().unwrap_or_default();
    let is_settings = name == "settings.json" || name == "settings.local.json";
    parse(&HookText {
        path,
        text: &text,
        file: if is_settings {
            HookFile::Settings
        } else {
            HookFile::Own
        },
        source: &HookSource::own(HookOrigin::User),
        local_http,
    })
}

struct Loader {
    local_http: LocalHttp,
    /// How many bytes may still be read.
    room: usize,
    /// The files that were read. One that two places name counts for the first.
    seen: HashSet<PathBuf>,
    /// The settings of the user that turn off all hooks but those of policy.
    disabled_by: Option<PathBuf>,
    found: LoadedHooks,
}

impl Loader {
    fn policy(&mut self, places: &HookPlaces) {
        let source = HookSource::own(HookOrigin::Policy);
        for folder in &places.policy.folders {
            for path in self.json_files(&FolderReader::own(), folder, &source) {
                match places.policy.text(&path) {
                    Ok(text) => {
                        self.content(&path, &text, HookFile::Own, &source);
                    }
                    Err(problem) => self.found.notices.push(problem),
                }
            }
        }
        // Nobody can turn off a policy, not even its own file.
        for hook in &mut self.found.hooks {
            hook.off = None;
        }
    }

    fn user(&mut self, places: &HookPlaces) {
        let source = HookSource::own(HookOrigin::User);
        let reader = FolderReader::own();
        for home in &places.user.homes {
            for path in self.json_files(&reader, &home.join("hooks"), &source) {
                self.file(&reader, &path, HookFile::Own, &source);
            }
        }
        let own = places.user.homes.iter();
        let own = own.map(|home| home.join("settings.json"));
        let settings: Vec<PathBuf> = own.chain(places.user.settings.iter().cloned()).collect();
        for path in settings {
            if self.file(&reader, &path, HookFile::Settings, &source) {
                self.disabled_by.get_or_insert(path);
            }
        }
    }

    /// Reads the folders that apps named. A guard there that cannot be used is among the hooks: it denies.
    /// The files may be those of a project as well, which has them for itself.
    fn vouched(&mut self, places: &HookPlaces) {
        let others = std::mem::take(&mut self.seen);
        let reader = FolderReader::own();
        for folder in &places.vouched {
            let folder = Path::new(&folder.path);
            let source = HookSource::of_folder(HookOrigin::App, folder);
            for path in self.json_files(&reader, folder, &source) {
                self.file(&reader, &path, HookFile::Own, &source);
            }
        }
        self.seen = others;
    }

    fn project(&mut self, folder: &Path) {
        let source = HookSource {
            origin: HookOrigin::Project,
            folder: Some(folder.to_owned()),
            plugin: None,
        };
        let reader = FolderReader::within(folder);
        for below in [".github/hooks".to_owned(), format!("{OWN_FOLDER}/hooks")] {
            for path in self.json_files(&reader, &folder.join(below), &source) {
                self.file(&reader, &path, HookFile::Own, &source);
            }
        }
        for below in PROJECT_SETTINGS {
            let path = folder.join(below);
            if self.file(&reader, &path, HookFile::Settings, &source) {
                let hash = ContentHash::of([b"disableAllHooks".as_slice(), below.as_bytes()]);
                // The switch turns off nothing until the folder is trusted with it, not even the
                // hooks of its own file.
                for hook in self.found.hooks.iter_mut().filter(|it| it.file == path) {
                    hook.off = None;
                }
                self.found.switches.push(HookSwitch {
                    file: path,
                    folder: folder.to_owned(),
                    hash,
                });
            }
        }
    }

    fn plugin(&mut self, plugin: &Path, places: &HookPlaces) {
        let real = plugin.canonicalize();
        let plugin = real.as_deref().unwrap_or(plugin);
        let root = places.root();
        let of_project = root.is_some_and(|root| plugin.starts_with(root));
        let source = HookSource {
            origin: HookOrigin::Plugin,
            folder: of_project.then(|| plugin.to_owned()),
            plugin: Some(plugin.to_owned()),
        };
        self.plugin_files(plugin, &source);
    }

    /// Reads the guards of a folder that the session has left. What is wrong with the other hooks there,
    /// and what turns hooks off there, concerns nobody any more.
    fn held(&mut self, held: &HeldFolder) {
        let mut own = Self {
            local_http: self.local_http,
            room: self.room,
            seen: std::mem::take(&mut self.seen),
            disabled_by: None,
            found: LoadedHooks::default(),
        };
        if held.plugin {
            let source = HookSource {
                origin: HookOrigin::Plugin,
                folder: Some(held.path.clone()),
                plugin: Some(held.path.clone()),
            };
            own.plugin_files(&held.path, &source);
        } else {
            own.project(&held.path);
        }
        (self.room, self.seen) = (own.room, own.seen);
        let guards = own.found.hooks.into_iter();
        let guards = guards.filter(|hook| hook.kind.is_guard() && !hook.in_background);
        self.found.hooks.extend(guards.map(|mut hook| {
            hook.off = None;
            named_files::include(&mut hook, &held.root);
            hook
        }));
        self.found.held.push(held.path.clone());
    }

    fn plugin_files(&mut self, plugin: &Path, source: &HookSource) {
        let reader = FolderReader::within(plugin);
        for below in PLUGIN_FILES {
            self.file(&reader, &plugin.join(below), HookFile::Own, source);
        }
    }

    /// Lists the files of hooks in a folder, in the order of their names.
    fn json_files(
        &mut self,
        reader: &FolderReader,
        folder: &Path,
        source: &HookSource,
    ) -> Vec<PathBuf> {
        match reader.entries(folder) {
            Ok(mut entries) => {
                entries.retain(|path| path.extension().is_some_and(|it| it == "json"));
                entries
            }
            Err(problem) => {
                self.unread(problem, source);
                Vec::new()
            }
        }
    }

    /// Reports what cannot be read. Nobody knows what the files of an app were to guard.
    fn unread(&mut self, problem: Problem, source: &HookSource) {
        if source.origin == HookOrigin::App {
            let guard = UnusableGuard::of_any_call(problem.what.clone());
            let hook = guard.stand_in(&problem.file, source);
            self.found.hooks.push(hook);
        }
        self.found.notices.push(problem);
    }

    /// Reads a file, if there is one. Returns whether it turns off the hooks of other files.
    fn file(
        &mut self,
        reader: &FolderReader,
        path: &Path,
        file: HookFile,
        source: &HookSource,
    ) -> bool {
        if let Ok(real) = path.canonicalize()
            && !self.seen.insert(real)
        {
            return false;
        }
        match reader.text(path) {
            Ok(None) => false,
            Ok(Some(text)) => self.content(path, &text, file, source),
            Err(problem) => {
                self.unread(problem, source);
                false
            }
        }
    }

    /// Reads the text of a file. Returns whether it turns off the hooks of other files.
    fn content(&mut self, path: &Path, text: &str, file: HookFile, source: &HookSource) -> bool {
        let Some(left) = self.room.checked_sub(text.len()) else {
            let what = format!(
                "is not read: the files of hooks take more than {} MiB together",
                MOST_BYTES / 1024 / 1024
            );
            self.unread(Problem::new(path, what), source);
            return false;
        };
        self.room = left;
        let content = parse(&HookText {
            path,
            text,
            file,
            source,
            local_http: self.local_http,
        });
        self.found.hooks.extend(content.hooks);
        if source.origin == HookOrigin::App {
            let unusable = content.unusable_guards.into_iter();
            let unusable = unusable.map(|guard| guard.stand_in(path, source));
            self.found.hooks.extend(unusable);
        }
        self.found.notices.extend(content.problems);
        content.disables_all
    }
}
