//! Finds the changes in a worktree, and removes worktrees.

use std::path::{Path, PathBuf};

use super::changes::{self, Changes};
use super::directory::{WorktreeRecord, WorktreeStage};
use super::error::WorktreeError;
use super::git::{Git, GitStep};
use super::repository;
use super::{Environment, Settled, Worktrees};

impl Worktrees {
    pub(super) async fn settle_now(
        &self,
        id: &str,
        env: &Environment,
    ) -> Result<Settled, WorktreeError> {
        if !self.0.directory.knows(id) {
            return Err(WorktreeError::NotFound(id.to_owned()));
        }
        let _busy = self.claim(id)?;
        // The agent has ended, whatever the result of the rest is.
        self.held().remove(id);
        let path = self.0.directory.folder(id);
        let Some(mut record) = self.0.directory.read(id) else {
            let why = "there is no record of it".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        };
        let looked = self.look(id, Some(&record), env).await;
        if let Ok(None) = looked {
            self.discard(id, Some(&record), env).await?;
            return Ok(Settled::Removed);
        }
        record.stage = WorktreeStage::Kept;
        self.0.directory.rewrite(id, &record)?;
        looked.map(|changes| match changes {
            Some(changes) => Settled::Kept {
                path,
                commit: record.commit,
                changes,
            },
            None => Settled::Removed,
        })
    }

    /// Returns the changes in a worktree; fails if they cannot be determined.
    pub(super) async fn look(
        &self,
        id: &str,
        record: Option<&WorktreeRecord>,
        env: &Environment,
    ) -> Result<Option<Changes>, WorktreeError> {
        let path = self.0.directory.folder(id);
        if !self.0.directory.has_folder(id) {
            if !self.0.directory.is_taken(id) {
                return Ok(None);
            }
            let why = "it is not a folder any more".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        }
        let Some(record) = record else {
            let why = "there is no record of it".to_owned();
            return Err(WorktreeError::Unclear { path, why });
        };
        // No agent has used it, so it has nothing that is not in its commit.
        if record.stage == WorktreeStage::Making {
            return Ok(None);
        }
        let looked = async {
            let git = Git::in_folder(&self.0.processes, env, &path).await?;
            repository::check_registered(&git, &path, &record.git_dir).await?;
            changes::look(&git, &record.commit).await
        };
        looked.await.map_err(|error| error.unclear(&path))
    }

    /// Removes the files, the entry in the repository, and the record, in this order. After a crash
    /// in between, the record still lists the worktree.
    pub(super) async fn discard(
        &self,
        id: &str,
        record: Option<&WorktreeRecord>,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        let git_dir = match record {
            Some(record) => Some(record.git_dir.clone()),
            None => self.git_dir_of(id, env).await,
        };
        let (directory, name) = (self.0.directory.clone(), id.to_owned());
        let cleared = tokio::task::spawn_blocking(move || directory.clear(&name));
        cleared.await.unwrap_or(Err(WorktreeError::BrokeOff))?;
        if let Some(git_dir) = git_dir {
            self.unregister(id, &git_dir, env).await?;
        }
        self.0.directory.forget(id)
    }

    /// Removes the entry of one worktree, whose folder is gone, from its repository.
    async fn unregister(
        &self,
        id: &str,
        git_dir: &Path,
        env: &Environment,
    ) -> Result<(), WorktreeError> {
        if !git_dir.is_dir() {
            return Ok(());
        }
        let root = self.0.directory.root();
        let git = Git::of_repository(&self.0.processes, env, git_dir, root).await?;
        let mut args = ["worktree", "remove", "--force", "--force", "--"]
            .map(Into::into)
            .to_vec();
        args.push(self.0.directory.folder(id).into_os_string());
        let _permit = self.0.registration.acquire().await;
        match git.ask(GitStep::lookup("remove a worktree"), args).await {
            Ok(_) | Err(WorktreeError::NoRepository(_)) => Ok(()),
            Err(WorktreeError::Git { said, .. }) if said.contains("is not a working tree") => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Finds the repository of a worktree that has no record.
    async fn git_dir_of(&self, id: &str, env: &Environment) -> Option<PathBuf> {
        if !self.0.directory.has_folder(id) {
            return None;
        }
        let folder = self.0.directory.folder(id);
        let git = Git::in_folder(&self.0.processes, env, &folder).await.ok()?;
        git.path("--git-common-dir").await.ok()
    }
}
