//! What a slash command sets for the run of its message, and for no other run.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::agent::Stance;
use crate::id::MessageId;

/// The settings of one run. They restrict what the session allows and never add to it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunScope {
    /// The name of the command, without its slash.
    pub command: String,
    /// The tools that the run may use, as the file of the command names them; all when absent.
    pub tools: Option<Vec<String>>,
    /// The model that answers in this run.
    pub model: Option<String>,
    /// The agent that answers in this run.
    pub agent: Option<ScopedAgent>,
    /// The run is a research: it may only hand out questions to research agents, and write this file.
    pub research_report: Option<String>,
    /// The skill that the message loads.
    pub skill: Option<ScopedSkill>,
    /// How much the run may take, its sub-agents included.
    pub limits: Option<RunLimits>,
}

/// The limits of one run. Those of the session hold beside them.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    /// Model calls.
    pub max_turns: Option<u64>,
    /// Milliseconds since the run has begun.
    pub timeout_ms: Option<u64>,
}

/// A slash command that runs in a sub-agent, with the limits of its run.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// Stands for the command where runs are known by their messages.
    pub id: MessageId,
    pub limits: Option<RunLimits>,
}

/// The skill of a message. Its text is read when the message is prepared.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopedSkill {
    pub name: String,
    /// The words that its text is filled in with.
    #[serde(default)]
    pub arguments: String,
    /// Whether the model asked for it, and not a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
}

/// The tools that runs allow at most. What narrows a run narrows every agent that is started in it, and
/// those below.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolLimits {
    /// The lists of slash commands: only what all of them name may be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<Vec<String>>,
    /// The skills that restrict tools, also by the arguments of calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<LimitingSkill>,
}

/// A skill that restricts tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitingSkill {
    pub name: String,
    /// The only tools that may be used.
    pub tools: Vec<String>,
}

impl ToolLimits {
    /// Returns whether what these limits allow is allowed by others, too.
    pub fn keep_within(&self, others: &Self) -> bool {
        let lists = others.lists.iter().all(|list| self.lists.contains(list));
        let skills = others.skills.iter().all(|it| self.skills.contains(it));
        lists && skills
    }

    /// Returns whether nothing is restricted.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.skills.is_empty()
    }

    /// Adds other limits; all of them hold.
    pub fn add(&mut self, other: Self) {
        for list in other.lists {
            if !self.lists.contains(&list) {
                self.lists.push(list);
            }
        }
        for skill in other.skills {
            if !self.skills.contains(&skill) {
                self.skills.push(skill);
            }
        }
    }
}

/// The agent of one run.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopedAgent {
    pub name: String,
    /// The tools of the agent; all when absent.
    pub tools: Option<Vec<String>>,
    pub stance: Stance,
}

impl RunScope {
    /// Returns whether the run differs from any other.
    pub fn sets_something(&self) -> bool {
        self.tools.is_some()
            || self.model.is_some()
            || self.agent.is_some()
            || self.research_report.is_some()
            || self.skill.is_some()
            || self.limits.is_some()
    }
}
