//! The hooks of files of one session, shared with its sub-agents: what the session finds later holds
//! for them, too.

use std::sync::Arc;

use loopd_proto::event::hook::GuardFolder;
use loopd_store::Store;
use parking_lot::Mutex;

use super::handlers::FileHook;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::{HookDefinition, HookKind, HookPlaces};
use crate::discovery::settings_rules::RuleSearch;
use crate::trust::{self, GatedRules, HeldGuard, OwnContent};
use loopd_kernel::policy::settings::SettingsRules;
use loopd_kernel::tool_call::McpToolRef;

/// The hooks of files of a session.
#[derive(Clone, Default)]
pub struct HookCell(Arc<Inner>);

#[derive(Default)]
struct Inner {
    parent: Option<HookCell>,
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    hooks: Vec<Arc<FileHook>>,
    /// The hooks of the agent that is selected, beside the others.
    of_agent: Vec<Arc<FileHook>>,
    /// The name of that agent.
    agent: Option<String>,
    /// What people were told about the files.
    told: Vec<String>,
    /// What people were told that the user's own files bring.
    seen: Vec<OwnContent>,
    /// The permission rules of settings.
    rules: Option<Arc<SettingsRules>>,
}

impl HookCell {
    /// Makes the cell of a sub-agent: it has the hooks of its parents, and its own beside them.
    #[must_use]
    pub fn below(&self) -> Self {
        Self(Arc::new(Inner {
            parent: Some(self.clone()),
            own: Mutex::default(),
        }))
    }

    /// Returns the hooks in force, those of parents first.
    pub fn hooks(&self) -> Vec<Arc<FileHook>> {
        let parent = self.0.parent.as_ref();
        let mut hooks = parent.map(Self::hooks).unwrap_or_default();
        let own = self.0.own.lock();
        hooks.extend(own.hooks.iter().chain(&own.of_agent).cloned());
        hooks
    }

    /// Returns whether a hook of this kind may have something to say about a subject.
    pub fn has(&self, kind: HookKind, subject: Option<&str>, of_servers: &[McpToolRef]) -> bool {
        let above = self.0.parent.as_ref();
        let own = self.0.own.lock();
        let mut hooks = own.hooks.iter().chain(&own.of_agent);
        hooks.any(|hook| hook.is_for(kind, subject, of_servers))
            || above.is_some_and(|above| above.has(kind, subject, of_servers))
    }

    pub fn is_empty(&self) -> bool {
        let parent = self.0.parent.as_ref();
        let own = self.0.own.lock();
        parent.is_none_or(Self::is_empty) && own.hooks.is_empty() && own.of_agent.is_empty()
    }

    /// Returns the permission rules of settings, those of the session at the top; `None` if there are
    /// none.
    pub fn rules(&self) -> Option<Arc<SettingsRules>> {
        match &self.0.parent {
            Some(parent) => parent.rules(),
            None => self.0.own.lock().rules.clone(),
        }
    }

    /// Takes the rules that were found. Those from before that deny or ask stay: an agent cannot get rid
    /// of them by a change of the files. Returns whether some are not in the files any more.
    fn set_rules(&self, mut found: SettingsRules) -> bool {
        let mut own = self.0.own.lock();
        let mut kept = false;
        if let Some(before) = &own.rules {
            for (now, before) in [
                (&mut found.deny, &before.deny),
                (&mut found.ask, &before.ask),
            ] {
                let gone = before.iter().filter(|rule| !now.contains(rule));
                let gone: Vec<_> = gone.cloned().collect();
                kept |= !gone.is_empty();
                now.extend(gone);
            }
        }
        own.rules = (!found.is_empty()).then(|| Arc::new(found));
        kept
    }

    /// Takes the hooks that were found. One that was there before keeps its counts.
    pub fn set(&self, found: impl IntoIterator<Item = HookDefinition>) {
        let mut own = self.0.own.lock();
        own.hooks = kept(&own.hooks, found);
    }

    /// Takes the hooks of the agent that is selected, in the place of those of the one before. If its
    /// definition has no hooks that may be used any more, those from before stay: an agent cannot get
    /// rid of its guards by a change of its own file.
    pub fn set_agent(&self, agent: Option<String>, found: Vec<HookDefinition>) {
        let mut own = self.0.own.lock();
        if own.agent != agent || !found.is_empty() {
            own.of_agent = kept(&own.of_agent, found);
            own.agent = agent;
        }
    }

