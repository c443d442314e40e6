//! Reads the permission rules (`permissions`) of settings that people have for other programs.

mod matching;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRule;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::matching::{MOST_ENTRIES, matching};
use super::Problem;
use super::content_hash::ContentHash;
use super::files::FolderReader;
use super::hooks::{FileText, HookPlaces, Members, PROJECT_SETTINGS};
use loopd_kernel::policy::path_pattern;
use loopd_kernel::policy::settings::{NotEnforced, RuleBase, SettingsRules, everything, read};

/// The most rules in one list.
const MOST_RULES: usize = 500;

/// Where rules are looked for.
#[derive(Debug, Clone)]
pub struct RulePlaces {
    files: Vec<SettingsPlace>,
    root: PathBuf,
    /// Where the session works.
    cwd: PathBuf,
    user: Option<String>,
    /// Whether nobody else tells that settings cannot be read.
    tells_unreadable: bool,
}

#[derive(Debug, Clone)]
struct SettingsPlace {
    path: PathBuf,
    /// The folder of the project, and the path in it; `None` for the user's own settings.
    project: Option<(PathBuf, &'static str)>,
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

/// Which places are searched for settings with rules.
#[derive(Debug, Clone)]
pub struct RuleSearch {
    pub places: HookPlaces,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// Whether nobody else tells that settings cannot be read.
    pub tells_unreadable: bool,
}

impl RuleSearch {
    /// Returns the settings that exist; `None` if there are none.
    pub fn find(&self) -> Option<RulePlaces> {
        RulePlaces::of(&self.places, &self.env, &self.cwd, self.tells_unreadable)
    }
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
            left: false,
        });
        let of_folder = |folder: &Path, left: bool| {
            PROJECT_SETTINGS.map(|below| SettingsPlace {
                path: folder.join(below),
                project: Some((folder.to_owned(), below)),
                left,
            })
        };
        let projects = places.projects.iter();
        let projects = projects.flat_map(|folder| of_folder(folder, false));
        let held = places.held.iter().filter(|held| !held.plugin);
        let held = held.flat_map(|held| of_folder(&held.path, true));
        let files = own.chain(projects).chain(held);
        // What cannot be looked at may be there.
        let may_be = |place: &SettingsPlace| place.path.try_exists().unwrap_or(true);
        let files: Vec<SettingsPlace> = files.filter(may_be).collect();
        (!files.is_empty()).then(|| Self {
            files,
            root: places.root.clone().unwrap_or_else(|| cwd.clone()),
            cwd,
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
                Err(problem) => {
                    let what = format!("{}; {UNREAD}", problem.what);
                    Some(unread(place, Problem { what, ..problem }))
                }
            }
        })
        .collect()
}

/// What is said of a file that cannot be read.
const UNREAD: &str = "it may have rules, so until it can be read a person is asked about every command, \
                      file, address and tool of others";

/// Returns what counts while a file cannot be read: it may deny anything.
fn unread(place: &SettingsPlace, problem: Problem) -> FileRules {
    FileRules {
        file: place.path.clone(),
        problems: vec![problem],
        rules: SettingsRules {
            unread: everything(),
            ..SettingsRules::default()
        },
        ..FileRules::default()
    }
}

/// Returns what counts of a text that is no JSON. If it names no list that denies or asks, it has none.
fn broken(place: &SettingsPlace, text: &str, places: &RulePlaces) -> Option<FileRules> {
    const WRONG: &str = "is not valid JSON";
    if text.contains("\"deny\"") || text.contains("\"ask\"") {
        let problem = Problem::new(&place.path, format!("{WRONG}; {UNREAD}"));
        return Some(unread(place, problem));
    }
    places.tells_unreadable.then(|| FileRules {
        file: place.path.clone(),
        problems: vec![Problem::new(&place.path, WRONG)],
        ..FileRules::default()
    })
}

