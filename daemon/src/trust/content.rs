//! Reads what a project would bring: hooks, agents, MCP servers, permissions.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::discovery::agents::{self, AgentDefinition};
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::{self, GuardRecord, HookDefinition, HookPlaces, PROJECT_SETTINGS};
use crate::discovery::settings_rules::permissions_hash;
use crate::discovery::skills::{self, SkillPlaces};
use crate::discovery::{Problem, commands, mcp};
use crate::regular_file;

/// The largest settings that are read.
const LARGEST_SETTINGS: u64 = 1024 * 1024;

/// What can be brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContentKind {
    Hook,
    /// An agent: its name, which may be one of ours, and its powers. What it is told does not count.
    Agent,
    McpServer,
    /// Permissions in settings.
    Permissions,
    /// A setting that turns off hooks, also the user's own.
    HookSwitch,
    /// A slash command whose text runs shell commands.
    Command,
    /// A skill: its name and what restricts it. Its text does not count.
    Skill,
}

/// One thing that needs trust.
#[derive(Debug, Clone)]
pub struct ContentItem {
    pub kind: ContentKind,
    /// The folder that it belongs to.
    pub folder: PathBuf,
    pub file: PathBuf,
    pub line: Option<usize>,
    pub name: String,
    /// What it does, in a few words.
    pub detail: String,
    pub hash: ContentHash,
    /// What to remember of it if it is a guard.
    pub guard: Option<GuardRecord>,
}

/// What a project would bring.
#[derive(Debug, Clone)]
pub struct ProjectContent {
    pub root: PathBuf,
    /// The folders that were searched, the root first.
    pub folders: Vec<PathBuf>,
    pub items: Vec<ContentItem>,
    pub problems: Vec<Problem>,
}

/// Where to look for what a project brings.
#[derive(Debug, Clone)]
pub struct ProjectLookup {
    pub places: HookPlaces,
    pub root: PathBuf,
    pub cwd: PathBuf,
}

impl ProjectContent {
    /// Reads everything. Blocks on the disk, within the bounds of `discovery`, and only reads.
    pub fn read(lookup: &ProjectLookup) -> Self {
        let ProjectLookup { places, root, cwd } = lookup;
        let mut content = Self {
            root: root.clone(),
            folders: places.projects.clone(),
            items: Vec::new(),
            problems: Vec::new(),
        };
        content.add_hooks(places);
        content.add_agents(places, root, cwd);
        content.add_commands(root, cwd);
        content.add_skills(root, cwd);
        for folder in &places.projects {
            content.add_servers(folder);
            content.add_permissions(folder);
        }
        content
    }

    /// Returns one hash of everything, for a person who says what was looked at.
    pub fn hash(&self) -> ContentHash {
        let mut parts: Vec<String> = self
            .items
            .iter()
            .map(|item| format!("{}\n{}", item.folder.display(), item.hash))
            .collect();
        parts.sort_unstable();
        ContentHash::of(parts.iter().map(String::as_bytes))
    }

    /// Returns what a folder of the project brings, without the folders above it.
    #[must_use]
    pub fn below(mut self, folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.folders.retain(|it| it.starts_with(&folder));
        self.items.retain(|item| item.folder.starts_with(&folder));
        self
    }

    fn add_hooks(&mut self, places: &HookPlaces) {
        let loaded = hooks::load(places);
        let of_project = |problem: &Problem| {
            let mut folders = places.projects.iter().chain(&places.plugins);
            folders.any(|folder| problem.file.starts_with(folder))
        };
        let problems = loaded.notices.into_iter();
        self.problems.extend(problems.filter(of_project));
        self.items.extend(loaded.hooks.iter().filter_map(of_hook));
        let switches = loaded.switches.into_iter().map(|switch| ContentItem {
            kind: ContentKind::HookSwitch,
            folder: switch.folder,
            file: switch.file,
            line: None,
            name: "disableAllHooks".to_owned(),
            detail: "turns off all hooks in this project, also your own, policy excepted"
                .to_owned(),
            hash: switch.hash,
            guard: None,
        });
        self.items.extend(switches);
    }

    fn add_agents(&mut self, places: &HookPlaces, root: &Path, cwd: &Path) {
        let mut projects = vec![cwd.to_owned(), root.to_owned()];
        projects.dedup();
        let mut folders = agents::folders(None, &projects);
        folders.extend(agents::plugin_folders(&places.plugins));
        let found = agents::discover(&folders);
        self.problems.extend(found.problems);
        for agent in &found.items {
            let Some(folder) = hooks::folder_of_agent(agent, root) else {
                continue;
            };
            let powers = agent.powers().into_iter();
            let powers = powers.filter(|(member, _)| *member != "hooks");
            let powers: Vec<String> = powers
                .map(|(member, value)| format!("{member}: {value}"))
                .collect();
            let hash = hash_of_agent(agent, &folder);
            self.items.push(ContentItem {
                kind: ContentKind::Agent,
                folder,
                file: agent.path.clone().unwrap_or_default(),
                line: None,
                name: agent.name.clone(),
                detail: powers.join(", "),
                hash,
                guard: None,
            });
            let own = hooks::of_agent(agent, places.local_http, root);
            self.problems.extend(own.problems);
            let hooks = own.hooks.iter().filter(|hook| hook.unusable.is_none());
            self.items.extend(hooks.filter_map(|hook| {
                Some(ContentItem {
                    guard: GuardRecord::of_agent(hook, &agent.name),
                    ..of_hook(hook)?
                })
            }));
        }
    }

