//! The definition of an agent, from whatever source.

use std::fmt;
use std::path::PathBuf;

use loopd_proto::params::discovery::AgentSource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The definition of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    pub name: String,
    pub display_name: Option<String>,
    pub description: String,
    pub prompt: String,
    /// The tools it may use; all when absent.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Vec<String>,
    pub model: ModelPolicy,
    pub effort: Option<String>,
    /// Its permission mode; that of the session when absent.
    pub permission_mode: Option<PermissionMode>,
    /// Whether it runs in the background unless the call says otherwise.
    pub background: bool,
    pub isolation: Option<Isolation>,
    pub max_turns: Option<u32>,
    /// For clients that show it; the daemon does not use it.
    pub color: Option<String>,
    pub memory: Option<MemoryScope>,
    pub mcp_servers: Option<Value>,
    /// The servers that it cannot work without.
    pub required_mcp_servers: Vec<String>,
    pub hooks: Option<Value>,
    pub skills: Option<Vec<String>>,
    /// The text before the first message that it gets.
    pub initial_prompt: Option<String>,
    pub mode: AgentMode,
    /// Whether people may select it.
    pub user_invocable: bool,
    /// Whether it is listed to models.
    pub infer: bool,
    pub origin: AgentOrigin,
    /// The file that it comes from.
    pub path: Option<PathBuf>,
}

impl AgentDefinition {
    /// Returns the name to show to people.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns what it may run or be granted, by the member that says so. A folder has to be trusted
    /// for these. Permission modes that only restrict need no trust: without them the agent could do
    /// more.
    pub fn powers(&self) -> Vec<(&'static str, Value)> {
        let said = |member, value: Option<Value>| value.map(|value| (member, value));
        let required = Some(&self.required_mcp_servers).filter(|servers| !servers.is_empty());
        let mode = self.permission_mode.filter(|mode| mode.grants());
        let powers = [
            said("hooks", self.hooks.clone()),
            said("mcpServers", self.mcp_servers.clone()),
            said("requiredMcpServers", required.map(|servers| json!(servers))),
            said("permissionMode", mode.map(|mode| json!(mode))),
            said("memory", self.memory.map(|memory| json!(memory))),
            said(
                "isolation",
                self.isolation.map(|isolation| json!(isolation)),
            ),
        ];
        powers.into_iter().flatten().collect()
    }

    /// Removes what [`Self::powers`] returns.
    pub fn remove_powers(&mut self) {
        self.hooks = None;
        self.mcp_servers = None;
        self.required_mcp_servers.clear();
        self.permission_mode = self.permission_mode.filter(|mode| !mode.grants());
        self.memory = None;
        self.isolation = None;
    }
}

/// The origin of an agent. Of two agents with one name, the one whose origin comes first here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentOrigin {
    /// A client, with `customAgents`.
    Client,
    Project,
    User,
    Plugin,
    BuiltIn,
}

impl AgentOrigin {
    /// Returns the name on the wire, which has none for agents of clients.
    pub fn source(self) -> Option<AgentSource> {
        match self {
            Self::Client => None,
            Self::Project => Some(AgentSource::Project),
            Self::User => Some(AgentSource::User),
            Self::Plugin => Some(AgentSource::Plugin),
            Self::BuiltIn => Some(AgentSource::Builtin),
        }
    }
}

/// The model that an agent wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum ModelPolicy {
    /// The model of the session that starts it.
    #[default]
    Inherit,
    /// A small and fast model.
    Small,
    /// A model of another vendor than the session's.
    OtherFamily,
    Named(String),
}

impl ModelPolicy {
    /// Returns the model that the author named.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Inherit | Self::Small | Self::OtherFamily => None,
        }
    }
}

impl From<&str> for ModelPolicy {
    fn from(text: &str) -> Self {
        match text.trim() {
            "" | "inherit" => Self::Inherit,
            "small" => Self::Small,
            "other-family" => Self::OtherFamily,
            name => Self::Named(name.to_owned()),
        }
    }
}

impl From<String> for ModelPolicy {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for ModelPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "inherit",
            Self::Small => "small",
            Self::OtherFamily => "other-family",
            Self::Named(name) => name,
        })
    }
}

/// How an agent treats permission requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// As the session does.
    Default,
    /// Changes to files in the workspace need no permission.
    AcceptEdits,
    /// The agent changes nothing.
    Plan,
    /// Nothing needs a permission.
    BypassPermissions,
    /// The session that started the agent is asked.
    Bubble,
    /// Every permission request is denied.
    DontAsk,
}

impl PermissionMode {
    /// Returns whether it allows anything for which the session would request a permission.
    pub fn grants(self) -> bool {
        match self {
            Self::AcceptEdits | Self::BypassPermissions => true,
            Self::Default | Self::Plan | Self::Bubble | Self::DontAsk => false,
        }
    }
}

/// How an agent's work is isolated from its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A git worktree of its own.
    Worktree,
}

/// Where an agent stores its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    User,
    Project,
    /// In the project, but private to this user.
    Local,
}

/// Whether an agent answers people, other agents, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    Primary,
    Subagent,
    #[default]
    All,
}
