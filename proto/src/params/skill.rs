//! Methods about the skills of a session.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::discovery::Skill;
use crate::id::SessionId;

/// Names a skill of a session.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillParams {
    pub session_id: SessionId,
    pub name: String,
}

/// Puts a skill out of use in all sessions, or back into use.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct SkillDisabledParams {
    pub name: String,
    pub disabled: bool,
}

/// The skills of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SkillList {
    pub skills: Vec<Skill>,
}

/// What is wrong with the files of skills.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillDiagnostics {
    /// About skills that are used all the same.
    pub warnings: Vec<String>,
    /// About files that are not used.
    pub errors: Vec<String>,
}

/// The skills that were loaded in a session, the newest last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InvokedSkills {
    pub skills: Vec<InvokedSkill>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokedSkill {
    pub name: String,
    pub path: String,
    pub content: String,
    pub allowed_tools: Option<Vec<String>>,
    pub disable_model_invocation: Option<bool>,
    /// The number of the turn in which it was loaded.
    pub invoked_at_turn: u64,
}

/// Names a folder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FolderSkillsParams {
    /// The folder of a session; the directory of the launch when absent.
    pub working_directory: Option<String>,
}

/// The skills for sessions in a folder, and what is wrong with files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FolderSkills {
    pub skills: Vec<Skill>,
    /// Why files are not used.
    pub errors: Vec<String>,
    /// What is wrong with skills that are used all the same.
    pub warnings: Vec<String>,
}

/// A skill of a client, without its text.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvidedSkill {
    pub name: String,
    pub description: String,
    pub user_invocable: Option<bool>,
    pub disable_model_invocation: Option<bool>,
    pub argument_hint: Option<String>,
}