    /// Returns the guards in force that a folder is trusted with, those of parents aside.
    fn held(&self) -> Vec<HeldGuard> {
        let own = self.0.own.lock();
        let held = own.hooks.iter();
        held.filter_map(|hook| HeldGuard::of(&hook.definition))
            .collect()
    }

    /// Returns what the user's own files bring if people were told otherwise before.
    fn new_content(&self, content: Vec<OwnContent>) -> Vec<OwnContent> {
        let mut own = self.0.own.lock();
        if own.seen == content {
            return Vec::new();
        }
        own.seen.clone_from(&content);
        content
    }

    /// Returns those of the notices that nobody was told yet.
    fn new_notices(&self, notices: Vec<String>) -> Vec<String> {
        let mut own = self.0.own.lock();
        let told = std::mem::replace(&mut own.told, notices.clone());
        notices
            .into_iter()
            .filter(|it| !told.contains(it))
            .collect()
    }
}

/// Returns hooks for what was found: those from before that are the same, and new ones.
fn kept(
    before: &[Arc<FileHook>],
    found: impl IntoIterator<Item = HookDefinition>,
) -> Vec<Arc<FileHook>> {
    let hooks = found.into_iter().map(|definition| {
        let is_same = |hook: &&Arc<FileHook>| is_same(&hook.definition, &definition);
        let known = before.iter().find(is_same).cloned();
        known.unwrap_or_else(|| Arc::new(FileHook::new(definition)))
    });
    hooks.collect()
}

fn is_same(one: &HookDefinition, other: &HookDefinition) -> bool {
    let place = |hook: &HookDefinition| -> (ContentHash, usize) { (hook.hash.clone(), hook.line) };
    one.file == other.file
        && place(one) == place(other)
        && one.missing == other.missing
        && one.is_new == other.is_new
}

/// Looks for hooks in files.
pub struct HookLookup {
    pub cell: HookCell,
    pub store: Arc<dyn Store>,
    pub places: HookPlaces,
    /// Where permission rules are.
    pub rules: Option<RuleSearch>,
    /// The folders that the log names already as those whose guards are in force.
    pub known: Vec<GuardFolder>,
}

/// What a lookup came to.
#[derive(Debug, Default)]
pub struct HooksFound {
    /// What is wrong with files and was not told before.
    pub notices: Vec<String>,
    /// The folders whose guards came into force.
    pub folders: Vec<GuardFolder>,
}

/// What people are told when rules of settings were taken out of them.
const RULES_KEPT: &str = "Rules that deny or ask were taken out of settings; they stay in force in this \
                          session until it is opened again.";

impl HookLookup {
    /// Looks, and takes note of what people are told by that.
    pub async fn run(self) -> HooksFound {
        let (cell, store) = (self.cell.clone(), self.store.clone());
        let (mut found, own) = self.look().await;
        found.notices = cell.new_notices(found.notices);
        let own = cell.new_content(own);
        if !own.is_empty() {
            let unseen = trust::tell_unseen(store.as_ref(), &own).await;
            found.notices.extend(unseen);
        }
        found
    }

    /// Looks; nobody counts as told.
    pub async fn load(self) -> HooksFound {
        let (found, _) = self.look().await;
        HooksFound {
            notices: Vec::new(),
            ..found
        }
    }

    /// Looks. Returns what was found, with all notices, and what the user's own files bring.
    async fn look(self) -> (HooksFound, Vec<OwnContent>) {
        let held = self.cell.held();
        let store = self.store.as_ref();
        let mut places = self.places;
        trust::hold_above(store, &mut places).await;
        let gated = trust::load_hooks(store, places.clone(), held).await;
        trust::remember_own(store, &gated.own, &gated.hooks).await;
        self.cell.set(gated.running().cloned());
        let mut rules = GatedRules::default();
        if let Some(mut search) = self.rules {
            trust::hold_above(store, &mut search.places).await;
            if let Some(places) = search.find() {
                rules = trust::load_rules(store, places).await;
            }
        }
        let problems = gated.notices().chain(&rules.problems);
        let mut notices: Vec<String> = problems.map(ToString::to_string).collect();
        if self.cell.set_rules(rules.rules) {
            notices.push(RULES_KEPT.to_owned());
        }
        let of_rules = rules.folders.iter().map(|folder| (folder.as_path(), false));
        let mut folders = Vec::new();
        for (path, plugin) in gated.guarding_folders().chain(of_rules) {
            let folder = places.guard_folder(path, plugin);
            if !self.known.contains(&folder) && !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        let own = OwnContent::of_hooks(&gated).chain(rules.own);
        (HooksFound { notices, folders }, own.collect())
    }
}