    fn add_commands(&mut self, root: &Path, cwd: &Path) {
        let mut projects = vec![cwd.to_owned(), root.to_owned()];
        projects.dedup();
        let found = commands::discover(&commands::folders(None, &projects));
        self.problems.extend(found.problems);
        for command in &found.items {
            let Some(folder) = command.needs_trust_of() else {
                continue;
            };
            let runs: Vec<&str> = command.template.shell_commands().collect();
            self.items.push(ContentItem {
                kind: ContentKind::Command,
                folder: folder.clone(),
                file: command.path.clone(),
                line: None,
                name: format!("/{}", command.name),
                detail: format!("runs {}", runs.join("; ")),
                hash: command.hash.clone(),
                guard: None,
            });
        }
    }

    fn add_skills(&mut self, root: &Path, cwd: &Path) {
        let places = SkillPlaces {
            projects: skills::project_places(cwd, root),
            ..SkillPlaces::default()
        };
        let found = skills::discover(&places.folders());
        self.problems.extend(found.problems().cloned());
        for skill in &found.skills {
            let Some(folder) = skill.needs_trust_of() else {
                continue;
            };
            self.items.push(ContentItem {
                kind: ContentKind::Skill,
                folder,
                file: skill.path.clone(),
                line: None,
                name: skill.name.clone(),
                detail: skill.description.clone(),
                hash: skill.hash(),
                guard: None,
            });
        }
    }

    fn add_servers(&mut self, folder: &Path) {
        let found = mcp::load_folder(folder);
        self.problems.extend(found.problems);
        let servers = found.items.into_iter();
        self.items.extend(servers.map(|server| ContentItem {
            kind: ContentKind::McpServer,
            folder: folder.to_owned(),
            line: None,
            detail: server.shown(),
            hash: server.hash,
            guard: None,
            file: server.path,
            name: server.name,
        }));
    }

    fn add_permissions(&mut self, folder: &Path) {
        for below in PROJECT_SETTINGS {
            let file = folder.join(below);
            let Some(permissions) = permissions_of(&file) else {
                continue;
            };
            self.items.push(ContentItem {
                kind: ContentKind::Permissions,
                folder: folder.to_owned(),
                line: None,
                name: "permissions".to_owned(),
                detail: permissions.to_string(),
                hash: permissions_hash(below, &permissions),
                guard: None,
                file,
            });
        }
    }
}

/// Returns the hash of an agent's name and of what it may run or be granted, with the files of its folder
/// that its servers name.
pub fn hash_of_agent(agent: &AgentDefinition, folder: &Path) -> ContentHash {
    let mut said = json!({"agent": agent.name, "powers": agent.powers()});
    let files = mcp::of_agent::hashes_of_files(agent, folder);
    if let (Some(said), false) = (said.as_object_mut(), files.is_empty()) {
        let files = files.iter().map(ContentHash::as_str);
        said.insert("servers".to_owned(), json!(files.collect::<Vec<_>>()));
    }
    ContentHash::of_json(&said)
}

fn of_hook(hook: &HookDefinition) -> Option<ContentItem> {
    let folder = hook.source.folder.clone()?;
    let matcher = hook.matcher.to_string();
    let matcher = Some(matcher).filter(|matcher| !matcher.is_empty());
    let matcher = matcher.map(|matcher| format!(" ({matcher})"));
    let files = hook.named_files.iter().map(|file| {
        let below = file.strip_prefix(&folder).unwrap_or(file);
        below.display().to_string()
    });
    let files: Vec<String> = files.collect();
    let mut detail = hook.action.to_string();
    if !files.is_empty() {
        detail = format!("{detail} [with the content of {}]", files.join(", "));
    }
    if let Some(uncovered) = hook.uncovered() {
        detail = format!("{detail} [{uncovered}]");
    }
    Some(ContentItem {
        kind: ContentKind::Hook,
        folder,
        file: hook.file.clone(),
        line: Some(hook.line),
        name: format!("{}{}", hook.kind_name(), matcher.unwrap_or_default()),
        detail,
        hash: hook.hash.clone(),
        guard: GuardRecord::of(hook),
    })
}

/// Returns the permissions of settings. Settings that cannot be read were reported with their hooks.
fn permissions_of(file: &Path) -> Option<Value> {
    let text = regular_file::read_text(file, LARGEST_SETTINGS).ok()?;
    let mut json = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    json_strip_comments::strip(&mut json).ok()?;
    let mut settings: Value = serde_json::from_str(&json).ok()?;
    let permissions = settings.get_mut("permissions").map(Value::take)?;
    permissions.is_object().then_some(permissions)
}
