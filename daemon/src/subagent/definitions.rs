//! The agents of one session at one moment: those its client, its project, its user and their
//! plugins defined, and ours.
//!
//! `rpc` lists them and lets people choose; whoever starts sub-agents finds them here, and which
//! model they get (`model`). Loaded anew when needed, so that an edited file counts at once.

mod builtin;
mod client;
mod family;
pub mod model;
pub(crate) mod refresh;
pub mod settings;
pub mod start;
mod tools;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::session::{CustomAgent, SessionOptions};

use crate::approvals;
use crate::discovery::agents::{self, AgentDefinition, AgentMode, AgentOrigin};
use crate::discovery::{Host, Problem};

pub use settings::AgentSettings;
pub use start::{AskedBy, StartRefusal};
pub use tools::{ToolOrigin, allows};

/// Where the agents of a session come from.
#[derive(Debug, Clone, Default)]
pub struct RosterInput {
    /// None leaves out the user's own.
    pub host: Option<Host>,
    /// The folders of the project, the nearest first.
    pub projects: Vec<PathBuf>,
    /// The roots of the plugins that are in use.
    pub plugins: Vec<PathBuf>,
    /// What the client defined.
    pub custom: Vec<CustomAgent>,
    pub excluded_builtins: Vec<String>,
    /// Whether the user trusts the folders of the project.
    pub trusted: bool,
}

impl RosterInput {
    /// What a session that works in a folder has, apart from the plugins of its launch. Subagents of the
    /// project and the user count where the session discovers them; those that a client or a plugin
    /// brings count always.
    ///
    /// `trusted` is about [`project_root`] of that folder.
    pub fn of_session(options: &SessionOptions, cwd: &Path, host: Host, trusted: bool) -> Self {
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
            custom: options.custom_agents.clone().unwrap_or_default(),
            excluded_builtins: options.excluded_builtin_agents.clone().unwrap_or_default(),
            trusted,
        }
    }
}

impl RosterInput {
    /// Whether there is any folder to look into; a few glances, where reading would be work.
    pub fn has_folders(&self) -> bool {
        let mut folders = agents::folders(self.host.as_ref(), &self.projects);
        folders.extend(agents::plugin_folders(&self.plugins));
        folders.iter().any(|folder| folder.path.is_dir())
    }

    /// The same without anything that is on disk.
    #[must_use]
    pub fn without_folders(self) -> Self {
        Self {
            host: None,
            projects: Vec::new(),
            plugins: Vec::new(),
            ..self
        }
    }
}

/// The folder that has to be trusted for what works in another.
pub fn project_root(cwd: &Path) -> PathBuf {
    approvals::locate(cwd).key.into()
}

/// The agents of one session at one moment.
#[derive(Debug, Clone, Default)]
pub struct Roster {
    /// Custom ones first, in the order of their origins.
    agents: Vec<Arc<AgentDefinition>>,
    problems: Vec<Problem>,
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
    let mut folders = agents::folders(input.host.as_ref(), &input.projects);
    folders.extend(agents::plugin_folders(&input.plugins));
    let mut found = agents::discover(&folders);
    roster.problems.append(&mut found.problems);
    for mut agent in found.items {
        if agent.origin == AgentOrigin::Project && !input.trusted {
            if let Some(problem) = trust::stands_in(&agent) {
                roster.problems.push(problem);
                continue;
            }
            roster.problems.extend(trust::restrict(&mut agent));
        }
        roster.add(agent);
    }
    let excluded = |name: &str| input.excluded_builtins.iter().any(|it| is_same(it, name));
    for agent in builtin::all() {
        let replaced = roster
            .agents
            .iter()
            .any(|it| is_same(&it.name, &agent.name));
        if !replaced && !excluded(&agent.name) {
            roster.agents.push(Arc::clone(agent));
        }
    }
    roster
}

impl Roster {
    /// Takes in a custom agent, unless one that goes before it has its name.
    fn add(&mut self, agent: AgentDefinition) {
        if !self.agents.iter().any(|known| known.name == agent.name) {
            self.agents.push(Arc::new(agent));
        }
    }

    /// Finds an agent: by its exact name, else as people write names.
    pub fn get(&self, name: &str) -> Option<&Arc<AgentDefinition>> {
        let exact = self.agents.iter().find(|agent| agent.name == name);
        exact.or_else(|| self.agents.iter().find(|agent| is_same(&agent.name, name)))
    }

    /// What models may be offered as `agent_type`: those that work for a caller, custom ones first.
    pub fn startable(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents
            .iter()
            .filter(|agent| agent.mode != AgentMode::Primary && agent.infer)
    }

    /// What people may let answer instead of the default agent, custom ones first.
    pub fn selectable(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.iter().filter(|agent| agent.user_invocable)
    }

    /// What others than us defined.
    pub fn custom(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents
            .iter()
            .filter(|agent| agent.origin != AgentOrigin::BuiltIn)
    }

    /// All of them, custom ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.iter()
    }

    /// What could not be used, or not in full.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// Whether two names mean one agent: capitals, spaces and underscores do not tell them apart.
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
