//! The guards of the user's own files. They need no trust, but a command of an agent may change or delete
//! those files. So what guarded once is remembered: a guard that is not there any more as it was has a
//! person asked about what it guarded, until the user accepts the files as they are now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loopd_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use super::hooks::{GatedHook, HookState};
use crate::discovery::Problem;
use crate::discovery::hooks::{GuardRecord, HookOrigin, HookSource, LoadedHooks, UserHookPlaces};

const SCOPE: &str = "own-guards";
const KEY: &str = "record";

/// How people accept the files as they are.
pub const ACCEPT: &str = "loop hooks accept";

/// What the user's own files brought when they were used last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OwnGuards {
    guards: Vec<GuardRecord>,
    /// The settings that turn off all hooks.
    switches: BTreeSet<PathBuf>,
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
        now.add(running);
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
    // A switch that comes before any guard turns off nothing that was in force.
    let guards = hooks.iter().any(|it| it.hook.kind.is_guard());
    if found.before.is_none() && now == OwnGuards::default() && !guards {
        return;
    }
    if let Err(error) = now.write(store).await {
        tracing::warn!(%error, "the guards of the user's own files could not be recorded");
    }
}

/// Accepts the user's own files as they are now. Returns the guards that are given up by that.
pub async fn accept_own(
    store: &dyn Store,
    hooks: &LoadedHooks,
    searched: &UserHookPlaces,
) -> Result<Vec<GuardRecord>, StoreError> {
    let mut record = OwnGuards::read(store).await?.unwrap_or_default();
    let is_elsewhere = |file: &Path| !searched.has(file);
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
    record.add(&running);
    record.write(store).await?;
    let is_there = |guard: &GuardRecord| record.guards.iter().any(|it| it.hash == guard.hash);
    Ok(before.into_iter().filter(|it| !is_there(it)).collect())
}
