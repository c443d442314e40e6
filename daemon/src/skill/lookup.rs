//! Looks up the skills of a session, anew with every message, and says what changed and which files
//! cannot be used.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::params::discovery::Skill;
use loopd_store::Store;
use parking_lot::Mutex;

use super::disabled::disabled;
use super::{SessionSkill, SkillProvider, SkillSet, SkillView};
use crate::client::ClientId;
use crate::discovery::skills::{self, FoundSkills, SkillPlaces, is_same_skill};
use crate::trust::UntrustedSkills;

/// The skills of a session as the last lookup found them, shared with its sub-agents.
#[derive(Clone, Default)]
pub struct SkillCell(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    set: Option<Arc<SkillSet>>,
    /// What clients provide, by client.
    provided: Vec<(ClientId, Vec<Arc<SessionSkill>>)>,
    /// What people were told about files.
    told: Vec<String>,
    /// What people were told about skills that agents name.
    told_of_agents: Vec<String>,
    /// What clients were told that there is.
    shown: Vec<Skill>,
}

impl SkillCell {
    /// Returns the skills of the moment; none before anybody looked.
    pub fn get(&self) -> Arc<SkillSet> {
        self.0.lock().set.clone().unwrap_or_default()
    }

    /// Returns whether nobody has looked yet.
    pub fn is_empty(&self) -> bool {
        self.0.lock().set.is_none()
    }

    /// Returns what a client provided when it was asked last.
    fn provided_by(&self, client: ClientId) -> Option<Vec<Arc<SessionSkill>>> {
        let inner = self.0.lock();
        let mut provided = inner.provided.iter();
        let found = provided.find(|(id, _)| *id == client);
        found.map(|(_, skills)| skills.clone())
    }

    /// Returns those of the problems with skills of agents that nobody was told yet.
    pub fn new_problems(&self, problems: Vec<String>) -> SkillNews {
        let mut inner = self.0.lock();
        let told = std::mem::replace(&mut inner.told_of_agents, problems.clone());
        let new = problems.into_iter();
        SkillNews {
            warnings: new.filter(|problem| !told.contains(problem)).collect(),
            loaded: None,
        }
    }

    /// Forgets what clients provided, so that they are asked again.
    pub fn forget_provided(&self) {
        self.0.lock().provided.clear();
    }
}

/// What a lookup found that was not known before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillNews {
    /// What is wrong with files.
    pub warnings: Vec<String>,
    /// The skills, if they are others than clients were told.
    pub loaded: Option<Vec<Skill>>,
}

/// Says whether a skill is in use, if a session says so.
pub type SkillSwitch = Box<dyn Fn(&str) -> Option<bool> + Send + Sync>;

/// What has to be known to look.
pub struct SkillLookup {
    pub cell: SkillCell,
    pub places: SkillPlaces,
    /// The clients that provide skills.
    pub providers: Vec<SkillProvider>,
    /// The session's working directory, whose project has to be trusted.
    pub cwd: PathBuf,
    pub store: Arc<dyn Store>,
    pub switch: SkillSwitch,
}

impl SkillLookup {
    /// Looks. Returns the skills, and what was not known before.
    pub async fn run(self) -> (SkillView, SkillNews) {
        let mut errors = Vec::new();
        let provided = self.provided(&mut errors).await;
        let found = self.found().await;
        let set = self.judged(found, provided, errors).await;
        let set = Arc::new(set);
        let disabled = set.disabled.clone();
        let view = SkillView::new(set.clone(), |name| {
            let globally = || disabled.iter().any(|it| is_same_skill(it, name));
            !(self.switch)(name).unwrap_or_else(|| !globally())
        });
        let news = self.publish(&set, &view);
        (view, news)
    }

    /// Asks the clients that were not asked yet.
    async fn provided(&self, errors: &mut Vec<String>) -> Vec<Arc<SessionSkill>> {
        let mut all = Vec::new();
        for provider in &self.providers {
            let id = provider.client.id();
            if let Some(known) = self.cell.provided_by(id) {
                all.extend(known);
                continue;
            }
            let listed = provider.list().await.unwrap_or_else(|why| {
                errors.push(format!("the skills of an app cannot be used: {why}"));
                Vec::new()
            });
            let mut inner = self.cell.0.lock();
            inner.provided.push((id, listed.clone()));
            drop(inner);
            all.extend(listed);
        }
        all
    }

    async fn found(&self) -> FoundSkills {
        // The usual case, in which no other thread is needed.
        if !self.places.has_folders() {
            return FoundSkills::default();
        }
        let places = self.places.clone();
        let read = tokio::task::spawn_blocking(move || skills::discover(&places.folders())).await;
        read.unwrap_or_else(|error| {
            tracing::error!(%error, "the skills could not be looked up");
            FoundSkills::default()
        })
    }

    async fn judged(
        &self,
        found: FoundSkills,
        provided: Vec<Arc<SessionSkill>>,
        mut errors: Vec<String>,
    ) -> SkillSet {
        if found == FoundSkills::default() && provided.is_empty() {
            return SkillSet {
                errors,
                ..SkillSet::default()
            };
        }
        let store = self.store.as_ref();
        let untrusted = UntrustedSkills::of(store, &self.cwd, &found.skills).await;
        let untrusted = untrusted.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a folder is trusted could not be read; it is not");
            UntrustedSkills::all(&found.skills)
        });
        let disabled = disabled(store).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "which skills are out of use could not be read");
            BTreeSet::new()
        });
        errors.extend(found.errors.iter().map(ToString::to_string));
        errors.extend(untrusted.notices());
        let files = found.skills.into_iter().map(|definition| {
            Arc::new(SessionSkill {
                unavailable: untrusted.why(&definition),
                definition,
                provider: None,
            })
        });
        // What a client provides counts before files, as its agents do.
        let mut all: Vec<Arc<SessionSkill>> = Vec::new();
        for skill in provided.into_iter().chain(files) {
            let name = &skill.definition.name;
            let mut known = all.iter();
            if !known.any(|known| is_same_skill(&known.definition.name, name)) {
                all.push(skill);
            }
        }
        SkillSet {
            skills: all,
            warnings: found.warnings.iter().map(ToString::to_string).collect(),
            errors,
            disabled,
        }
    }

    fn publish(&self, set: &Arc<SkillSet>, view: &SkillView) -> SkillNews {
        let shown = view.describe();
        let problems: Vec<String> = set.errors.iter().chain(&set.warnings).cloned().collect();
        let mut inner = self.cell.0.lock();
        inner.set = Some(set.clone());
        let told = std::mem::replace(&mut inner.told, problems.clone());
        let is_new = inner.shown != shown;
        if is_new {
            inner.shown.clone_from(&shown);
        }
        SkillNews {
            warnings: problems
                .into_iter()
                .filter(|problem| !told.contains(problem))
                .collect(),
            loaded: is_new.then_some(shown),
        }
    }
}
