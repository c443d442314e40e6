//! The definition of a command from a file.

use std::path::PathBuf;

use super::template::Template;
use crate::discovery::content_hash::ContentHash;

/// A slash command from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandDefinition {
    /// Its name, without a slash.
    pub name: String,
    /// Other names that it answers to, if no other command has them.
    pub aliases: Vec<String>,
    pub description: String,
    /// The words that may follow its name, for people.
    pub argument_hint: Option<String>,
    pub template: Template,
    /// The tools that its run may use; all when absent.
    pub tools: Option<Vec<String>>,
    /// Those of them that are not built in.
    pub unknown_tools: Vec<String>,
    /// The model that answers in its run.
    pub model: Option<String>,
    /// The agent that answers in its run, or that runs it.
    pub agent: Option<String>,
    pub place: CommandPlace,
    pub origin: CommandOrigin,
    pub path: PathBuf,
    /// The hash of all that the file says.
    pub hash: ContentHash,
}

impl CommandDefinition {
    /// Returns the folder that has to be trusted with this command before it runs. A command that
    /// runs nothing by itself, and one of the user's own, needs no trust.
    pub fn needs_trust_of(&self) -> Option<&PathBuf> {
        match &self.origin {
            CommandOrigin::Project(folder) if self.template.runs_commands() => Some(folder),
            CommandOrigin::Project(_) | CommandOrigin::User => None,
        }
    }
}

/// Where a command comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOrigin {
    /// A project, by its folder.
    Project(PathBuf),
    User,
}

impl CommandOrigin {
    /// Returns the word that names the origin in lists and in names.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Project(_) => "project",
            Self::User => "user",
        }
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandPlace {
    Conversation,
    /// A sub-agent of its own.
    Subagent,
    /// A sub-agent if the command's agent works for others only; the author did not say.
    AsAgentWants,
}

/// Whose format a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandFormat {
    /// Claude's, and our own.
    Claude,
    /// The prompt files of Copilot.
    Prompt,
    Opencode,
}

impl CommandFormat {
    /// Returns how the names of files end.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Claude | Self::Opencode => ".md",
            Self::Prompt => ".prompt.md",
        }
    }

    pub(super) fn has_subfolders(self) -> bool {
        match self {
            Self::Claude | Self::Opencode => true,
            Self::Prompt => false,
        }
    }
}
