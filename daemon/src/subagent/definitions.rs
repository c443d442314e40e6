//! The agents of one session: those of its client, its project, its user and their plugins, and the
//! built-in ones.
//!
//! `front/rpc` lists and selects them; the start of a sub-agent looks up its definition and its
//! model (`model`) here. They are loaded each time, so that a change of a file takes effect at once.

mod builtin;
mod client;
mod family;
mod guards;
pub mod model;
pub(crate) mod refresh;
pub mod settings;
pub mod start;
mod tools;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::session::{CustomAgent, SessionOptions};
use loopd_store::{Store, StoreError};

use crate::approvals;
use crate::discovery::agents::{self, AgentDefinition, AgentFolder, AgentMode, AgentOrigin};
use crate::discovery::{Discovered, Host, Problem, hooks};
use crate::trust::{TrustedContent, hash_of_agent};

pub use guards::AgentHooks;
pub use settings::AgentSettings;
pub use start::{AskedBy, StartRefusal};
pub use tools::{ToolOrigin, allows, allows_subagent};

/// Where the agents of a session come from.
#[derive(Debug, Clone, Default)]
pub struct RosterInput {
    /// `None` leaves out the user's agents.
    pub host: Option<Host>,
    /// The folders of the project, the nearest first.
    pub projects: Vec<PathBuf>,
    /// The roots of the plugins in use.
    pub plugins: Vec<PathBuf>,
    /// Folders with agents that the client names.
    pub named: Vec<PathBuf>,
    /// The agents of the client.
    pub custom: Vec<CustomAgent>,
    pub excluded_builtins: Vec<String>,
    /// What the user trusts of the project.
    pub trust: ProjectTrust,
    /// The guards that the user's own agents had.
    pub own_guards: Vec<hooks::GuardRecord>,
}

/// Which agents of a project the user trusts.
#[derive(Debug, Clone, Default)]
pub enum ProjectTrust {
    #[default]
    None,
    /// Those that say what they said when the user trusted the folder.
    Content {
        root: PathBuf,
        content: TrustedContent,
    },
    /// All: a client or an earlier version trusted the folder as a whole.
    All,
}

impl ProjectTrust {
    /// Reads what the user trusts of the project that `cwd` belongs to.
    pub async fn read(store: &dyn Store, cwd: &Path) -> Result<Self, StoreError> {
        let root = project_root(cwd);
        if approvals::is_trusted(store, &root.to_string_lossy()).await? {
            return Ok(Self::All);
        }
        let content = TrustedContent::read(store).await?;
        Ok(Self::Content { root, content })
    }

    fn covers(&self, agent: &AgentDefinition) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Content { root, content } => hooks::folder_of_agent(agent, root)
                .is_some_and(|folder| content.covers(&folder, &hash_of_agent(agent, &folder))),
        }
    }
}

impl RosterInput {
    /// Returns the sources of a session's agents, except the plugins of its launch. The agents of the
    /// project and the user count only if the session discovers configuration; those of a client or
    /// a plugin always count.
    ///
    /// `trust` is what the user trusts of the project that `cwd` belongs to.
    pub fn of_session(
        options: &SessionOptions,
        cwd: &Path,
        host: Host,
        trust: ProjectTrust,
    ) -> Self {
        let discovers = options.enable_config_discovery == Some(true);
        let mut projects = Vec::new();
        if discovers {
            projects = vec![cwd.to_owned(), project_root(cwd)];
            // The root of a project is often the folder itself.
            projects.dedup();
        }
        Self {
            host: discovers.then_some(host),
            projects,
            plugins: options
                .plugin_directories
                .iter()
                .flatten()
                .map(|plugin| cwd.join(plugin))
                .collect(),
            named: options
                .agent_directories
                .iter()
                .flatten()
                .map(|folder| cwd.join(folder))
                .collect(),
            custom: options.custom_agents.clone().unwrap_or_default(),
            excluded_builtins: options.excluded_builtin_agents.clone().unwrap_or_default(),
            trust,
            own_guards: Vec::new(),
        }
    }
}

impl RosterInput {
    /// Returns the folders to search, in the order in which they count.
    fn folders(&self) -> Vec<AgentFolder> {
        let mut folders = agents::named_folders(&self.named);
        folders.extend(agents::folders(self.host.as_ref(), &self.projects));
        folders.extend(agents::plugin_folders(&self.plugins));
        folders
    }

    /// Returns whether any folder exists. This is much cheaper than loading the agents.
    pub fn has_folders(&self) -> bool {
        self.folders().iter().any(|folder| folder.path.is_dir())
    }

    /// Returns the same input without the folders on disk.
    #[must_use]
    pub fn without_folders(self) -> Self {
        Self {
            host: None,
            plugins: Vec::new(),
            named: Vec::new(),
            ..self
        }
    }
}

/// Returns the folder whose trust counts for a session that works in `cwd`.
pub fn project_root(cwd: &Path) -> PathBuf {
    approvals::locate(cwd).key.into()
}

/// The loaded agents of one session.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// Custom ones first, in the order of their origins.
    agents: Vec<Arc<AgentDefinition>>,
    problems: Vec<Problem>,
    broken: Vec<BrokenFile>,
    hooks: Vec<AgentHooks>,
    /// What is wrong with the hooks of agents.
    hook_problems: Vec<Problem>,
    /// The guards that the user's own agents have.
    own_guards: Vec<hooks::GuardRecord>,
}

