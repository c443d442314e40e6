//! The skills of a session: those that were loaded, those that the agent in force has in its system
//! message, and those that were put into or out of use.

use std::collections::BTreeMap;
use std::path::Path;

use loopd_proto::event::skill::{
    PreloadedSkill, SkillInvoked, SkillSwitched, SkillTrigger, SkillsPreloaded,
};
use loopd_proto::id::Seq;

use crate::state::State;

/// The most skills that are kept as loaded; the oldest are forgotten first.
const MOST_ACTIVE: usize = 100;

/// A skill whose text is in the conversation, or in the system message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveSkill {
    pub invoked: SkillInvoked,
    /// The number of the turn in which it was loaded.
    pub turn: u32,
    /// The position in the log of the event that loaded it.
    pub seq: Seq,
}

impl ActiveSkill {
    /// Returns whether the text is in the conversation, and not in the system message.
    fn is_in_conversation(&self) -> bool {
        match self.invoked.trigger {
            Some(SkillTrigger::ContextLoad) => false,
            Some(SkillTrigger::UserInvoked | SkillTrigger::AgentInvoked) | None => true,
        }
    }
}

/// A skill that restricts a run: it was loaded in that run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSkill {
    pub name: String,
    /// The only tools that may be used; all when absent.
    pub tools: Option<Vec<String>>,
}

/// The skills of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Skills {
    active: Vec<ActiveSkill>,
    preloaded: Vec<PreloadedSkill>,
    /// What clients said about single skills: whether they are in use.
    switches: BTreeMap<String, bool>,
    /// What was loaded up to this position of the log was loaded in another home.
    elsewhere: Seq,
    /// Whether the skills of the system message are those of another home.
    preloaded_elsewhere: bool,
}

impl Skills {
    /// Takes a skill that was loaded. Loading it again replaces its text.
    pub(crate) fn invoked(&mut self, invoked: &SkillInvoked, turn: u32, seq: Seq) {
        self.forget(&invoked.name);
        self.active.push(ActiveSkill {
            invoked: invoked.clone(),
            turn,
            seq,
        });
        let surplus = self.active.len().saturating_sub(MOST_ACTIVE);
        self.active.drain(..surplus);
    }

    pub(crate) fn preloaded(&mut self, preloaded: &SkillsPreloaded) {
        self.preloaded.clone_from(&preloaded.skills);
        self.preloaded_elsewhere = false;
    }

    /// The log up to this position was written in another home: the folders of its skills are not here.
    pub(crate) fn stay_elsewhere(&mut self, through: Seq) {
        self.elsewhere = through;
        self.preloaded_elsewhere = true;
    }

    /// Takes what a client says about a skill. One that is put out of use is active no longer.
    pub(crate) fn switched(&mut self, switched: &SkillSwitched) {
        self.switches
            .insert(switched.name.clone(), switched.enabled);
        if !switched.enabled {
            self.forget(&switched.name);
        }
    }

    /// Forgets what clients said about single skills: the settings name others now.
    pub(crate) fn forget_switches(&mut self) {
        self.switches.clear();
    }

    /// Forgets the skills whose text came into the conversation at a position of the log or after it.
    pub(crate) fn forgotten_from(&mut self, seq: Seq) {
        self.active
            .retain(|skill| skill.seq < seq || !skill.is_in_conversation());
    }

    /// Brings back what was loaded before an event that no longer counts for the conversation. What
    /// the event put out of use, or into the system message, stays so.
    pub(crate) fn put_back(&mut self, before: Vec<ActiveSkill>) {
        let now = std::mem::replace(&mut self.active, before);
        let in_system = now.into_iter().filter(|skill| !skill.is_in_conversation());
        for skill in in_system {
            self.forget(&skill.invoked.name);
            self.active.push(skill);
        }
        self.active
            .retain(|skill| self.switches.get(&skill.invoked.name) != Some(&false));
    }

    fn forget(&mut self, name: &str) {
        self.active.retain(|skill| skill.invoked.name != name);
    }

    /// Returns what clients said about single skills: whether they are in use.
    pub fn switches(&self) -> &BTreeMap<String, bool> {
        &self.switches
    }

    /// Returns whether a skill is in use, if a client said so.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.switches.get(name).copied()
    }

    /// Returns all skills that were loaded, the newest last.
    pub fn loaded(&self) -> &[ActiveSkill] {
        &self.active
    }

    /// Returns whether the system message has exactly these skills, and as they are in this home.
    pub(crate) fn has_preloaded(&self, skills: &[PreloadedSkill]) -> bool {
        (skills.is_empty() || !self.preloaded_elsewhere) && self.preloaded == skills
    }

    /// Returns the skills that the system message has.
    pub fn in_system_message(&self) -> &[PreloadedSkill] {
        &self.preloaded
    }
}

impl State {
    /// Returns the skills whose text is in the conversation, the oldest first: what a compaction has
    /// to bring back. `path` says where the text is on disk, `content` what it was when it was loaded.
    pub fn active_skills(&self) -> impl Iterator<Item = &SkillInvoked> {
        let loaded = self.skills.loaded().iter();
        let loaded = loaded.filter(|skill| skill.is_in_conversation());
        loaded.map(|skill| &skill.invoked)
    }

    /// Returns the folders of the skills that are active, whose files the model may read. A folder
    /// that holds the working directory gives no such right, nor does a skill of another home.
    pub fn skill_folders(&self) -> impl Iterator<Item = String> {
        let skills = &self.skills;
        let loaded = skills.loaded().iter();
        let loaded = loaded.filter(|it| it.is_in_conversation() && it.seq > skills.elsewhere);
        let loaded = loaded.map(|skill| {
            let real = skill.invoked.folder.as_deref();
            (skill.invoked.path.as_str(), real)
        });
        let preloaded = skills.in_system_message().iter();
        let preloaded = preloaded.filter(|_| !skills.preloaded_elsewhere);
        let preloaded = preloaded.map(|skill| (skill.path.as_str(), skill.folder.as_deref()));
        let folders = loaded.chain(preloaded).flat_map(|(path, real)| {
            let folder = Path::new(path).parent().and_then(Path::to_str);
            [folder, real].into_iter().flatten()
        });
        let folders = folders
            .filter(|folder| !folder.is_empty() && !crate::policy::within(folder, &self.cwd));
        folders.map(str::to_owned)
    }

    /// Returns the skills that restrict the tools of the current run, with the tools that each allows:
    /// those of the run itself, and those of the runs above in which this session was started.
    pub fn restricting_skills(&self) -> impl Iterator<Item = (&str, &[String])> {
        let of_run = self.run().map_or(&[][..], |run| &run.skills).iter();
        let of_run = of_run.map(|skill| (skill.name.as_str(), skill.tools.as_deref()));
        let preloaded = self.skills.in_system_message().iter();
        let preloaded =
            preloaded.map(|skill| (skill.name.as_str(), skill.allowed_tools.as_deref()));
        let above = self.limits_from_above().into_iter();
        let above = above.flat_map(|limits| &limits.skills);
        let above = above.map(|skill| (skill.name.as_str(), Some(skill.tools.as_slice())));
        of_run
            .chain(preloaded)
            .chain(above)
            .filter_map(|(name, tools)| Some((name, tools?)))
    }
}

#[cfg(test)]
mod tests;
