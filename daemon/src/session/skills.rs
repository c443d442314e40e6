//! The skills of a session: where they are looked up, and which are in use.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loopd_proto::event::skill::SkillsLoaded;
use loopd_proto::run_scope::ScopedSkill;

use super::actor::Actor;
use super::effects::Reporter;
use crate::approvals;
use crate::discovery::Host;
use crate::discovery::skills::{SkillPlaces, is_same_skill, named_by_environment, project_places};
use crate::skill::{SkillCell, SkillLookup, SkillNews, SkillProvider, SkillView};
use loopd_kernel::command::Command;
use loopd_kernel::state::State;

/// The type of warnings about files of skills.
const FILE_WARNING: &str = "skill_file";

/// The skills of one session.
#[derive(Default)]
pub(super) struct SessionSkills {
    pub(super) cell: SkillCell,
    /// The names of skills that are out of use in the sessions above.
    pub(super) off_above: BTreeSet<String>,
}

/// What a session says about its skills.
#[derive(Clone)]
struct Said<'a> {
    switches: Cow<'a, BTreeMap<String, bool>>,
    disabled: Cow<'a, [String]>,
}

impl Said<'_> {
    /// Returns whether a skill is in use, if the session says so.
    fn about(&self, name: &str) -> Option<bool> {
        let is_disabled = || self.disabled.iter().any(|it| is_same_skill(it, name));
        let switch = self.switches.get(name).copied();
        switch.or_else(|| is_disabled().then_some(false))
    }
}

fn said(state: &State) -> Said<'_> {
    let disabled = state.options.disabled_skills.as_deref();
    Said {
        switches: Cow::Borrowed(state.skills.switches()),
        disabled: Cow::Borrowed(disabled.unwrap_or_default()),
    }
}

impl Actor {
    /// Returns the skills of the moment.
    pub(super) fn skills_view(&self) -> SkillView {
        let set = self.skills.cell.get();
        let said = said(&self.state);
        let (disabled, above) = (set.disabled.clone(), &self.skills.off_above);
        SkillView::new(set, |name| {
            let elsewhere =
                || above.contains(name) || disabled.iter().any(|it| is_same_skill(it, name));
            !said.about(name).unwrap_or_else(|| !elsewhere())
        })
    }

    /// Returns the names of skills that are out of use, for sub-agents.
    pub(super) fn skills_off(&self) -> BTreeSet<String> {
        let view = self.skills_view();
        let names = view.all().iter().map(|skill| &skill.definition.name);
        names.filter(|name| view.is_off(name)).cloned().collect()
    }

    /// Returns a lookup of the skills; `None` if there can be none. A sub-agent has the skills of its
    /// parents.
    pub(super) fn skill_lookup(&self) -> Option<SkillLookup> {
        if self.subagents.is_child() {
            return None;
        }
        let places = self.skill_places();
        let providers = self.skill_providers();
        let is_empty = |places: &SkillPlaces| {
            places.host.is_none()
                && places.projects.is_empty()
                && places.plugins.is_empty()
                && places.named.is_empty()
        };
        if is_empty(&places) && providers.is_empty() && self.skills.cell.is_empty() {
            return None;
        }
        let Said { switches, disabled } = said(&self.state);
        let said = Said {
            switches: Cow::Owned(switches.into_owned()),
            disabled: Cow::Owned(disabled.into_owned()),
        };
        Some(SkillLookup {
            cell: self.skills.cell.clone(),
            places,
            providers,
            cwd: PathBuf::from(&self.state.cwd),
            store: self.services.store.clone(),
            switch: Box::new(move |name| said.about(name)),
        })
    }

    /// Returns where files of skills are. Those of the project and the user count if the session
    /// discovers configuration, or if it wants skills; those that a client or a launch names always
    /// count, unless the session wants none.
    fn skill_places(&self) -> SkillPlaces {
        let options = &self.options;
        if options.enable_skills == Some(false) {
            return SkillPlaces::default();
        }
        let discovers = options.enable_config_discovery == Some(true);
        let discovers = options.enable_skills.unwrap_or(discovers);
        let cwd = Path::new(&self.state.cwd);
        let launch = self.clients.launch();
        let mut plugins = launch.map(|launch| launch.plugins()).unwrap_or_default();
        let named = options.plugin_directories.iter().flatten();
        plugins.extend(named.map(|plugin| cwd.join(plugin)));
        let mut places = SkillPlaces {
            plugins,
            named: options
                .skill_directories
                .iter()
                .flatten()
                .map(|folder| cwd.join(folder))
                .collect(),
            ..SkillPlaces::default()
        };
        if discovers {
            let root = PathBuf::from(approvals::locate(cwd).key);
            places.projects = project_places(cwd, &root);
            if let Some(launch) = launch {
                places.host = Some(Host::of(launch.env(), &self.services.home));
                let more = named_by_environment(launch.env()).into_iter();
                places.named.extend(more.map(|folder| cwd.join(folder)));
            }
        }
        places
    }

    fn skill_providers(&self) -> Vec<SkillProvider> {
        if self.options.enable_skills == Some(false) {
            return Vec::new();
        }
        let attachments = self.clients.attachments().iter();
        let provide = attachments.filter(|attachment| attachment.offer.has_skill_provider);
        let providers = provide.map(|attachment| SkillProvider {
            client: attachment.client.clone(),
            session: self.state.id.clone(),
        });
        providers.collect()
    }

    /// Returns the skill that this session was started to carry out, until it has loaded it.
    pub(super) fn task_skill(&self) -> Option<ScopedSkill> {
        let own = self.state.subagent.as_ref()?;
        let wanted = own.profile.task_skill.as_ref()?;
        let mut loaded = self.state.skills.loaded().iter();
        let is_loaded = loaded.any(|skill| is_same_skill(&skill.invoked.name, &wanted.name));
        (!is_loaded).then(|| wanted.clone())
    }

    /// Looks the skills up when the first client comes, so that it learns which there are, and the
    /// person at it learns of broken files before the first message.
    pub(super) fn look_for_skills(&mut self) {
        if !self.skills.cell.is_empty() {
            return;
        }
        if let Some(lookup) = self.skill_lookup() {
            let reporter = self.reporter();
            self.running.spawn(async move {
                let (_, news) = lookup.run().await;
                report(news, &reporter).await;
            });
        }
    }
}

/// Returns the commands that tell what a lookup found and nobody knew.
pub fn commands_of(news: SkillNews) -> Vec<Command> {
    let loaded = news
        .loaded
        .map(|skills| Command::SkillsLoaded(SkillsLoaded { skills }));
    let warnings = news.warnings.into_iter();
    let warnings = warnings.map(|warning| Command::file_warning(FILE_WARNING, warning));
    loaded.into_iter().chain(warnings).collect()
}

/// Reports what a lookup found to the mailbox of the session.
pub(super) async fn report(news: SkillNews, reporter: &Reporter) {
    for command in commands_of(news) {
        reporter.report(command).await;
    }
}
