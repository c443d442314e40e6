//! One hook, in the one form that all file formats are read into.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::discovery::content_hash::ContentHash;

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
    pub source: HookSource,
    pub file: PathBuf,
    pub line: usize,
    /// Changes with everything that the hook does: what its file says of it, and the content of the
    /// files of its project that its command names.
    pub hash: ContentHash,
    /// The files that its command names.
    pub named_files: Vec<PathBuf>,
    /// The paths by which a guard of the user's own files names them, links included.
    pub(super) own_paths: Vec<PathBuf>,
    /// The root of the project that those files belong to; empty if there is none.
    pub root: PathBuf,
    /// The hash of what the hook's file says of it, without those files.
    pub(super) said: ContentHash,
    /// The file whose `disableAllHooks` turns this hook off.
    pub off: Option<PathBuf>,
    /// The hook is not there any more as it was trusted. It stands in for that one and denies.
    pub missing: bool,
    /// Why this guard cannot be used. It denies then.
    pub unusable: Option<String>,
    /// Whether it came into the user's own files after loopd had used them, and nobody has accepted it: what
    /// it allows does not count.
    pub is_new: bool,
}

impl HookDefinition {
    /// Returns the name of the kind as the file spells it.
    pub fn kind_name(&self) -> &'static str {
        self.kind.name_in(self.form)
    }
}

/// Where a hook comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSource {
    pub origin: HookOrigin,
    /// The folder that has to be trusted with this hook before it runs; `None` if nobody has to be
    /// asked, because whoever owns the machine, the user or a client brought it.
    pub folder: Option<PathBuf>,
    /// The root of the plugin that brings it.
    pub plugin: Option<PathBuf>,
}

impl HookSource {
    /// Returns a source that needs the trust of a folder.
    pub fn of_folder(origin: HookOrigin, folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()),
            ..Self::own(origin)
        }
    }

    /// Returns a source that needs no trust.
    pub fn own(origin: HookOrigin) -> Self {
        Self {
            origin,
            folder: None,
            plugin: None,
        }
    }
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

impl fmt::Display for HookAction {
    /// Writes what runs as people would type it, and with what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script { script, place } => {
                place.fmt_env(f)?;
                f.write_str(script)?;
                place.fmt_cwd(f)
            }
            Self::Program {
                program,
                args,
                place,
            } => {
                place.fmt_env(f)?;
                f.write_str(program)?;
                args.iter().try_for_each(|arg| write!(f, " {arg:?}"))?;
                place.fmt_cwd(f)
            }
            Self::Http {
                url, allowed_env, ..
            } => {
                write!(f, "POST {url}")?;
                match allowed_env.as_slice() {
                    [] => Ok(()),
                    variables => write!(f, " (with the variables {})", variables.join(", ")),
                }
            }
            Self::Prompt { prompt } => f.write_str(prompt),
        }
    }
}

impl HookPlace {
    fn fmt_env(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut env = self.env.iter();
        env.try_for_each(|(name, value)| write!(f, "{name}={value:?} "))
    }

    fn fmt_cwd(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cwd {
            Some(cwd) => write!(f, " (in {})", cwd.display()),
            None => Ok(()),
        }
    }
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

impl fmt::Display for HookCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
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
    /// A folder that an app named.
    App,
}

impl HookOrigin {
    /// Returns the word for people and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::User => "user",
            Self::Project => "project",
            Self::Plugin => "plugin",
            Self::Agent => "agent",
            Self::App => "app",
        }
    }
}
