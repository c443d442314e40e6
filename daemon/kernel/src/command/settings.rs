//! Changes of settings.
//!
//! Each command says only what changes, so that it can be decided against the current state.
//! Settings that a command does not name stay as they are.

use loopd_proto::event::agent::Stance;
use loopd_proto::event::session::AgentSelected;
use loopd_proto::permission::{Approval, ConfirmedRequest, PermissionRule};
use loopd_proto::session::{CapabilitiesOverride, CustomAgent};

use super::Refusal;
use crate::state::State;

/// A change of the permissions of a session. No change touches the managed settings of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionChange {
    /// Whether every request is approved without asking.
    ApproveAll(bool),
    /// Whether all URLs may be fetched.
    UnrestrictUrls(bool),
    /// Several settings at once.
    Configure(Box<PermissionsPatch>),
    /// Removes approved rules, then adds others.
    ModifyRules {
        remove: RuleRemoval,
        add: Vec<PermissionRule>,
    },
    /// Adds these approved rules.
    Approve(Vec<PermissionRule>),
    /// Adds these rules that deny.
    Deny(Vec<PermissionRule>),
    AddDirectory(String),
    SetPrimaryDirectory(String),
    /// Removes everything that people approved.
    Reset,
}

/// Which approved rules are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleRemoval {
    All,
    These(Vec<PermissionRule>),
}

/// Settings that replace those of the same name. `None` keeps the current setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionsPatch {
    pub approve_all: Option<bool>,
    pub approve_all_reads: Option<bool>,
    pub rules: Option<RuleSet>,
    pub unrestricted_paths: Option<bool>,
    pub directories: Option<Vec<String>>,
    /// A directory in addition to `directories`.
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

/// The model that is used from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    pub model: String,
    pub reasoning_effort: Option<String>,
    /// Capabilities that the client states for the model, in place of the known ones.
    pub capabilities: Option<CapabilitiesOverride>,
}

/// An approval that lasts longer than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastingApproval {
    pub approval: Option<Approval>,
    pub domain: Option<String>,
    /// What a rule asks about and was approved.
    pub confirmed: Option<ConfirmedRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    pub name: String,
    pub display_name: String,
    pub tools: Option<Vec<String>>,
    pub stance: Stance,
    /// The model that the agent wants, unless a model is named.
    pub model: Option<String>,
    /// The reasoning effort that the agent wants, unless an effort is named.
    pub effort: Option<String>,
}

/// An agent, chosen from the agents that a session had at that moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPick {
    pub choice: AgentChoice,
    /// What the agents came from. The choice is refused if this has changed by then.
    pub among: AgentSources,
}

/// The settings that determine which agents a session has, besides the files on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSources {
    cwd: String,
    custom: Option<Vec<CustomAgent>>,
    excluded: Option<Vec<String>>,
    plugins: Option<Vec<String>>,
    named: Option<Vec<String>>,
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
            named: options.agent_directories.clone(),
            discovers: options.enable_config_discovery,
        }
    }
}

impl AgentPick {
    /// Returns the choice, if the agents of the session still come from the same settings.
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
            stance: (choice.stance != Stance::default()).then_some(choice.stance),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
}

/// Whether an MCP server is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpSwitch {
    On,
    Off,
}
