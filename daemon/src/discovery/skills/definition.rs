//! The definition of a skill, from whatever source.

use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{Skill, SkillSource};
use serde_json::json;

use crate::discovery::content_hash::ContentHash;

/// A skill: its front matter. Its text is read from the file when the skill is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDefinition {
    pub name: String,
    pub description: String,
    pub argument_hint: Option<String>,
    /// Whether people may use it as a slash command.
    pub user_invocable: bool,
    /// Whether models may load it.
    pub model_invocable: bool,
    /// The only tools that may be used while it is active; all when absent.
    pub allowed_tools: Option<Vec<String>>,
    pub place: SkillPlace,
    pub source: SkillSource,
    /// Its `SKILL.md`; empty for a skill that a client provides.
    pub path: PathBuf,
    /// The folder of the project that it belongs to.
    pub project: Option<PathBuf>,
    /// The name of the plugin that brings it.
    pub plugin: Option<String>,
}

/// Where a skill is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillPlace {
    Conversation,
    /// A sub-agent of its own.
    Subagent {
        /// The agent to start; the general one when absent.
        agent: Option<String>,
        model: Option<String>,
    },
}

impl SkillDefinition {
    /// Returns the folder with the files that belong to the skill; `None` for a skill of a client.
    pub fn folder(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.has_file())
    }

    /// Returns whether the skill is a file on disk.
    pub fn has_file(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }

    /// Describes the skill for clients.
    pub fn describe(&self, enabled: bool) -> Skill {
        let path = self.path.to_string_lossy();
        Skill {
            name: self.name.clone(),
            command_name: Some(self.command_name()),
            description: self.description.clone(),
            source: self.source,
            user_invocable: self.user_invocable,
            enabled,
            path: self.has_file().then(|| path.into_owned()),
            project_path: None,
            plugin_name: self.plugin.clone(),
            argument_hint: self.argument_hint.clone(),
            unavailable: None,
        }
    }

    /// Returns the name of its slash command.
    pub fn command_name(&self) -> String {
        let words: Vec<&str> = self.name.split_whitespace().collect();
        words.join("-")
    }

    /// Returns the folder that has to be trusted with this skill, without links; `None` for skills
    /// that the user, a plugin or a client brings.
    pub fn needs_trust_of(&self) -> Option<PathBuf> {
        match self.source {
            SkillSource::Project | SkillSource::Inherited => {
                let folder = self.project.as_ref()?;
                Some(folder.canonicalize().unwrap_or_else(|_| folder.clone()))
            }
            SkillSource::PersonalCopilot
            | SkillSource::PersonalAgents
            | SkillSource::Plugin
            | SkillSource::Custom
            | SkillSource::Sdk => None,
        }
    }

    /// Returns the hash of the skill's name and of what restricts it. Its text may change without new
    /// trust, as that of instructions may: nothing in it is run.
    pub fn hash(&self) -> ContentHash {
        ContentHash::of_json(&json!({
            "skill": self.name,
            "allowedTools": self.allowed_tools,
            "userInvocable": self.user_invocable,
            "modelInvocable": self.model_invocable,
        }))
    }
}

/// Returns whether two names mean the same skill: case does not matter, and spaces and underscores
/// count as hyphens.
pub fn is_same_skill(one: &str, other: &str) -> bool {
    let plain = |name: &str| -> String {
        let letters = name.trim().trim_start_matches('/').chars();
        let letters = letters.map(|letter| match letter {
            ' ' | '_' => '-',
            letter => letter,
        });
        letters.flat_map(char::to_lowercase).collect()
    };
    plain(one) == plain(other)
}
