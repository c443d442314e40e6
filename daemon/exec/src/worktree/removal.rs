//! Sees what is in a worktree, and removes it when it may go.

use std::path::{Path, PathBuf};

use super::changes::{self, Changes};
use super::error::WorktreeError;
use super::git::{Git, Step};
use super::repository;
use super::shelf::{Record, Stage};
use super::{Environment, Settled, Worktrees};

impl Worktrees {
    pub(super) async fn settle_now(
        &self,
        id: &str,
        env: &Environment,
    ) -> Result<Settled, WorktreeError> {
        if !self.0.shelf.knows(id) {
            return Err(WorktreeError::NotFound(id.to_owned()));
        }
        let _busy = self.claim(id)?;
        // Whatever comes out, the agent is not in it any more.
        self.held().remove(id);
        let path = self.0.shelf.folder(id);
        let Some(mut record) = self.0.shelf.read(id) else {
            let why = "there is no record of it".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        };
        let looked = self.look(id, Some(&record), env).await;
        if let Ok(None) = looked {
            self.discard(id, Some(&record), env).await?;
            return Ok(Settled::Removed);
        }
        record.stage = Stage::Kept;
        self.0.shelf.rewrite(id, &record)?;
        looked.map(|changes| match changes {
            Some(changes) => Settled::Kept {
                path,
                commit: record.commit,
                changes,
            },
            None => Settled::Removed,
        })
    }

    /// What would be lost with a worktree; an error when that cannot be seen.
    pub(super) async fn look(
        &self,
        id: &str,
        record: Option<&Record>,
        env: &Environment,
    ) -> Result<Option<Changes>, WorktreeError> {
        let path = self.0.shelf.folder(id);
        if !self.0.shelf.has_folder(id) {
            if !self.0.shelf.is_taken(id) {
                return Ok(None);
            }
            let why = "it is not a folder any more".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        }
        let Some(record) = record else {
            let why = "there is no record of it".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        };
        // No agent has been in it: all it can have is less than its commit.
        if record.stage == Stage::Making {
            return Ok(None);
        }
        let looked = async {
            let git = Git::in_folder(&self.0.processes, env, &path).await?;
            repository::check_registered(&git, &path, &record.git_dir).await?;
            changes::look(&git, &record.commit).await
        };
        looked.await.map_err(|error| error.unclear(&path))
    }

    /// Removes the files, the entry in the repository, and the record, in this order: whatever breaks
    /// off in between is found again.
    pub(super) async fn discard(
        &self,
        id: &str,
        record: Option<&Record>,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        let git_dir = match record {
            Some(record) => Some(record.git_dir.clone()),
            None => self.git_dir_of(id, env).await,
        };
        let (place, name) = (self.0.shelf.clone(), id.to_owned());
        let cleared = tokio::task::spawn_blocking(move || place.clear(&name));
        cleared.await.unwrap_or(Err(WorktreeError::BrokeOff))?;
        if let Some(git_dir) = git_dir {
            self.unregister(id, &git_dir, env).await?;
        }
        self.0.shelf.forget(id)
    }

    /// Takes the entry of a worktree whose folder is gone out of its repository; others stay.
    async fn unregister(
        &self,
        id: &str,
        git_dir: &Path,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        if !git_dir.is_dir() {
            return Ok(());
        }
        let root = self.0.shelf.root();
        let git = Git::of_repository(&self.0.processes, env, git_dir, root).await?;
        let mut args = ["worktree", "remove", "--force", "--force", "--"]
            .map(Into::into)
            .to_vec();
        args.push(self.0.shelf.folder(id).into_os_string());
        let _turn = self.0.books.acquire().await;
        match git.ask(Step::lookup("remove a worktree"), args).await {
            Ok(_) | Err(WorktreeError::NoRepository(_)) => Ok(()),
            Err(WorktreeError::Git { said, .. }) if said.contains("is not a working tree") => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The repository of a worktree of which there is no record, if it still has one.
    async fn git_dir_of(&self, id: &str, env: &Environment) -> Option<PathBuf> {
        if !self.0.shelf.has_folder(id) {
            return None;
        }
        let folder = self.0.shelf.folder(id);
        let git = Git::in_folder(&self.0.processes, env, &folder).await.ok()?;
        git.path("--git-common-dir").await.ok()
    }
}
