//! Reads the permission rules (`permissions`) of settings that people have for other programs.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRule;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Problem;
use super::content_hash::ContentHash;
use super::files::FolderReader;
use super::hooks::{FileText, HookPlaces, Members, PROJECT_SETTINGS};
use loopd_kernel::policy::path_pattern;
use loopd_kernel::policy::settings::{RuleBase, SettingsRules, read};

/// The most entries of folders that are looked at for files that rules with wildcards name.
const MOST_ENTRIES: usize = 20_000;

/// The most rules in one list.
const MOST_RULES: usize = 500;

/// Where rules are looked for.
#[derive(Debug, Clone)]
pub struct RulePlaces {
    files: Vec<SettingsPlace>,
    root: PathBuf,
    user: Option<String>,
    /// Whether nobody else tells that settings cannot be read.
    tells_unreadable: bool,
}

#[derive(Debug, Clone)]
struct SettingsPlace {
    path: PathBuf,
    /// The folder of the project, and the path in it; `None` for the user's own settings.
    project: Option<(PathBuf, &'static str)>,
    /// The directory that paths in it begin at.
    cwd: PathBuf,
    /// Whether the session has left the folder. Then only what denies or asks counts.
    left: bool,
}

/// The rules of one file.
#[derive(Debug, Default)]
pub struct FileRules {
    pub file: PathBuf,
    /// The folder that has to be trusted with what the file allows; `None` for the user's own settings.
    pub folder: Option<PathBuf>,
    pub hash: ContentHash,
    pub rules: SettingsRules,
    pub problems: Vec<Problem>,
}

impl RulePlaces {
    /// Returns the settings in these places, as far as they exist; `None` if there are none.
    pub fn of(
        places: &HookPlaces,
        env: &BTreeMap<String, String>,
        cwd: &Path,
        tells_unreadable: bool,
    ) -> Option<Self> {
        let homes = places.user.homes.iter().map(|it| it.join("settings.json"));
        let own = homes.chain(places.user.settings.iter().cloned());
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let own = own.map(|path| SettingsPlace {
            path,
            project: None,
            cwd: cwd.clone(),
            left: false,
        });
        let of_folder = |folder: &Path, cwd: &Path, left: bool| {
            PROJECT_SETTINGS.map(|below| SettingsPlace {
                path: folder.join(below),
                project: Some((folder.to_owned(), below)),
                cwd: cwd.to_owned(),
                left,
            })
        };
        let projects = places.projects.iter();
        let projects = projects.flat_map(|folder| of_folder(folder, &cwd, false));
        let held = places.held.iter().filter(|held| !held.plugin);
        let held = held.flat_map(|held| of_folder(&held.path, &held.path, true));
        let files = own.chain(projects).chain(held);
        let files: Vec<SettingsPlace> = files.filter(|place| place.path.exists()).collect();
        (!files.is_empty()).then(|| Self {
            files,
            root: places.root.clone().unwrap_or(cwd),
            user: env.get("HOME").filter(|home| !home.is_empty()).cloned(),
            tells_unreadable,
        })
    }
}

/// Returns the hash by which a folder is trusted with the permissions of settings.
pub fn permissions_hash(below: &str, permissions: &Value) -> ContentHash {
    ContentHash::of_json(&json!({"file": below, "permissions": permissions}))
}

/// Reads the rules of all places. Blocks on the disk, within bounds, and only reads.
pub fn load(places: &RulePlaces) -> Vec<FileRules> {
    let files = places.files.iter();
    files
        .filter_map(|place| {
            let reader = match &place.project {
                Some((folder, _)) => FolderReader::within(folder),
                None => FolderReader::own(),
            };
            match reader.text(&place.path) {
                Ok(None) => None,
                Ok(Some(text)) => of_text(place, &text, places),
                Err(problem) => unreadable(place, problem, places),
            }
        })
        .collect()
}

fn unreadable(place: &SettingsPlace, problem: Problem, places: &RulePlaces) -> Option<FileRules> {
    places.tells_unreadable.then(|| FileRules {
        file: place.path.clone(),
        problems: vec![problem],
        ..FileRules::default()
    })
}

fn of_text(place: &SettingsPlace, text: &str, places: &RulePlaces) -> Option<FileRules> {
    let original = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut json = original.to_owned();
    let stripped = json_strip_comments::strip(&mut json);
    let members = stripped.ok().and_then(|()| Members::read(&json).ok());
    let Some(members) = members else {
        let problem = Problem::new(
            &place.path,
            "is not valid JSON, so that none of its rules counts",
        );
        return unreadable(place, problem, places);
    };
    let block = members.get("permissions").filter(|it| it.get() != "null")?;
    let mut reader = RuleReader {
        place,
        places,
        text: FileText {
            original,
            json: &json,
        },
        found: FileRules {
            file: place.path.clone(),
            ..FileRules::default()
        },
    };
    let permissions: Value = serde_json::from_str(block.get()).unwrap_or_default();
    let below = place.project.as_ref().map_or("", |(_, below)| below);
    reader.found.hash = permissions_hash(below, &permissions);
    reader.found.folder = place.project.as_ref().map(|(folder, _)| folder.clone());
    reader.block(block);
    if place.left {
        // What is wrong with the file was told when the session worked there.
        reader.found.rules.allow.clear();
        reader.found.problems.clear();
    }
    Some(reader.found)
}

struct RuleReader<'a> {
    place: &'a SettingsPlace,
    places: &'a RulePlaces,
    text: FileText<'a>,
    found: FileRules,
}