/// Reads the agents. Blocks on the disk, within the bounds of `discovery`, and only reads.
pub fn load(input: &RosterInput) -> Roster {
    let mut roster = Roster::default();
    for agent in &input.custom {
        match client::definition(agent) {
            Ok(agent) => roster.add(agent),
            Err(problem) => roster.problems.push(problem),
        }
    }
    let folders = input.folders();
    let mut found = agents::discover(&folders);
    roster.broken = broken(&found, &folders);
    roster.problems.append(&mut found.problems);
    for mut agent in found.items {
        if agent.origin == AgentOrigin::Project && !input.trust.covers(&agent) {
            if let Some(problem) = trust::replaces_builtin(&agent) {
                roster.problems.push(problem);
                continue;
            }
            roster.problems.extend(trust::restrict(&mut agent));
        }
        roster.problems.extend(roster.same_name(&agent));
        roster.add(agent);
    }
    let excluded = |name: &str| input.excluded_builtins.iter().any(|it| is_same(it, name));
    for agent in builtin::all() {
        let replaced = roster
            .agents
            .iter()
            .any(|it| is_same(&it.name, &agent.name));
        // What a file was to replace does not answer in its place, if the file could replace it.
        let trusts = |file: &BrokenFile| {
            file.origin != AgentOrigin::Project
                || agent.mode != AgentMode::Primary
                || matches!(input.trust, ProjectTrust::All)
        };
        let mut broken = roster.broken.iter();
        let is_missing = broken.any(|file| file.is_of(&agent.name) && trusts(file));
        if !replaced && !is_missing && !excluded(&agent.name) {
            roster.agents.push(Arc::clone(agent));
        }
    }
    roster.read_hooks(input);
    roster
}

/// A file of an agent that cannot be used.
#[derive(Debug, Clone)]
struct BrokenFile {
    names: Vec<String>,
    origin: AgentOrigin,
    problem: Problem,
}

impl BrokenFile {
    fn is_of(&self, name: &str) -> bool {
        self.names.iter().any(|known| is_same(known, name))
    }
}

/// Returns the files of agents that cannot be used. A problem with another file is a remark.
fn broken(found: &Discovered<AgentDefinition>, folders: &[AgentFolder]) -> Vec<BrokenFile> {
    let is_used = |file: &Path| {
        let mut paths = found.items.iter().filter_map(|agent| agent.path.as_deref());
        paths.any(|path| path == file)
    };
    let broken = found.problems.iter().filter_map(|problem| {
        let folder = problem.file.parent()?;
        let folder = folders.iter().find(|known| known.path == folder)?;
        (!is_used(&problem.file)).then(|| BrokenFile {
            names: agents::names_of_broken(&problem.file),
            origin: folder.origin,
            problem: problem.clone(),
        })
    });
    broken.collect()
}

impl Roster {
    /// Returns what is wrong with the files of an agent that cannot be used.
    pub fn broken(&self, name: &str) -> Vec<String> {
        let files = self.broken.iter().filter(|file| file.is_of(name));
        files.map(|file| file.problem.to_string()).collect()
    }

    /// Adds a custom agent, unless an earlier one has its name.
    fn add(&mut self, agent: AgentDefinition) {
        if !self.agents.iter().any(|known| known.name == agent.name) {
            self.agents.push(Arc::new(agent));
        }
    }

    /// Returns the problem of a file that has the name of another one in its folder. In other folders
    /// the nearest one counts, as people expect.
    fn same_name(&self, agent: &AgentDefinition) -> Option<Problem> {
        let path = agent.path.as_deref()?;
        let known = self.agents.iter().find(|known| known.name == agent.name)?;
        let other = known.path.as_deref()?;
        if other.parent() != path.parent() {
            return None;
        }
        let what = format!(
            "is not used: {} has the same name, `{}`",
            other.display(),
            agent.name
        );
        Some(Problem::new(path, what))
    }

    /// Finds an agent by its exact name, else by a name that [`is_same`].
    pub fn get(&self, name: &str) -> Option<&Arc<AgentDefinition>> {
        let exact = self.agents.iter().find(|agent| agent.name == name);
        exact.or_else(|| self.agents.iter().find(|agent| is_same(&agent.name, name)))
    }

    /// Returns the agents that models may start as `agent_type`, custom ones first.
    pub fn startable(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents
            .iter()
            .filter(|agent| agent.mode != AgentMode::Primary && agent.infer)
    }

    /// Returns the agents that people may select in place of the default agent, custom ones first.
    pub fn selectable(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.iter().filter(|agent| agent.user_invocable)
    }

    /// Returns the agents that are not built in.
    pub fn custom(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents
            .iter()
            .filter(|agent| agent.origin != AgentOrigin::BuiltIn)
    }

    /// Returns all agents, custom ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.iter()
    }

    /// Adds a remark for each file that names tools which are none of these and of no other program.
    pub fn check_tools(&mut self, ours: &[&str]) {
        let agents = self.agents.iter();
        let remarks = agents.filter_map(|agent| tools::unknown(agent, ours));
        let remarks: Vec<Problem> = remarks.collect();
        self.problems.extend(remarks);
    }

    /// Returns the problems with files that could not be used, or not in full.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Returns whether two names mean the same agent: case does not matter, and spaces and underscores
/// count as hyphens.
pub fn is_same(one: &str, other: &str) -> bool {
    let plain = |name: &str| -> String {
        let letters = name.trim().chars().map(|letter| match letter {
            ' ' | '_' => '-',
            letter => letter,
        });
        letters.flat_map(char::to_lowercase).collect()
    };
    plain(one) == plain(other)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
