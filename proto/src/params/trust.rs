//! Our own methods about what a folder would bring into its sessions, and whether the user trusts it.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::discovery::FileProblem;

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct TrustShowParams {
    /// A folder; the directory of the launch when absent. What counts is the project around it.
    pub path: Option<String>,
}

/// What a project would bring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustShown {
    /// The folder, without links. `loopd.trust.set` takes it.
    pub path: String,
    /// The root of its project.
    pub root: String,
    /// The hash of everything below. `loopd.trust.set` takes it.
    pub hash: String,
    /// Whether the user trusts the project with all of it.
    pub trusted: bool,
    pub items: Vec<TrustItem>,
    /// The guards that the user trusts the project with and that are not there any more as they were
    /// trusted. Sessions deny what they would be asked about until the project is trusted again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<TrustItem>,
    /// The files that cannot be used, or not in full.
    pub problems: Vec<FileProblem>,
}

/// One thing that a project brings.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustItem {
    pub kind: TrustItemKind,
    pub file: String,
    pub line: Option<usize>,
    pub name: String,
    /// What it runs or grants.
    pub detail: String,
    pub trusted: bool,
    pub hash: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TrustItemKind {
    Hook,
    Agent,
    McpServer,
    /// Permissions in settings.
    Permissions,
    /// A setting that turns off hooks, also the user's own.
    HookSwitch,
    /// A slash command whose text runs shell commands.
    Command,
    /// A skill, which models and people may use.
    Skill,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct TrustSetParams {
    pub path: String,
    /// The hash of what was shown. If the project brings something else by now, nothing is trusted.
    pub hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustChanged {
    /// The root of the project.
    pub path: String,
    /// How many things the project is trusted with.
    pub items: usize,
}
