//! A worktree of a git repository for an agent that should not disturb the files of others.
//!
//! `create` makes one below `<home>/worktrees` at the repository's current commit; `settle` removes
//! it when the agent left nothing in it, and keeps and describes it otherwise; `list` and `remove`
//! are for people (`loop worktrees`). Agents call the first two, `rpc` the others.
//!
//! The repository is not trusted: git runs none of its hooks and filters (`settings`) and downloads
//! nothing. Nothing is deleted but folders of ours whose contents are known, or as a person forced.

mod changes;
mod error;
mod git;
mod making;
mod removal;
mod repository;
mod settings;
mod shelf;
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
pub use error::WorktreeError;
pub use loopd_proto::params::worktree::WorktreeUse as Use;
use shelf::{Record, Shelf, Stage};

use crate::clock::Clock;
use crate::process::Processes;

/// How many worktrees are looked at together for a list.
const LOOKED_AT_ONCE: usize = 4;

type Environment = BTreeMap<String, String>;

/// A worktree that was made for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    pub id: String,
    /// The top of it.
    pub path: PathBuf,
    /// The folder in it for the agent: it stands for the one that was asked for, or for the nearest
    /// one above that the commit has.
    pub cwd: PathBuf,
    /// The repository it belongs to.
    pub repository: PathBuf,
    /// The commit it starts from, in full.
    pub commit: String,
    /// Filters of the repository that were not run, so that their files are as git stores them
    /// (those of `lfs` are short texts, for example).
    pub filters_off: Vec<String>,
}

/// What became of a worktree whose agent has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was in it that its commit has not.
    Removed,
    /// It is still there, because something would be lost.
    Kept {
        path: PathBuf,
        /// The commit it started from.
        commit: String,
        changes: Changes,
    },
}

/// Whether a worktree goes with the changes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// What the list says of a worktree; what no record tells is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    pub path: PathBuf,
    pub repository: Option<PathBuf>,
    pub commit: Option<String>,
    pub session: Option<SessionId>,
    pub made: Option<Timestamp>,
    pub usage: Use,
    pub contents: Contents,
}

/// What would be lost with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    Unchanged,
    Changed(Changes),
    /// It cannot be seen, and this is why.
    Unclear(String),
}

/// All worktrees of a home.
#[derive(Debug, Clone)]
pub struct Worktrees(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shelf: Shelf,
    processes: Processes,
    clock: Clock,
    tasks: TaskTracker,
    /// Those that are being made, settled or removed now.
    busy: Mutex<BTreeSet<String>>,
    /// Those that this daemon made and whose agents have not ended.
    held: Mutex<BTreeSet<String>>,
    /// One at a time enters or leaves the books of git: it fails at an entry that is half written.
    books: Semaphore,
}

impl Worktrees {
    /// Makes the handle; nothing is read or written yet.
    pub fn new(home: &Path, processes: Processes) -> Self {
        Self(Arc::new(Inner {
            shelf: Shelf::of(home),
            processes,
            clock: Clock::default(),
            tasks: TaskTracker::new(),
            busy: Mutex::default(),
            held: Mutex::default(),
            books: Semaphore::new(1),
        }))
    }

    /// Makes a worktree of the repository around a folder, at the commit it is at now, on no branch.
    ///
    /// The environment has to be free of secrets. When nobody waits for the answer any more, the
    /// worktree is removed again.
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

    /// The agent has ended: removes an unchanged worktree, keeps a changed one and says what changed.
    ///
    /// It goes on when nobody waits for the answer. An error means that the worktree is still there.
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

    /// Every worktree of this home; `live` are the sessions that may still work in theirs.
    pub async fn list(
        &self,
        live: &HashSet<SessionId>,
        env: &Environment,
    ) -> Result<Vec<Entry>, WorktreeError> {
        let ids = self.0.shelf.ids()?;
        let looks = ids.into_iter().map(|id| self.entry(id, live, env));
        let entries = futures::stream::iter(looks).buffered(LOOKED_AT_ONCE);
        Ok(entries.collect().await)
    }

    /// Removes a worktree that no agent uses; a changed one only when forced.
    pub async fn remove(
        &self,
        id: &str,
        force: Force,
        live: &HashSet<SessionId>,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        if !self.0.shelf.knows(id) {
            return Err(WorktreeError::NotFound(id.to_owned()));
        }
        let _busy = self.claim(id)?;
        let record = self.0.shelf.read(id);
        if self.usage(id, record.as_ref(), live) == Use::InUse {
            return Err(WorktreeError::InUse(id.to_owned()));
        }
        if force == Force::No
            && let Some(changes) = self.look(id, record.as_ref(), env).await?
        {
            return Err(WorktreeError::Changed {
                id: id.to_owned(),
                path: self.0.shelf.folder(id),
                changes,
            });
        }
        self.discard(id, record.as_ref(), env).await
    }

    async fn entry(&self, id: String, live: &HashSet<SessionId>, env: &Environment) -> Entry {
        let record = self.0.shelf.read(&id);
        let usage = self.usage(&id, record.as_ref(), live);
        let contents = match self.look(&id, record.as_ref(), env).await {
            Ok(None) => Contents::Unchanged,
            Ok(Some(changes)) => Contents::Changed(changes),
            Err(WorktreeError::Unclear { why, .. }) => Contents::Unclear(why),
            Err(error) => Contents::Unclear(error.to_string()),
        };
        Entry {
            path: self.0.shelf.folder(&id),
            repository: record.as_ref().map(|it| it.repository.clone()),
            commit: record.as_ref().map(|it| it.commit.clone()),
            made: record.as_ref().map(|it| it.made),
            session: record.map(|it| it.session),
            usage,
            contents,
            id,
        }
    }

    fn usage(&self, id: &str, record: Option<&Record>, live: &HashSet<SessionId>) -> Use {
        match record {
            _ if self.held().contains(id) => Use::InUse,
            Some(record) if record.stage == Stage::Kept => Use::Kept,
            Some(record) if record.stage == Stage::Ready && live.contains(&record.session) => {
                Use::InUse
            }
            Some(_) | None => Use::Leftover,
        }
    }

    fn claim(&self, id: &str) -> Result<Busy, WorktreeError> {
        if !self.busy().insert(id.to_owned()) {
            return Err(WorktreeError::Busy(id.to_owned()));
        }
        Ok(Busy {
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

/// One worktree, for one at a time.
struct Busy {
    worktrees: Worktrees,
    id: String,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.worktrees.busy().remove(&self.id);
    }
}
