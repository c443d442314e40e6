//! The skills of a session: which there are, which of them can be used, and loading one.
//!
//! `session` looks them up when messages come and lends them to its sub-agents; the tool `skill` and
//! slash commands load one; `turn` puts those of an agent into the system message.

pub mod disabled;
mod listing;
mod load;
mod lookup;
mod provider;

use std::collections::BTreeSet;
use std::sync::Arc;

use loopd_proto::params::discovery::Skill;

use crate::client::Client;
use crate::discovery::skills::{SkillDefinition, is_same_skill};

pub use load::{LoadRequest, SkillError};
pub use lookup::{SkillCell, SkillLookup, SkillNews, SkillSwitch};
pub use provider::SkillProvider;

/// A skill of a session.
#[derive(Clone)]
pub struct SessionSkill {
    pub definition: SkillDefinition,
    /// Why it cannot be used, for example for want of trust.
    pub unavailable: Option<String>,
    /// The client that has its text, if it is no file.
    pub(crate) provider: Option<Arc<dyn Client>>,
}

/// The skills that were found for a session, and what is wrong with files.
#[derive(Clone, Default)]
pub struct SkillSet {
    pub skills: Vec<Arc<SessionSkill>>,
    /// About skills that are used all the same.
    pub warnings: Vec<String>,
    /// About files that are not used.
    pub errors: Vec<String>,
    /// The names of skills that the user put out of use in all sessions.
    pub disabled: BTreeSet<String>,
}

/// The skills of a session with those that are out of use at this moment.
#[derive(Clone, Default)]
pub struct SkillView {
    set: Arc<SkillSet>,
    /// The names of skills that are out of use.
    off: BTreeSet<String>,
}

impl std::fmt::Debug for SkillView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.set.skills.iter().map(|skill| &skill.definition.name);
        f.debug_list().entries(names).finish()
    }
}

impl SkillView {
    /// Makes a view of a set. `is_off` says whether a skill is out of use.
    pub fn new(set: Arc<SkillSet>, is_off: impl Fn(&str) -> bool) -> Self {
        let names = set.skills.iter().map(|skill| &skill.definition.name);
        let off = names.filter(|name| is_off(name)).cloned().collect();
        Self { set, off }
    }

    /// Returns all skills, those that cannot be used among them.
    pub fn all(&self) -> &[Arc<SessionSkill>] {
        &self.set.skills
    }

    pub fn set(&self) -> &SkillSet {
        &self.set
    }

    pub fn is_off(&self, name: &str) -> bool {
        self.off.contains(name)
    }

    /// Returns the skills that can be used.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<SessionSkill>> {
        let skills = self.set.skills.iter();
        skills.filter(|skill| skill.unavailable.is_none() && !self.is_off(&skill.definition.name))
    }

    /// Returns the skills that models may load.
    pub fn for_models(&self) -> impl Iterator<Item = &Arc<SessionSkill>> {
        self.usable()
            .filter(|skill| skill.definition.model_invocable)
    }

    /// Returns the skills that people may use as slash commands.
    pub fn for_people(&self) -> impl Iterator<Item = &Arc<SessionSkill>> {
        self.usable()
            .filter(|skill| skill.definition.user_invocable)
    }

    /// Finds a skill by its exact name, else by one that means the same.
    pub fn get(&self, name: &str) -> Option<&Arc<SessionSkill>> {
        let skills = &self.set.skills;
        let exact = skills.iter().find(|skill| skill.definition.name == name);
        let same = |skill: &&Arc<SessionSkill>| is_same_skill(&skill.definition.name, name);
        exact.or_else(|| skills.iter().find(same))
    }

    /// Describes all skills for clients.
    pub fn describe(&self) -> Vec<Skill> {
        let skills = self.set.skills.iter();
        let skills = skills.map(|skill| {
            let off = self.is_off(&skill.definition.name) || skill.unavailable.is_some();
            Skill {
                unavailable: skill.unavailable.clone(),
                ..skill.definition.describe(!off)
            }
        });
        skills.collect()
    }
}
