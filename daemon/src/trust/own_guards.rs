//! The guards of the user's own files. They need no trust, but a command of an agent may change or delete
//! those files. So what guarded once is remembered: a guard that is not there any more as it was has a
//! person asked about what it guarded, until the user accepts the files as they are now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loopd_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::hooks::{GatedHook, HookState};
use crate::discovery::Problem;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::{
    GuardRecord, HookDefinition, HookOrigin, HookSource, LoadedHooks, UserHookPlaces,
};

const SCOPE: &str = "own-guards";
const KEY: &str = "record";

/// The guards of the user's own agents: a fact for each, so that writing one never rewrites another.
const AGENT_SCOPE: &str = "own-agent-guards";

/// How people accept the files as they are.
pub const ACCEPT: &str = "loop hooks accept";

/// What the user's own files brought when they were used last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OwnGuards {
    guards: Vec<GuardRecord>,
    /// The settings that turn off all hooks.
    switches: BTreeSet<PathBuf>,
    /// Guards that came after loopd had used these files, and that nobody has accepted: what they allow
    /// does not count.
    unaccepted: BTreeSet<ContentHash>,
}

impl OwnGuards {
    /// Reads the record; `None` if there is none yet.
    pub(super) async fn read(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        let facts = store.facts(SCOPE).await?;
        let record = facts.into_iter().find(|(key, _)| key == KEY);
        // A record that cannot be read counts as one without guards; it is written anew.
        Ok(record.map(|(_, value)| serde_json::from_value(value).unwrap_or_default()))
    }

    async fn write(&self, store: &dyn Store) -> Result<(), StoreError> {
        let value = serde_json::to_value(self).unwrap_or_default();
        store.put_fact(SCOPE, KEY, Some(value)).await
    }

    /// Lets hooks run that settings turn off which nobody has accepted. Returns what to tell people.
    pub(super) fn hold(&self, loaded: &mut LoadedHooks) -> Option<Problem> {
        let file = loaded
            .disabled_by
            .take_if(|it| !self.switches.contains(it))?;
        let off = loaded.hooks.iter_mut();
        for hook in off.filter(|hook| hook.off.as_ref() == Some(&file)) {
            hook.off = None;
        }
        let what = format!(
            "`disableAllHooks` is new since loopd last used this file, and turns off nothing until you \
             say that it is yours: {ACCEPT}"
        );
        Some(Problem::new(&file, what))
    }

    /// Whether nobody has accepted a hook of the user's own files that came after loopd had used them.
    pub(super) fn is_new(&self, hook: &HookDefinition) -> bool {
        let is_own = GuardRecord::of_own(hook).is_some();
        let is_known = self.guards.iter().any(|it| it.hash == hook.hash);
        is_own && (!is_known || self.unaccepted.contains(&hook.hash))
    }

    /// Returns the guards that are not among the hooks found.
    pub(super) fn missing(&self, found: &[GatedHook], searched: &UserHookPlaces) -> Vec<GatedHook> {
        let runs = |record: &GuardRecord| {
            let mut own = found
                .iter()
                .filter(|it| it.hook.source.origin == HookOrigin::User);
            own.any(|it| it.hook.hash == record.hash && it.state == HookState::Runs)
        };
        let guards = self.guards.iter();
        let missing = guards.filter(|guard| searched.has(&guard.file) && !runs(guard));
        let missing = missing.filter_map(|guard| {
            Some(GatedHook {
                hook: guard.stand_in(HookSource::own(HookOrigin::User))?,
                state: HookState::Missing,
            })
        });
        missing.collect()
    }

    /// Returns the record with what runs now. What is missing stays in it.
    fn with(record: Option<&Self>, running: &[GatedHook], switch: Option<&PathBuf>) -> Self {
        let mut now = record.cloned().unwrap_or_default();
        match record {
            // A switch that was taken away has to be accepted again when it comes back.
            Some(_) => now.switches.retain(|it| Some(it) == switch),
            None => now.switches.extend(switch.cloned()),
        }
        let known = now.guards.len();
        now.add(running);
        if record.is_some() {
            let new = now.guards.iter().skip(known).map(|it| it.hash.clone());
            now.unaccepted.extend(new.collect::<Vec<_>>());
        }
        now
    }

    fn add(&mut self, hooks: &[GatedHook]) {
        for gated in hooks.iter().filter(|it| it.state == HookState::Runs) {
            let Some(record) = GuardRecord::of_own(&gated.hook) else {
                continue;
            };
            if self.guards.iter().all(|it| it.hash != record.hash) {
                self.guards.push(record);
            }
        }
    }
}

/// Says that a guard of the user's own is missing.
pub(super) fn missed(gated: &GatedHook) -> Option<Problem> {
    let hook = &gated.hook;
    let guard = GuardRecord::of_own(hook)?.shown();
    let what = format!(
        "your guard {guard} was changed, moved, deleted or turned off since loopd last used it; a person is \
         asked about what it guards, until you say that this is how you want it: {ACCEPT}"
    );
    Some(Problem {
        line: Some(hook.line),
        ..Problem::new(&hook.file, what)
    })
}

/// What a search of the user's own files came to, to be recorded.
#[derive(Debug, Clone, Default)]
pub struct OwnFound {
    /// The record from before.
    pub(super) before: Option<OwnGuards>,
    /// The settings whose switch counts.
    pub(super) switch: Option<PathBuf>,
}

