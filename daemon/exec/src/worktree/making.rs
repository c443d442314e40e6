//! Makes a worktree: reserved by its record, registered with the repository, then filled.

use std::path::Path;

use loopd_proto::id::SessionId;

use super::error::WorktreeError;
use super::git::{Git, Step};
use super::repository::{self, Repository};
use super::shelf::{Record, Stage};
use super::{Busy, Environment, Worktree, Worktrees};

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
        let root = self.0.shelf.root();
        for path in [&repository.git_dir, &repository.top, &root.to_owned()] {
            if path.to_str().is_none() {
                return Err(WorktreeError::OddPath(path.clone()));
            }
        }
        let mut record = Record {
            session: owner.clone(),
            repository: repository.name(),
            git_dir: repository.git_dir.clone(),
            commit: repository.commit.clone(),
            made: self.0.clock.now(),
            stage: Stage::Making,
        };
        let (id, _busy) = self.reserve(&record)?;
        let filled = match self.fill(&id, &git, &repository, env).await {
            Ok(filters_off) => {
                record.stage = Stage::Ready;
                let written = self.0.shelf.rewrite(&id, &record);
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
        let path = self.0.shelf.folder(&id);
        let inside = asked.strip_prefix(&repository.top).unwrap_or(Path::new(""));
        Ok(Worktree {
            cwd: repository::counterpart(&path, inside),
            id,
            path,
            repository: record.repository,
            commit: record.commit,
            filters_off,
        })
    }

    /// Takes an id; who looks at it before it is ready is told that it is busy.
    fn reserve(&self, record: &Record) -> Result<(String, Busy), WorktreeError> {
        let mut busy = self.busy();
        let id = self.0.shelf.reserve(record)?;
        busy.insert(id.clone());
        self.held().insert(id.clone());
        let guard = Busy {
            worktrees: self.clone(),
            id: id.clone(),
        };
        Ok((id, guard))
    }

    /// Registers the worktree and writes its files, in two steps: what is to be switched off for
    /// the second may depend on where the worktree is.
    async fn fill(
        &self,
        id: &str,
        git: &Git,
        repository: &Repository,
        env: &Environment,
    ) -> Result<Vec<String>, WorktreeError> {
        let folder = self.0.shelf.folder(id);
        let mut add = ["worktree", "add", "--force", "--detach", "--no-checkout"]
            .map(Into::into)
            .to_vec();
        add.extend(["--".into(), folder.clone().into_os_string()]);
        add.push(repository.commit.clone().into());
        {
            let _turn = self.0.books.acquire().await;
            git.ask(Step::lookup("add a worktree"), add).await?;
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
        let step = Step::all_files("write the files of the worktree");
        match inside.ask(step, reset).await {
            Ok(_) => Ok(inside.off.filters.into_iter().collect()),
            Err(WorktreeError::Git { said, .. }) if inside.off.partial => {
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
