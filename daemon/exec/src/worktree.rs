//! Git worktrees for sub-agents that must not change the files of their parent.
//!
//! `create` makes a worktree below `<home>/worktrees` at the repository's current commit. `settle`
//! is called when the agent has ended: it removes an unchanged worktree, and keeps and describes a
//! changed one. `list` and `remove` serve users (`loop worktrees`) by RPC.
//!
//! The repository is not trusted: git runs none of its hooks and filters (`settings`) and downloads
//! nothing. Only folders below `<home>/worktrees` are deleted, and only if nothing is lost or the
//! user forces it.

mod changes;
mod directory;
mod error;
mod folder_diff;
mod git;
mod making;
mod repository;
mod settings;
mod settle;
#[cfg(test)]
#[cfg(unix)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use loopd_proto::id::SessionId;
use loopd_proto::time::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub use changes::Changes;
use directory::{WorktreeDirectory, WorktreeRecord, WorktreeStage};
pub use error::WorktreeError;
pub use folder_diff::{DiffBase, FolderDiff, Whitespace};
pub use loopd_proto::params::worktree::WorktreeUse as Use;

use crate::clock::Clock;
use crate::process::Processes;

/// How many worktrees are inspected in parallel for a list.
const PARALLEL_LOOKS: usize = 4;

type Environment = BTreeMap<String, String>;

/// A worktree that was created for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    pub id: String,
    /// The top folder of the worktree.
    pub path: PathBuf,
    /// The working directory for the agent: the same folder as the requested one in the repository,
    /// or its nearest parent that exists in the commit.
    pub cwd: PathBuf,
    /// The repository of the worktree.
    pub repository: PathBuf,
    /// The top of the working tree that was copied.
    pub copied: PathBuf,
    /// The full hash of the commit that it started from.
    pub commit: String,
    /// Filters of the repository that were not run. Their files are as git stores them; those of
    /// `lfs`, for example, are short pointer files.
    pub filters_off: Vec<String>,
}

/// The result of settling a worktree whose agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// It was unchanged and was removed.
    Removed,
    /// It was kept, because it has changes.
    Kept {
        path: PathBuf,
        /// The commit that it started from.
        commit: String,
        changes: Changes,
    },
}

/// Whether a worktree is removed even if it has changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// A worktree in the list; a field is `None` if there is no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeEntry {
    pub id: String,
    pub path: PathBuf,
    pub repository: Option<PathBuf>,
    pub commit: Option<String>,
    pub session: Option<SessionId>,
    pub made: Option<Timestamp>,
    pub usage: Use,
    pub contents: Contents,
}

/// What would be lost if a worktree were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    Unchanged,
    Changed(Changes),
    /// The changes cannot be determined, for this reason.
    Unclear(String),
}

/// All worktrees of a home.
#[derive(Debug, Clone)]
pub struct Worktrees(Arc<WorktreesInner>);

#[derive(Debug)]
struct WorktreesInner {
    directory: WorktreeDirectory,
    processes: Processes,
    clock: Clock,
    tasks: TaskTracker,
    /// The ids of worktrees that are being created, settled or removed.
    busy: Mutex<BTreeSet<String>>,
    /// The ids of worktrees that this daemon created and whose agents have not ended.
    held: Mutex<BTreeSet<String>>,
    /// Allows one `git worktree add` or `remove` at a time: git fails if it reads a half-written
    /// entry.
    registration: Semaphore,
}

impl Worktrees {
    /// Creates the handle without reading or writing anything.
    pub fn new(home: &Path, processes: Processes) -> Self {
        Self(Arc::new(WorktreesInner {
            directory: WorktreeDirectory::of(home),
            processes,
            clock: Clock::default(),
            tasks: TaskTracker::new(),
            busy: Mutex::default(),
            held: Mutex::default(),
            registration: Semaphore::new(1),
        }))
    }

    /// Creates a worktree of the repository around a folder, at its current commit with a detached
    /// HEAD.
    ///
    /// The environment must not contain secrets. If the caller is cancelled, the worktree is
    /// removed.
    pub async fn create(
        &self,
        owner: &SessionId,
        cwd: &Path,
        env: &Environment,
    ) -> Result<Worktree, WorktreeError> {
        let (this, owner, cwd, env) = (self.clone(), owner.clone(), cwd.to_owned(), env.clone());
        let (give, take) = tokio::sync::oneshot::channel();
        self.0.tasks.spawn(async move {
            let made = this.make(&owner, &cwd, &env).await;
            if let Err(Ok(unwanted)) = give.send(made)
                && let Err(error) = this.settle_now(&unwanted.id, &env).await
            {
                tracing::warn!(id = unwanted.id, %error, "a worktree that nobody wants was not removed");
            }
        });
        take.await.unwrap_or(Err(WorktreeError::BrokeOff))
    }

