//! One hook, in the one form that all file formats are read into.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::kind::{HookKind, PayloadForm};
use super::matcher::HookMatcher;

/// How long a hook may run unless its file says otherwise.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time that a file may give a hook.
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// A hook of a file.
#[derive(Debug, Clone)]
pub struct HookDefinition {
    pub kind: HookKind,
    pub form: PayloadForm,
    pub matcher: HookMatcher,
    /// Further limits a hook to some calls of a tool.
    pub condition: Option<HookCondition>,
    pub action: HookAction,
    pub timeout: Duration,
    /// What the file says about a failure of this hook.
    pub on_failure: Option<OnFailure>,
    /// The hook runs beside the session, which neither waits for it nor reads what it answers.
    pub in_background: bool,
    /// The hook runs once in a session.
    pub once: bool,
    /// What people are shown while the hook runs.
    pub status_message: Option<String>,
    pub origin: HookOrigin,
    pub file: PathBuf,
    pub line: usize,
}

/// What happens if a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    Continue,
    Block,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookAction {
    /// Runs a script with bash.
    Script { script: String, place: HookPlace },
    /// Runs a program without a shell.
    Program {
        program: String,
        args: Vec<String>,
        place: HookPlace,
    },
    /// Sends the payload to an address.
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// The variables that may be put into the headers.
        allowed_env: Vec<String>,
    },
    /// Sends a prompt as if a person had typed it.
    Prompt { prompt: String },
}

/// Where a command of a hook runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookPlace {
    /// Relative to the project, or absolute.
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
}

/// `Tool(pattern)`: the hook is for calls of this tool whose main argument matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCondition {
    pub tool: String,
    pub pattern: Option<String>,
}

/// Who wrote a hook. The order is the order in which hooks are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookOrigin {
    /// Whoever owns the machine.
    Policy,
    User,
    Project,
    Plugin,
    /// The definition of an agent.
    Agent,
}
