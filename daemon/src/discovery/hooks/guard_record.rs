//! What is remembered of a guard, so that it still holds when its file does not say it any more.

use std::path::PathBuf;

use loopd_proto::event::hook::VouchedGuard;
use serde::{Deserialize, Serialize};

use crate::discovery::content_hash::ContentHash;

use super::definition::{
    DEFAULT_TIMEOUT, HookAction, HookDefinition, HookOrigin, HookPlace, HookSource,
};
use super::entry;
use super::kind::HookKind;
use super::matcher::HookMatcher;

/// How much of a command the log of a session remembers.
const LONGEST_SHOWN: usize = 300;

/// A guard that a folder was trusted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardRecord {
    pub hash: ContentHash,
    /// The kind as the file spells it, which also selects the form of the matcher.
    pub event: String,
    #[serde(default)]
    pub matcher: String,
    #[serde(default, rename = "if")]
    pub condition: Option<String>,
    pub file: PathBuf,
    #[serde(default)]
    pub line: usize,
    /// What it did, for people.
    #[serde(default)]
    pub command: String,
    /// The agent whose definition has it. It holds for that agent only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl GuardRecord {
    /// Returns what to remember of a hook that holds for a session; `None` if it guards nothing. The
    /// hooks of an agent hold for that agent only.
    pub fn of(hook: &HookDefinition) -> Option<Self> {
        Self::of_any(hook).filter(|_| hook.source.origin != HookOrigin::Agent)
    }

    /// Returns what to remember of a hook of an agent.
    pub fn of_agent(hook: &HookDefinition, agent: &str) -> Option<Self> {
        let mut record = Self::of_any(hook)?;
        record.agent = Some(agent.to_owned());
        Some(record)
    }

    /// Returns what to remember of a hook of the user's own files.
    pub fn of_own(hook: &HookDefinition) -> Option<Self> {
        Self::of_guard(hook).filter(|_| hook.source.origin == HookOrigin::User)
    }

    /// Returns what to remember of a hook of an agent that the user defined.
    pub fn of_own_agent(hook: &HookDefinition, agent: &str) -> Option<Self> {
        let mut record = Self::of_guard(hook)?;
        record.agent = Some(agent.to_owned());
        Some(record)
    }

    fn of_any(hook: &HookDefinition) -> Option<Self> {
        Self::of_guard(hook).filter(|_| hook.source.folder.is_some())
    }

    /// A hook that nobody waits for decides nothing, and one that cannot be used cannot be trusted.
    fn of_guard(hook: &HookDefinition) -> Option<Self> {
        let guards = hook.kind.is_guard() && !hook.in_background && hook.unusable.is_none();
        guards.then(|| Self {
            hash: hook.hash.clone(),
            event: hook.kind_name().to_owned(),
            matcher: hook.matcher.to_string(),
            condition: hook.condition.as_ref().map(ToString::to_string),
            file: hook.file.clone(),
            line: hook.line,
            command: hook.action.to_string(),
            agent: None,
        })
    }

    /// Returns what the log remembers of the guard.
    pub fn vouched(&self) -> VouchedGuard {
        VouchedGuard {
            hash: self.hash.to_string(),
            event: self.event.clone(),
            matcher: self.matcher.clone(),
            condition: self.condition.clone(),
            file: self.file.to_string_lossy().into_owned(),
            line: self.line,
            command: self.command.chars().take(LONGEST_SHOWN).collect(),
        }
    }

    /// Returns the guard that the log remembers.
    pub fn of_vouched(guard: &VouchedGuard) -> Self {
        Self {
            hash: ContentHash::known(&guard.hash),
            event: guard.event.clone(),
            matcher: guard.matcher.clone(),
            condition: guard.condition.clone(),
            file: PathBuf::from(&guard.file),
            line: guard.line,
            command: guard.command.clone(),
            agent: None,
        }
    }

    /// Returns the guard that stands in for one that is missing: what that one would be asked about is
    /// denied, or a person is asked if the guard was the user's own.
    pub fn stand_in(&self, source: HookSource) -> Option<HookDefinition> {
        let (kind, form) = HookKind::named(&self.event).ok()?;
        Some(HookDefinition {
            kind,
            form,
            // What cannot be read any more stands for every call.
            matcher: HookMatcher::read(&self.matcher, form).unwrap_or(HookMatcher::Every),
            condition: self.condition.as_deref().and_then(entry::condition_of),
            action: HookAction::Script {
                script: self.command.clone(),
                place: HookPlace::default(),
            },
            timeout: DEFAULT_TIMEOUT,
            on_failure: None,
            in_background: false,
            once: false,
            status_message: None,
            source,
            file: self.file.clone(),
            line: self.line,
            hash: self.hash.clone(),
            said: self.hash.clone(),
            named_files: Vec::new(),
            own_paths: Vec::new(),
            root: PathBuf::new(),
            off: None,
            missing: true,
            unusable: None,
            is_new: false,
        })
    }

    /// Names the guard for people.
    pub fn shown(&self) -> String {
        match self.matcher.as_str() {
            "" => self.event.clone(),
            matcher => format!("{} ({matcher})", self.event),
        }
    }
}