/// Remembers the guards that are in force now.
pub async fn remember_own(store: &dyn Store, found: &OwnFound, hooks: &[GatedHook]) {
    let now = OwnGuards::with(found.before.as_ref(), hooks, found.switch.as_ref());
    if found.before.as_ref() == Some(&now) {
        return;
    }
    if let Err(error) = now.write(store).await {
        tracing::warn!(%error, "the guards of the user's own files could not be recorded");
    }
}

/// What changes when the user's own files are accepted as they are now.
#[derive(Debug, Default)]
pub struct AcceptedGuards {
    /// Guards that are not there any more.
    pub given_up: Vec<GuardRecord>,
    /// Guards that are new, or that nobody had accepted yet.
    pub added: Vec<GuardRecord>,
    /// Settings that turn off all hooks from now on.
    pub switches: Vec<PathBuf>,
}

/// Accepts the user's own files as they are now.
pub async fn accept_own(
    store: &dyn Store,
    hooks: &LoadedHooks,
    searched: &UserHookPlaces,
) -> Result<AcceptedGuards, StoreError> {
    let mut record = OwnGuards::read(store).await?.unwrap_or_default();
    let is_elsewhere = |file: &Path| !searched.has(file);
    let switches = hooks.disabled_by.iter();
    let switches = switches.filter(|it| !record.switches.contains(*it));
    let switches: Vec<PathBuf> = switches.cloned().collect();
    record.switches.retain(|it| is_elsewhere(it));
    record.switches.extend(hooks.disabled_by.clone());
    let (kept, before): (Vec<_>, Vec<_>) = std::mem::take(&mut record.guards)
        .into_iter()
        .partition(|guard| is_elsewhere(&guard.file));
    record.guards = kept;
    let running = hooks.hooks.iter().filter(|hook| hook.off.is_none());
    let running: Vec<GatedHook> = running
        .map(|hook| GatedHook {
            hook: hook.clone(),
            state: HookState::Runs,
        })
        .collect();
    let kept = record.guards.len();
    record.add(&running);
    let (elsewhere, here) = record.guards.split_at(kept);
    let was_accepted = |guard: &GuardRecord| {
        let is_it = |it: &GuardRecord| it.hash == guard.hash;
        before.iter().any(is_it) && !record.unaccepted.contains(&guard.hash)
    };
    let added: Vec<GuardRecord> = here
        .iter()
        .filter(|it| !was_accepted(it))
        .cloned()
        .collect();
    let unaccepted = record.unaccepted.iter();
    let unaccepted = unaccepted.filter(|hash| elsewhere.iter().any(|it| it.hash == **hash));
    record.unaccepted = unaccepted.cloned().collect();
    record.write(store).await?;
    let is_there = |guard: &GuardRecord| record.guards.iter().any(|it| it.hash == guard.hash);
    Ok(AcceptedGuards {
        given_up: before.into_iter().filter(|it| !is_there(it)).collect(),
        added,
        switches,
    })
}

/// Returns the guards that the user's own definitions of agents had. If that cannot be read, none are known.
pub async fn own_agent_guards(store: &dyn Store) -> Vec<GuardRecord> {
    match agent_guards(store).await {
        Ok(guards) => guards,
        Err(error) => {
            tracing::warn!(%error, "it is not known which guards the user's own agents had");
            Vec::new()
        }
    }
}

async fn agent_guards(store: &dyn Store) -> Result<Vec<GuardRecord>, StoreError> {
    let facts = store.facts(AGENT_SCOPE).await?.into_iter();
    let records = facts.filter_map(|(_, value)| serde_json::from_value(value).ok());
    Ok(records.collect())
}

fn agent_key(guard: &GuardRecord) -> String {
    let agent = guard.agent.as_deref().unwrap_or_default();
    format!("{agent}\n{}", guard.hash)
}

fn is_same_guard(one: &GuardRecord, other: &GuardRecord) -> bool {
    agent_key(one) == agent_key(other)
}

/// Remembers the guards of the user's own agents that are in force now. `known` are those of before.
pub async fn remember_agent_guards(store: &dyn Store, known: &[GuardRecord], now: &[GuardRecord]) {
    for guard in now {
        if known.iter().any(|it| is_same_guard(it, guard)) {
            continue;
        }
        let value = serde_json::to_value(guard).unwrap_or_default();
        let put = store.put_fact(AGENT_SCOPE, &agent_key(guard), Some(value));
        if let Err(error) = put.await {
            tracing::warn!(%error, "a guard of the user's own agent could not be recorded");
        }
    }
}

/// Accepts the guards of the user's own agents as they are now.
pub async fn accept_agent_guards(
    store: &dyn Store,
    now: &[GuardRecord],
) -> Result<AcceptedGuards, StoreError> {
    let before = agent_guards(store).await?;
    let lacks =
        |all: &[GuardRecord], guard: &GuardRecord| !all.iter().any(|it| is_same_guard(it, guard));
    let (given_up, _): (Vec<_>, Vec<_>) = before.iter().cloned().partition(|it| lacks(now, it));
    for guard in &given_up {
        store.put_fact(AGENT_SCOPE, &agent_key(guard), None).await?;
    }
    remember_agent_guards(store, &before, now).await;
    let added = now.iter().filter(|it| lacks(&before, it));
    Ok(AcceptedGuards {
        added: added.cloned().collect(),
        given_up,
        switches: Vec::new(),
    })
}
