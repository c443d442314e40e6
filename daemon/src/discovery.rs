//! Finds skills, custom agents, slash commands, instructions and MCP servers on disk.
//!
//! `front/rpc` lists them, `subagent/definitions` offers the agents, `turn` puts the instructions
//! into the system message. This module only reads, within bounds of size, number and depth. It
//! follows no link out of a project and runs nothing. A file that cannot be used is a [`Problem`]
//! and does not affect other files.

pub mod agents;
pub mod commands;
pub mod content_hash;
mod files;
mod front_matter;
pub mod hooks;
pub mod instructions;
pub mod mcp;

pub mod project_folders;
pub mod settings_rules;
pub mod skills;
mod tool_words;

pub use tool_words::not_built_in;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The folder of loopd in a project.
const OWN_FOLDER: &str = ".loopd";

/// Where the user's own files are.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The home of the daemon.
    pub home: PathBuf,
    /// The home directory of the user, if the launch has one.
    pub user: Option<PathBuf>,
    /// The folder of Copilot's own files, if there may be one.
    pub copilot: Option<PathBuf>,
}

impl Host {
    /// Returns the places of the user with this environment.
    pub fn of(env: &BTreeMap<String, String>, home: &Path) -> Self {
        let variable = |name: &str| env.get(name).filter(|value| !value.is_empty());
        let user = variable("HOME").map(PathBuf::from);
        let copilot = variable("COPILOT_HOME").map(PathBuf::from);
        Self {
            home: home.to_owned(),
            copilot: copilot.or_else(|| Some(user.as_ref()?.join(".copilot"))),
            user,
        }
    }
}

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub what: String,
}

impl Problem {
    pub(crate) fn new(file: &Path, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            what: what.into(),
        }
    }

    fn at(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::new(file, what)
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The items that were found, and the files that could not be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered<T> {
    pub items: Vec<T>,
    pub problems: Vec<Problem>,
}

impl<T> Default for Discovered<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            problems: Vec::new(),
        }
    }
}

impl<T> Discovered<T> {
    fn add(&mut self, outcome: Result<Option<T>, Problem>) {
        match outcome {
            Ok(item) => self.items.extend(item),
            Err(problem) => self.problems.push(problem),
        }
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;
