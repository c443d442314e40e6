//! Creates a worktree in three steps: writes its record, registers it with the repository, writes
//! its files.

use std::path::Path;

use loopd_proto::id::SessionId;

use super::directory::{WorktreeRecord, WorktreeStage};
use super::error::WorktreeError;
use super::git::{Git, GitStep};
use super::repository::{self, Repository};
use super::{BusyGuard, Environment, Worktree, Worktrees};

impl Worktrees {
    pub(super) async fn make(
        &self,
        owner: &SessionId,
        cwd: &Path,
        env: &Environment,
    ) -> Result<Worktree, WorktreeError> {
        let asked = tokio::fs::canonicalize(cwd)
            .await
            .map_err(|_| WorktreeError::NoFolder(cwd.to_owned()))?;
        let git = Git::in_folder(&self.0.processes, env, &asked).await?;
        let repository = Repository::around(&git).await?;
        let root = self.0.directory.root();
        for path in [&repository.git_dir, &repository.top, &root.to_owned()] {
            if path.to_str().is_none() {
                return Err(WorktreeError::OddPath(path.clone()));
            }
        }
        let mut record = WorktreeRecord {
            session: owner.clone(),
            repository: repository.name(),
            git_dir: repository.git_dir.clone(),
            commit: repository.commit.clone(),
            made: self.0.clock.now(),
            stage: WorktreeStage::Making,
        };
        let (id, _busy) = self.reserve(&record)?;
        let filled = match self.fill(&id, &git, &repository, env).await {
            Ok(filters_off) => {
                record.stage = WorktreeStage::Ready;
                let written = self.0.directory.rewrite(&id, &record);
                written.map(|()| filters_off)
            }
            Err(error) => Err(error),
        };
        let filters_off = match filled {
            Ok(filters_off) => filters_off,
            Err(error) => {
                self.held().remove(&id);
                if let Err(left) = self.discard(&id, Some(&record), env).await {
                    tracing::warn!(id, %left, "a worktree that could not be made is left behind");
                }
                return Err(error);
            }
        };
        let path = self.0.directory.folder(&id);
        let inside = asked.strip_prefix(&repository.top).unwrap_or(Path::new(""));
        Ok(Worktree {
            cwd: repository::counterpart(&path, inside),
            id,
            path,
            repository: record.repository,
            copied: repository.top,
            commit: record.commit,
            filters_off,
        })
    }

    /// Reserves an id and marks it as busy until the worktree is ready.
    fn reserve(&self, record: &WorktreeRecord) -> Result<(String, BusyGuard), WorktreeError> {
        let mut busy = self.busy();
        let id = self.0.directory.reserve(record)?;
        busy.insert(id.clone());
        self.held().insert(id.clone());
        let guard = BusyGuard {
            worktrees: self.clone(),
            id: id.clone(),
        };
        Ok((id, guard))
    }

    /// Registers the worktree, then writes its files. These are two steps because the programs that
    /// must be disabled for the second may depend on the path of the worktree.
    async fn fill(
        &self,
        id: &str,
        git: &Git,
        repository: &Repository,
        env: &Environment,
    ) -> Result<Vec<String>, WorktreeError> {
        let folder = self.0.directory.folder(id);
        let mut add = ["worktree", "add", "--force", "--detach", "--no-checkout"]
            .map(Into::into)
            .to_vec();
        add.extend(["--".into(), folder.clone().into_os_string()]);
        add.push(repository.commit.clone().into());
        {
            let _permit = self.0.registration.acquire().await;
            git.ask(GitStep::lookup("add a worktree"), add).await?;
        }
        let inside = Git::in_folder(&self.0.processes, env, &folder).await?;
        repository::check_registered(&inside, &folder, &repository.git_dir).await?;
        let commit = repository.commit.as_str();
        let reset = [
            "reset",
            "--hard",
            "--quiet",
            "--no-recurse-submodules",
            commit,
            "--",
        ];
        let step = GitStep::all_files("write the files of the worktree");
        match inside.ask(step, reset).await {
            Ok(_) => Ok(inside.disabled.filters.into_iter().collect()),
            Err(WorktreeError::Git { said, .. }) if inside.disabled.partial => {
                Err(WorktreeError::PartialClone {
                    repository: repository.name(),
                    commit: repository.commit.clone(),
                    said,
                })
            }
            Err(error) => Err(error),
        }
    }
}
