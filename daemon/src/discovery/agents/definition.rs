//! What an agent is, however it was defined.

use std::fmt;
use std::path::PathBuf;

use loopd_proto::params::discovery::AgentSource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent as its author describes it.
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
    /// The mode it runs in; that of the session when absent.
    pub permission_mode: Option<PermissionMode>,
    /// Whether it runs beside the caller unless the call says otherwise.
    pub background: bool,
    pub isolation: Option<Isolation>,
    pub max_turns: Option<u32>,
    /// For those who show it; says nothing to the daemon.
    pub color: Option<String>,
    pub memory: Option<MemoryScope>,
    pub mcp_servers: Option<Value>,
    /// Servers without which it is of no use.
    pub required_mcp_servers: Vec<String>,
    pub hooks: Option<Value>,
    pub skills: Option<Vec<String>>,
    /// What comes before the first message that it gets.
    pub initial_prompt: Option<String>,
    pub mode: AgentMode,
    /// Whether people may select it.
    pub user_invocable: bool,
    /// Whether models are told of it.
    pub infer: bool,
    pub origin: AgentOrigin,
    /// The file that it comes from.
    pub path: Option<PathBuf>,
}

impl AgentDefinition {
    /// The name to show to people.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }
}

/// Who defined an agent; of two with one name, the one whose origin comes first here counts.
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
    /// What the wire calls it; it has no word for what a client defined.
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

/// Which model an agent wants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub enum ModelPolicy {
    /// The one of the session that starts it.
    #[default]
    Inherit,
    /// A small and fast one.
    Small,
    /// One that was made by others than the session's.
    OtherFamily,
    Named(String),
}

impl ModelPolicy {
    /// The model that the author named, if it is one.
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

/// How the permission requests of an agent are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// As those of the session.
    Default,
    /// Changes of files in the workspace need no question.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// Nothing needs a question.
    BypassPermissions,
    /// The session that started the agent is asked.
    Bubble,
    /// What would need a question is refused.
    DontAsk,
}

impl PermissionMode {
    /// Whether it allows anything that the session would have asked about.
    pub fn grants(self) -> bool {
        match self {
            Self::AcceptEdits | Self::BypassPermissions => true,
            Self::Default | Self::Plan | Self::Bubble | Self::DontAsk => false,
        }
    }
}

/// What keeps an agent's work apart from its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A git worktree of its own.
    Worktree,
}

/// Where an agent keeps what it wants to remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    User,
    Project,
    /// In the project, but not for others who work on it.
    Local,
}

/// Whether an agent answers people, callers, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentMode {
    Primary,
    Subagent,
    #[default]
    All,
}