impl RuleReader<'_> {
    fn block(&mut self, block: &RawValue) {
        let Ok(members) = Members::read(block.get()) else {
            return self.report(block, "`permissions` has to be an object");
        };
        for (name, value) in &members.0 {
            match name.as_str() {
                "deny" | "ask" | "allow" => self.list(name, value),
                _ => self.report(value, format!("`{name}` of `permissions` is not used")),
            }
        }
    }

    fn list(&mut self, name: &str, list: &RawValue) {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else {
            return self.report(list, format!("`{name}` has to be a list of rules"));
        };
        if items.len() > MOST_RULES {
            let what =
                format!("`{name}` has more than {MOST_RULES} rules; the others are not used");
            self.report(list, what);
        }
        for item in items.into_iter().take(MOST_RULES) {
            match serde_json::from_str::<String>(item.get()) {
                Ok(rule) => self.rule(name, &rule, item),
                Err(_) => self.report(item, format!("a rule in `{name}` has to be text")),
            }
        }
    }

    fn rule(&mut self, list: &str, text: &str, item: &RawValue) {
        let cwd = self.place.cwd.to_string_lossy();
        let folder = self.place.project.as_ref().map(|(folder, _)| folder);
        let folder = folder.unwrap_or(&self.places.root).to_string_lossy();
        let base = RuleBase {
            cwd: &cwd,
            folder: &folder,
            user: self.places.user.as_deref(),
        };
        let shown = loopd_proto::visible::for_person(text);
        match read(text, base) {
            Ok(rule) => self.take(list, rule, item),
            Err(error) if list == "allow" => {
                self.report(
                    item,
                    format!("`{shown}` in `allow` is not used: it {}", error.why),
                );
            }
            Err(error) => {
                let instead = match &error.wider {
                    Some(wider) => format!(
                        "instead a person is asked each time about {}",
                        everything(&wider.kind)
                    ),
                    None => "it is not enforced".to_owned(),
                };
                let what = format!("`{shown}` in `{list}` {}; {instead}", error.why);
                self.report(item, what);
                self.found.rules.ask.extend(error.wider);
            }
        }
    }

    fn take(&mut self, list: &str, rule: PermissionRule, item: &RawValue) {
        let rules = &mut self.found.rules;
        let rules = match list {
            "deny" => &mut rules.deny,
            "ask" => &mut rules.ask,
            _ => return rules.allow.push(rule),
        };
        // Commands and searches are compared with paths, so that the files which exist are named.
        let pattern = rule.argument.as_deref().and_then(path_pattern::pattern);
        let found = pattern.map(|pattern| matching(&rule, pattern));
        let found = found.unwrap_or_default();
        rules.extend(found.paths.into_iter().map(|path| PermissionRule {
            kind: rule.kind.clone(),
            argument: Some(path),
        }));
        rules.push(rule);
        if !found.is_complete {
            let what = format!(
                "more than {MOST_ENTRIES} files lie where this rule applies; searches and commands may \
                 reach further ones that it names"
            );
            self.report(item, what);
        }
    }

    fn report(&mut self, value: &RawValue, what: impl Into<String>) {
        let line = self.text.line_of(value);
        let problem = Problem::at(&self.place.path, line, what);
        self.found.problems.push(problem);
    }
}

fn everything(kind: &str) -> &'static str {
    match kind {
        "shell" => "every command",
        "read" => "every file that is read",
        "write" => "every file that is written",
        "url" => "every address",
        _ => "every such call",
    }
}

/// The files and folders that a pattern names.
struct Matching {
    paths: Vec<String>,
    is_complete: bool,
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
fn matching(rule: &PermissionRule, pattern: &str) -> Matching {
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