    /// Removes an unchanged worktree; keeps a changed one and returns its changes.
    ///
    /// It completes even if the caller is cancelled. After an error the worktree still exists.
    pub async fn settle(
        &self,
        worktree: &Worktree,
        env: &Environment,
    ) -> Result<Settled, WorktreeError> {
        let (this, id, env) = (self.clone(), worktree.id.clone(), env.clone());
        let settling = self
            .0
            .tasks
            .spawn(async move { this.settle_now(&id, &env).await });
        settling.await.unwrap_or(Err(WorktreeError::BrokeOff))
    }

    /// Lists the worktrees of this home; `live` are the sessions that may still use theirs.
    pub async fn list(
        &self,
        live: &HashSet<SessionId>,
        env: &Environment,
    ) -> Result<Vec<WorktreeEntry>, WorktreeError> {
        let ids = self.0.directory.ids()?;
        let looks = ids.into_iter().map(|id| self.entry(id, live, env));
        let entries = futures::stream::iter(looks).buffered(PARALLEL_LOOKS);
        Ok(entries.collect().await)
    }

    /// Removes a worktree that no agent uses; a changed one only if forced.
    pub async fn remove(
        &self,
        id: &str,
        force: Force,
        live: &HashSet<SessionId>,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        if !self.0.directory.knows(id) {
            return Err(WorktreeError::NotFound(id.to_owned()));
        }
        let _busy = self.claim(id)?;
        let record = self.0.directory.read(id);
        if self.usage(id, record.as_ref(), live) == Use::InUse {
            return Err(WorktreeError::InUse(id.to_owned()));
        }
        if force == Force::No
            && let Some(changes) = self.look(id, record.as_ref(), env).await?
        {
            return Err(WorktreeError::Changed {
                id: id.to_owned(),
                path: self.0.directory.folder(id),
                changes,
            });
        }
        self.discard(id, record.as_ref(), env).await
    }

    async fn entry(
        &self,
        id: String,
        live: &HashSet<SessionId>,
        env: &Environment,
    ) -> WorktreeEntry {
        let record = self.0.directory.read(&id);
        let usage = self.usage(&id, record.as_ref(), live);
        let contents = match self.look(&id, record.as_ref(), env).await {
            Ok(None) => Contents::Unchanged,
            Ok(Some(changes)) => Contents::Changed(changes),
            Err(WorktreeError::Unclear { why, .. }) => Contents::Unclear(why),
            Err(error) => Contents::Unclear(error.to_string()),
        };
        WorktreeEntry {
            path: self.0.directory.folder(&id),
            repository: record.as_ref().map(|it| it.repository.clone()),
            commit: record.as_ref().map(|it| it.commit.clone()),
            made: record.as_ref().map(|it| it.made),
            session: record.map(|it| it.session),
            usage,
            contents,
            id,
        }
    }

    fn usage(&self, id: &str, record: Option<&WorktreeRecord>, live: &HashSet<SessionId>) -> Use {
        match record {
            _ if self.held().contains(id) => Use::InUse,
            Some(record) if record.stage == WorktreeStage::Kept => Use::Kept,
            Some(record)
                if record.stage == WorktreeStage::Ready && live.contains(&record.session) =>
            {
                Use::InUse
            }
            Some(_) | None => Use::Leftover,
        }
    }

    fn claim(&self, id: &str) -> Result<BusyGuard, WorktreeError> {
        if !self.busy().insert(id.to_owned()) {
            return Err(WorktreeError::Busy(id.to_owned()));
        }
        Ok(BusyGuard {
            worktrees: self.clone(),
            id: id.to_owned(),
        })
    }

    fn busy(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.busy.lock()
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.held.lock()
    }
}

/// Exclusive access to one worktree until dropped.
struct BusyGuard {
    worktrees: Worktrees,
    id: String,
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.worktrees.busy().remove(&self.id);
    }
}
