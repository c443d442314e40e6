//! What a project would bring into its sessions, and whether the user trusts it with exactly that.
//!
//! Trust belongs to content. Each hook, agent, MCP server and set of permissions has a hash; trusting
//! a folder records the hashes of what it holds at that moment. What is new or changed is not used
//! until the folder is trusted again. The record lives in the store, one fact per folder.

mod content;
mod hooks;
mod mcp;
mod own_guards;
mod rules;
mod seen;
mod skills;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use loopd_proto::event::hook::VouchedFolder;
use loopd_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::approvals;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::hooks::GuardRecord;

pub use content::{ContentItem, ContentKind, ProjectContent, ProjectLookup, hash_of_agent};
pub use hooks::{
    GatedHook, GatedHooks, HeldGuard, HookState, NAME_AGAIN, hold_above, load_hooks, shell_word,
};
pub use mcp::{GatedServers, load_servers};
pub use own_guards::{
    ACCEPT, AcceptedGuards, OwnFound, accept_agent_guards, accept_own, own_agent_guards,
    remember_agent_guards, remember_own,
};
pub use rules::{GatedRules, load_rules};
pub use seen::{OwnContent, tell_unseen};
pub use skills::UntrustedSkills;

const SCOPE: &str = "trusted-content";

/// The fact of one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TrustedFolder {
    hashes: BTreeSet<ContentHash>,
    /// Which of the hashes are guards. One that is not there any more goes on guarding: it denies.
    #[serde(default)]
    guards: Vec<GuardRecord>,
}

/// A guard that an agent has to have, because a folder is trusted with it.
#[derive(Debug, Clone)]
pub struct AgentGuard {
    pub agent: String,
    /// The folder that is trusted with it.
    pub folder: PathBuf,
    pub record: GuardRecord,
}

/// What the user trusts: folders, and what each may bring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedContent(BTreeMap<PathBuf, TrustedFolder>);

impl TrustedContent {
    /// Reads the record. A fact that cannot be read trusts nothing.
    pub async fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let facts = store.facts(SCOPE).await?.into_iter();
        let folders = facts.map(|(folder, value)| {
            let trusted: TrustedFolder = serde_json::from_value(value).unwrap_or_default();
            (PathBuf::from(folder), trusted)
        });
        Ok(Self(folders.collect()))
    }

    /// Trusts, for one session, what apps vouch for in the folders that they named.
    fn vouch(&mut self, folders: &[VouchedFolder]) {
        for vouched in folders {
            let folder = self.0.entry(PathBuf::from(&vouched.path)).or_default();
            let hashes = vouched.hooks.iter();
            folder
                .hashes
                .extend(hashes.map(|hash| ContentHash::known(hash)));
            let guards = vouched.guards.iter();
            folder.guards.extend(guards.map(GuardRecord::of_vouched));
        }
    }

    /// Returns whether a folder may bring what has this hash.
    pub fn covers(&self, folder: &Path, hash: &ContentHash) -> bool {
        self.0
            .get(folder)
            .is_some_and(|trusted| trusted.hashes.contains(hash))
    }

    /// Returns whether the user ever trusted a folder with some content.
    pub fn knows(&self, folder: &Path) -> bool {
        self.0.contains_key(folder)
    }

    /// Returns whether a project brings nothing else than what the user trusts it with.
    pub fn covers_all(&self, content: &ProjectContent) -> bool {
        let mut items = content.items.iter();
        self.knows(&content.root)
            && items.all(|item| self.covers(&item.folder, &item.hash))
            && self.missing_from(content).next().is_none()
    }

    /// Returns the guards that a folder is trusted with.
    pub fn guards(&self, folder: &Path) -> &[GuardRecord] {
        self.0.get(folder).map_or(&[], |trusted| &trusted.guards)
    }

    /// Returns the guards that a project is trusted with and does not bring any more.
    pub fn missing_from<'a>(
        &'a self,
        content: &'a ProjectContent,
    ) -> impl Iterator<Item = &'a GuardRecord> {
        content.folders.iter().flat_map(move |folder| {
            let guards = self.guards(folder).iter();
            guards.filter(move |guard| {
                let mut items = content.items.iter();
                !items.any(|item| item.folder == *folder && item.hash == guard.hash)
            })
        })
    }

    /// Returns the guards of agents that the folders around a working directory are trusted with: those
    /// above it, and those of the project.
    pub fn agent_guards(&self, cwd: &Path, root: &Path) -> Vec<AgentGuard> {
        let folders = self.0.iter();
        let folders = folders.filter(|(it, _)| cwd.starts_with(it) || it.starts_with(root));
        let guards = folders.flat_map(|(folder, trusted)| {
            let guards = trusted.guards.iter();
            guards.filter_map(move |record| {
                Some(AgentGuard {
                    agent: record.agent.clone()?,
                    folder: folder.clone(),
                    record: record.clone(),
                })
            })
        });
        guards.collect()
    }

    /// Returns the trusted folders above the projects of a session, the nearest first.
    fn above(&self, project: &Path) -> impl Iterator<Item = &Path> {
        let above = project.ancestors().skip(1);
        above.filter_map(|folder| self.0.get_key_value(folder).map(|(it, _)| it.as_path()))
    }

    /// Trusts the guards that a session has in force, and nothing else.
    fn of_guards(guards: &[HeldGuard]) -> Self {
        let mut folders: BTreeMap<PathBuf, TrustedFolder> = BTreeMap::new();
        for guard in guards {
            let folder = folders.entry(guard.folder.clone()).or_default();
            folder.hashes.insert(guard.record.hash.clone());
            folder.guards.push(guard.record.clone());
        }
        Self(folders)
    }
}

/// Trusts a project with exactly this content, and no longer with what it brought before.
pub async fn record(store: &dyn Store, content: &ProjectContent) -> Result<(), StoreError> {
    let mut folders: BTreeMap<&Path, TrustedFolder> = BTreeMap::new();
    for folder in &content.folders {
        folders.insert(folder, TrustedFolder::default());
    }
    for item in &content.items {
        let folder = folders.entry(&item.folder).or_default();
        folder.hashes.insert(item.hash.clone());
        folder.guards.extend(item.guard.clone());
    }
    for (folder, trusted) in folders {
        let value = serde_json::to_value(&trusted).unwrap_or_default();
        let folder = folder.to_string_lossy();
        store.put_fact(SCOPE, &folder, Some(value)).await?;
    }
    Ok(())
}

/// Returns the root of the project that a folder belongs to, without links.
pub fn project_root(folder: &Path) -> PathBuf {
    let real = folder.canonicalize();
    approvals::locate(real.as_deref().unwrap_or(folder))
        .key
        .into()
}

#[cfg(test)]
#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step fails the test"
)]
mod tests;
