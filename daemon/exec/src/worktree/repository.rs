//! Finds the repository around a folder, and checks that a worktree belongs to it.

use std::path::{Path, PathBuf};

use super::error::WorktreeError;
use super::git::{Git, path_of};

/// The location and current commit of a repository.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The top of the working tree around the requested folder.
    pub(super) top: PathBuf,
    /// The git folder that all its worktrees share.
    pub(super) git_dir: PathBuf,
    pub(super) commit: String,
}

impl Repository {
    /// Finds the repository around the folder of `git`.
    pub(super) async fn around(git: &Git) -> Result<Self, WorktreeError> {
        let inside = ["rev-parse", "--is-inside-work-tree"];
        let inside = git.line("find the repository", inside).await?;
        if inside != b"true" {
            return Err(WorktreeError::NoFiles(git.cwd.clone()));
        }
        let top = git.path("--show-toplevel").await?;
        let git_dir = git.path("--git-common-dir").await?;
        let head = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
        let commit = match git.line("find the current commit", head).await {
            Ok(hash) => String::from_utf8_lossy(&hash).into_owned(),
            Err(WorktreeError::Git { .. }) => return Err(WorktreeError::NoCommit(top)),
            Err(other) => return Err(other),
        };
        Ok(Self {
            top,
            git_dir,
            commit,
        })
    }

    /// The path that users know the repository by.
    pub(super) fn name(&self) -> PathBuf {
        match (self.git_dir.file_name(), self.git_dir.parent()) {
            (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
            _ => self.git_dir.clone(),
        }
    }
}

/// Checks that a folder is a worktree of this repository and that the repository lists it. An agent
/// may have replaced the folder or its `.git` file.
pub(super) async fn check_registered(
    git: &Git,
    folder: &Path,
    git_dir: &Path,
) -> Result<(), WorktreeError> {
    let unclear = |why: &str| WorktreeError::Unclear {
        path: folder.to_owned(),
        why: why.to_owned(),
    };
    let real = real(folder).await?;
    if git.path("--show-toplevel").await? != real {
        return Err(unclear("it is not the top of a worktree any more"));
    }
    if git.path("--git-common-dir").await? != git_dir {
        return Err(unclear("it belongs to another repository now"));
    }
    let own = git.path("--git-dir").await?;
    if own.parent() != Some(&git_dir.join("worktrees")) {
        return Err(unclear("it is no worktree of its repository any more"));
    }
    let back = own.join("gitdir");
    let mut bytes = tokio::fs::read(&back)
        .await
        .map_err(|source| WorktreeError::Disk { path: back, source })?;
    while bytes.last().is_some_and(u8::is_ascii_whitespace) {
        bytes.pop();
    }
    // A relative path is relative to the git folder of the worktree.
    let link = own.join(path_of(bytes));
    let Some(back) = link.parent() else {
        return Err(unclear("its repository does not know where it is"));
    };
    if self::real(back).await? != real {
        return Err(unclear("its repository takes another folder for it"));
    }
    Ok(())
}

async fn real(path: &Path) -> Result<PathBuf, WorktreeError> {
    let real = tokio::fs::canonicalize(path).await;
    real.map_err(|source| WorktreeError::Disk {
        path: path.to_owned(),
        source,
    })
}

/// The folder in a worktree that corresponds to a folder of the repository, or its nearest parent
/// that exists. Symbolic links are not followed, so the result is always inside the worktree.
pub(super) fn counterpart(worktree: &Path, inside: &Path) -> PathBuf {
    let mut found = worktree.to_owned();
    for part in inside.components() {
        let next = found.join(part);
        if !std::fs::symlink_metadata(&next).is_ok_and(|it| it.is_dir()) {
            break;
        }
        found = next;
    }
    found
}
