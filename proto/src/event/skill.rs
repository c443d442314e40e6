//! Skills: what a session loads, and what it may load.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::params::discovery::{Skill, SkillSource};

/// A skill was loaded: its text is in the conversation, or in the system message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillInvoked {
    pub name: String,
    pub model: Option<String>,
    /// The `SKILL.md`; empty for a skill that a client provides.
    pub path: String,
    /// Our own member: the folder of the file without links, if that is another name.
    pub folder: Option<String>,
    /// The text that the model is given.
    pub content: String,
    /// The only tools that may be used while the skill is active in a run; all when absent.
    pub allowed_tools: Option<Vec<String>>,
    pub disable_model_invocation: Option<bool>,
    pub source: Option<SkillSource>,
    pub plugin_name: Option<String>,
    pub description: Option<String>,
    pub trigger: Option<SkillTrigger>,
}

/// Who loaded a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTrigger {
    /// A person, with a slash command.
    UserInvoked,
    /// The model, with the tool `skill`.
    AgentInvoked,
    /// The definition of the agent that answers. The text is in the system message.
    ContextLoad,
}

/// The skills that the definition of the agent in force puts into the system message from now on, in
/// the place of those before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsPreloaded {
    pub skills: Vec<PreloadedSkill>,
}

/// A skill in the system message.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreloadedSkill {
    pub name: String,
    /// The `SKILL.md`; empty for a skill that a client provides.
    pub path: String,
    /// The folder of the file without links, if that is another name.
    pub folder: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
}

/// A skill was put into use or out of use for this session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillSwitched {
    pub name: String,
    pub enabled: bool,
}

/// The skills of the session, whenever others are found than before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillsLoaded {
    pub skills: Vec<Skill>,
}
