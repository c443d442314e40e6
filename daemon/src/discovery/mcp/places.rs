//! Where MCP servers are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::session::SessionOptions;

use crate::discovery::hooks::HookPlaces;

/// The files of a folder of a project, and how they are read.
pub(super) const PROJECT_FILES: [(&str, FileFormat); 7] = [
    (".loopd/mcp.json", FileFormat::Servers),
    (".mcp.json", FileFormat::Servers),
    (".github/mcp.json", FileFormat::Servers),
    (".vscode/mcp.json", FileFormat::VsCode),
    (".codex/config.toml", FileFormat::Codex),
    ("opencode.json", FileFormat::Opencode),
    ("opencode.jsonc", FileFormat::Opencode),
];

/// The file of the user's own servers, in the home of the daemon and in that of Copilot.
pub(super) const USER_FILE: &str = "mcp-config.json";

/// What the files of different programs look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    /// `mcpServers`, or the servers themselves. Comments are allowed.
    Servers,
    /// `servers`, with `inputs` that nobody is asked for here.
    VsCode,
    /// `[mcp_servers.name]` in TOML.
    Codex,
    /// `mcp`.
    Opencode,
}

/// The places that are searched for MCP servers.
#[derive(Debug, Clone, Default)]
pub struct McpPlaces {
    /// The user's own files.
    pub(super) user: Vec<(PathBuf, FileFormat)>,
    /// The folders of the project that are searched, its root first.
    pub projects: Vec<PathBuf>,
    /// The root of the project, also if the project is not searched. Plugins inside of it need trust.
    pub root: Option<PathBuf>,
    pub plugins: Vec<PluginPlace>,
}

/// The folder of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginPlace(pub PathBuf);

impl McpPlaces {
    /// Returns all places for a session that works in `cwd`. `root` is the root of its project.
    pub fn of(
        env: &BTreeMap<String, String>,
        home: &Path,
        cwd: &Path,
        root: &Path,
        plugins: Vec<PathBuf>,
    ) -> Self {
        let hooks = HookPlaces::of(env, home, cwd, root);
        Self {
            user: user_files(env, home),
            projects: hooks.projects,
            root: hooks.root,
            plugins: plugins.into_iter().map(PluginPlace).collect(),
        }
    }

    /// Returns the places of a session. Those of the user and of the project count if the session
    /// discovers configuration, those of plugins always. `root` finds the root of the project, which
    /// is needed only if there is anything to search.
    pub fn of_session(
        options: &SessionOptions,
        env: &BTreeMap<String, String>,
        home: &Path,
        cwd: &Path,
        mut plugins: Vec<PathBuf>,
        root: impl FnOnce() -> PathBuf,
    ) -> Self {
        let named = options.plugin_directories.iter().flatten();
        plugins.extend(named.map(|plugin| cwd.join(plugin)));
        let discovers = options.enable_config_discovery == Some(true);
        if !discovers && plugins.is_empty() {
            return Self::default();
        }
        let mut places = Self::of(env, home, cwd, &root(), plugins);
        if !discovers {
            places.user.clear();
            places.projects.clear();
        }
        places
    }

    /// Returns whether there is any file to read. This is much cheaper than reading.
    pub fn has_files(&self) -> bool {
        let users = self.user.iter().map(|(file, _)| file.clone());
        let projects = self
            .projects
            .iter()
            .flat_map(|folder| PROJECT_FILES.map(|(file, _)| folder.join(file)));
        let plugins = self.plugins.iter().flat_map(PluginPlace::files);
        users
            .chain(projects)
            .chain(plugins)
            .any(|path| path.exists())
    }
}

impl PluginPlace {
    /// The file that says what a plugin is, and the file of its servers.
    pub(super) fn files(&self) -> [PathBuf; 3] {
        [
            self.0.join("plugin.json"),
            self.0.join(".claude-plugin/plugin.json"),
            self.0.join(".mcp.json"),
        ]
    }
}

/// Returns the files of the user with this environment. Our own come first.
fn user_files(env: &BTreeMap<String, String>, home: &Path) -> Vec<(PathBuf, FileFormat)> {
    let variable = |name: &str| env.get(name).filter(|value| !value.is_empty());
    let user = variable("HOME").map(PathBuf::from);
    let copilot = variable("COPILOT_HOME").map(PathBuf::from);
    let copilot = copilot.or_else(|| Some(user.as_ref()?.join(".copilot")));
    let mut files = vec![(home.join(USER_FILE), FileFormat::Servers)];
    files.extend(copilot.map(|home| (home.join(USER_FILE), FileFormat::Servers)));
    if let Some(user) = user {
        files.push((user.join(".codex/config.toml"), FileFormat::Codex));
        let opencode = user.join(".config/opencode/opencode.json");
        files.push((opencode, FileFormat::Opencode));
    }
    files
}