fn of_text(place: &SettingsPlace, text: &str, places: &RulePlaces) -> Option<FileRules> {
    let original = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut json = original.to_owned();
    let stripped = json_strip_comments::strip(&mut json);
    let members = stripped.ok().and_then(|()| Members::read(&json).ok());
    let Some(members) = members else {
        return broken(place, original, places);
    };
    let blocks: Vec<&RawValue> = members.all("permissions").collect();
    let block = blocks.iter().find(|it| it.get() != "null")?;
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
    if blocks.len() > 1 {
        // One hash stands for one block, so that nothing that allows counts.
        reader.report(
            block,
            "`permissions` stands there twice; only what denies or asks counts",
        );
    }
    for block in &blocks {
        reader.block(block);
    }
    if blocks.len() > 1 {
        reader.found.rules.allow.clear();
    }
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
        if matches!(block.get(), "null" | "[]") {
            return;
        }
        let Ok(members) = Members::read(block.get()) else {
            return self.mistake(block, "`permissions` has to be an object", everything());
        };
        for (name, value) in &members.0 {
            match name.as_str() {
                "deny" | "ask" | "allow" => self.list(name, value),
                _ => self.other(name, value),
            }
        }
    }

    /// Takes a member that is no list of rules, unless its name is that of one in other letters.
    fn other(&mut self, name: &str, value: &RawValue) {
        let shown = loopd_proto::visible::for_person(name);
        let letters = name.to_lowercase();
        let letters = letters.trim();
        let meant = ["deny", "ask"].into_iter().find(|list| {
            let is_longer = letters
                .strip_prefix(list)
                .is_some_and(|rest| rest.len() <= 3);
            is_longer || (letters.starts_with("den") && *list == "deny")
        });
        let Some(list) = meant else {
            return self.report(value, format!("`{shown}` of `permissions` is not used"));
        };
        self.report(
            value,
            format!("`{shown}` of `permissions` is taken for `{list}`"),
        );
        self.list(list, value);
    }

    fn list(&mut self, name: &str, list: &RawValue) {
        if let Ok(rule) = serde_json::from_str::<String>(list.get()) {
            self.report(
                list,
                format!("`{name}` has to be a list; it is taken for a list of one rule"),
            );
            return self.rule(name, &rule, list);
        }
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else {
            if list.get() == "null" {
                return;
            }
            let what = format!("`{name}` has to be a list of rules");
            return match name {
                "allow" => self.report(list, what),
                _ => self.mistake(list, what, everything()),
            };
        };
        if items.len() > MOST_RULES {
            self.too_many(name, list, items.get(MOST_RULES..).unwrap_or_default());
        }
        for item in items.into_iter().take(MOST_RULES) {
            match serde_json::from_str::<String>(item.get()) {
                Ok(rule) => self.rule(name, &rule, item),
                Err(_) if name == "allow" => self.report(item, "a rule in `allow` has to be text"),
                Err(_) => {
                    self.mistake(
                        item,
                        format!("a rule in `{name}` has to be text"),
                        everything(),
                    );
                }
            }
        }
    }

    /// Says that a list has too many rules. In the place of the others everything of their kinds is asked
    /// about.
    fn too_many(&mut self, name: &str, list: &RawValue, others: &[&RawValue]) {
        let what = format!("`{name}` has more than {MOST_RULES} rules; the others are not used");
        if name == "allow" {
            return self.report(list, what);
        }
        let mut kinds: Vec<PermissionRule> = Vec::new();
        for item in others {
            let text = serde_json::from_str::<String>(item.get()).unwrap_or_default();
            let name = text.split('(').next().unwrap_or_default();
            let meant = match read(name, self.base(Path::new("/"))) {
                Ok(rule) => vec![rule],
                Err(error) => error.instead,
            };
            kinds.extend(meant);
            kinds.dedup();
        }
        self.mistake(list, what, kinds);
    }

    fn base<'s>(&'s self, folder: &'s Path) -> RuleBase<'s> {
        RuleBase {
            folder: folder.to_str().unwrap_or_default(),
            user: self.places.user.as_deref(),
        }
    }

    fn rule(&mut self, list: &str, text: &str, item: &RawValue) {
        // Paths begin in the folder of the settings. Those of the user's own settings begin in the
        // project, which is both its root and where the session works.
        let folders = match &self.place.project {
            Some((folder, _)) => vec![folder.clone()],
            None if list == "allow" => vec![self.places.cwd.clone()],
            None => vec![self.places.root.clone(), self.places.cwd.clone()],
        };
        let mut told = false;
        for folder in folders {
            match read(text, self.base(&folder)) {
                Ok(rule) => self.take(list, rule, item),
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        self.tell(list, text, &error, item);
                    }
                    if list != "allow" {
                        self.found.rules.ask.extend(error.instead);
                    }
                }
            }
        }
    }

    /// Says why a rule does not count as it is written, and what counts instead.
    fn tell(&mut self, list: &str, text: &str, error: &NotEnforced, item: &RawValue) {
        let shown = loopd_proto::visible::for_person(text);
        if list == "allow" {
            let what = format!("`{shown}` in `allow` is not used: it {}", error.why);
            return self.report(item, what);
        }
        let instead = asked_about(&error.instead);
        self.report(
            item,
            format!("`{shown}` in `{list}` {}; {instead}", error.why),
        );
    }

    /// Says what is wrong, and lets a person be asked about what it may be about.
    fn mistake(&mut self, value: &RawValue, what: impl Into<String>, asked: Vec<PermissionRule>) {
        let what = format!("{}; {}", what.into(), asked_about(&asked));
        self.report(value, what);
        self.found.rules.ask.extend(asked);
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

/// Says what a person is asked about.
fn asked_about(rules: &[PermissionRule]) -> String {
    if rules.is_empty() {
        return "nothing here does that, so there is nothing to forbid".to_owned();
    }
    if rules == everything() {
        return "instead a person is asked about every command, file, address and tool of others, until \
                this is mended and the session is opened again"
            .to_owned();
    }
    let what: Vec<String> = rules.iter().map(subject).collect();
    format!("instead a person is asked about {}", what.join(", "))
}

fn subject(rule: &PermissionRule) -> String {
    let every = match rule.kind.as_str() {
        "shell" => "every command",
        "read" => "every file that is read",
        "write" => "every file that is written",
        "url" => "every address",
        "mcp" => "every tool of a server",
        "tool" => "every call",
        _ => "every tool of others",
    };
    match &rule.argument {
        Some(argument) => format!("{every} that `{argument}` covers"),
        None => every.to_owned(),
    }
}
