//! What changed in the repository around a folder: since the last commit, or since a branch left the
//! default one. Git only reads here, with everything switched off that could run another program.

use std::path::Path;

use super::error::WorktreeError;
use super::git::{Git, GitStep};
use super::{Environment, Worktrees};

/// The names that default branches have, if the repository does not say.
const DEFAULT_BRANCHES: [&str; 4] = ["origin/main", "origin/master", "main", "master"];

/// The most untracked files that are listed.
const UNTRACKED: usize = 500;

/// What to compare the files with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffBase {
    LastCommit,
    DefaultBranch,
}

/// Whether changes of white space count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whitespace {
    Counts,
    Ignored,
}

/// What changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FolderDiff {
    /// The output of `git diff` for tracked files.
    pub text: String,
    /// The names of untracked files, below the folder.
    pub untracked: Vec<String>,
    /// The default branch, if that was compared with.
    pub base: Option<String>,
}

impl Worktrees {
    /// Compares the files below a folder; the environment must not contain secrets.
    pub async fn diff(
        &self,
        folder: &Path,
        env: &Environment,
        base: DiffBase,
        whitespace: Whitespace,
    ) -> Result<FolderDiff, WorktreeError> {
        let git = Git::in_folder(&self.0.processes, env, folder).await?;
        let (commit, base) = match base {
            DiffBase::LastCommit => (last_commit(&git).await?, None),
            DiffBase::DefaultBranch => {
                let branch = default_branch(&git).await?;
                let args = ["merge-base", branch.as_str(), "HEAD"];
                let commit = git.line("find where the branch began", args).await?;
                (text(commit), Some(branch))
            }
        };
        let mut args = vec![
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--find-renames",
            "--relative",
            "--ignore-submodules=all",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        if whitespace == Whitespace::Ignored {
            args.push("--ignore-all-space");
        }
        args.extend([commit.as_str(), "--", "."]);
        let changed = git.ask(GitStep::all_files("compare the files"), args);
        let changed = text(changed.await?);
        let mut untracked = Vec::new();
        let args = [
            "ls-files",
            "--others",
            "--exclude-standard",
            "-z",
            "--",
            ".",
        ];
        git.each(GitStep::all_files("list new files"), args, |name| {
            if untracked.len() < UNTRACKED {
                untracked.push(text(name.to_vec()));
            }
        })
        .await?;
        Ok(FolderDiff {
            text: changed,
            untracked,
            base,
        })
    }
}

/// Returns the last commit, or the empty tree if there is none.
async fn last_commit(git: &Git) -> Result<String, WorktreeError> {
    let args = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"];
    match git.line("find the last commit", args).await {
        Ok(commit) => Ok(text(commit)),
        Err(WorktreeError::Git { .. } | WorktreeError::NoCommit(_)) => {
            let args = ["hash-object", "-t", "tree", "/dev/null"];
            Ok(text(git.line("name the empty tree", args).await?))
        }
        Err(error) => Err(error),
    }
}

async fn default_branch(git: &Git) -> Result<String, WorktreeError> {
    let what = "find the default branch";
    let args = [
        "rev-parse",
        "--abbrev-ref",
        "--verify",
        "--quiet",
        "origin/HEAD",
    ];
    if let Ok(named) = git.line(what, args).await {
        return Ok(text(named));
    }
    for branch in DEFAULT_BRANCHES {
        let args = ["rev-parse", "--verify", "--quiet", branch];
        if git.line(what, args).await.is_ok() {
            return Ok(branch.to_owned());
        }
    }
    Err(WorktreeError::Git {
        step: what.to_owned(),
        said: "there is no branch main or master, here or at origin".to_owned(),
    })
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
