//! Changes of settings. Each says what changes, so that it can be decided against the state of the
//! moment; what it does not name stays as it is.

use loopd_proto::event::session::AgentSelected;
use loopd_proto::permission::{Approval, PermissionRule};
use loopd_proto::session::{CapabilitiesOverride, CustomAgent};

use super::Refusal;
use crate::state::State;

/// A change of what a session may do. No change touches what an app decided for its users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionChange {
    /// Whether nobody is asked any more.
    ApproveAll(bool),
    /// Whether all addresses may be fetched.
    UnrestrictUrls(bool),
    /// Several settings at once.
    Configure(Box<PermissionsPatch>),
    /// Removes approved rules, then adds others.
    ModifyRules {
        remove: RuleRemoval,
        add: Vec<PermissionRule>,
    },
    /// Approves these rules besides the others.
    Approve(Vec<PermissionRule>),
    AddDirectory(String),
    SetPrimaryDirectory(String),
    /// Takes back what people approved.
    Reset,
}

/// Which approved rules go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleRemoval {
    All,
    These(Vec<PermissionRule>),
}

/// Settings that replace those of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionsPatch {
    pub approve_all: Option<bool>,
    pub approve_all_reads: Option<bool>,
    pub rules: Option<RuleSet>,
    pub unrestricted_paths: Option<bool>,
    pub directories: Option<Vec<String>>,
    /// A directory besides those.
    pub extra_directory: Option<String>,
    pub primary_directory: Option<String>,
    pub unrestricted_urls: Option<bool>,
    pub allowed_urls: Option<Vec<String>>,
}

/// All rules of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub approved: Vec<PermissionRule>,
    pub denied: Vec<PermissionRule>,
}

/// The model that answers from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    pub model: String,
    pub reasoning_effort: Option<String>,
    /// What the client knows better about the model.
    pub capabilities: Option<CapabilitiesOverride>,
}

/// What is allowed from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastingApproval {
    pub approval: Option<Approval>,
    pub domain: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    pub name: String,
    pub display_name: String,
    pub tools: Option<Vec<String>>,
}

/// An agent, chosen among those that a session had at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPick {
    pub choice: AgentChoice,
    /// The choice is refused when the session has other agents by then.
    pub among: AgentSources,
}

/// What says which agents a session has, besides the files on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSources {
    cwd: String,
    custom: Option<Vec<CustomAgent>>,
    excluded: Option<Vec<String>>,
    plugins: Option<Vec<String>>,
    discovers: Option<bool>,
}

impl AgentSources {
    pub fn of(state: &State) -> Self {
        let options = &state.options;
        Self {
            cwd: state.cwd.clone(),
            custom: options.custom_agents.clone(),
            excluded: options.excluded_builtin_agents.clone(),
            plugins: options.plugin_directories.clone(),
            discovers: options.enable_config_discovery,
        }
    }
}

impl AgentPick {
    /// What was chosen, if the session still has the agents it was chosen among.
    pub(crate) fn decided(self, state: &State) -> Result<AgentChoice, Refusal> {
        if self.among == AgentSources::of(state) {
            Ok(self.choice)
        } else {
            Err(Refusal::AgentsChanged)
        }
    }
}

impl From<AgentChoice> for AgentSelected {
    fn from(choice: AgentChoice) -> Self {
        Self {
            agent_name: choice.name,
            agent_display_name: choice.display_name,
            tools: choice.tools,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
}
