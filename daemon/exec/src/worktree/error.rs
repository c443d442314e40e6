//! Worktree errors: the cause, and what the user can do.

use std::io;
use std::path::{Path, PathBuf};

use super::changes::Changes;
use crate::process::SpawnError;

/// Why a worktree was not created, inspected or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("git was not found on the PATH; install it, or start the agent without a worktree")]
    NoGit,
    #[error(
        "this git is too old to switch off hooks and filters safely; install git 2.31 or newer"
    )]
    GitTooOld,
    #[error("the folder {} does not exist", .0.display())]
    NoFolder(PathBuf),
    #[error(
        "{} is not in a git repository; run `git init` and commit there, or start the agent without a worktree",
        .0.display()
    )]
    NoRepository(PathBuf),
    #[error(
        "{} is in what git itself keeps of a repository (or in a bare one), which has no files to work on; start from a clone or a worktree of it",
        .0.display()
    )]
    NoFiles(PathBuf),
    #[error(
        "the repository {} has no commit yet; make a first one (`git add . && git commit`), because a worktree starts from a commit",
        .0.display()
    )]
    NoCommit(PathBuf),
    #[error(
        "git does not trust the repository around {}, because it belongs to another user; if you do, run `git config --global --add safe.directory <the repository>`",
        .0.display()
    )]
    ForeignOwner(PathBuf),
    #[error(
        "the repository {} is a partial clone, and files of the commit are missing; fetch them with `git checkout {commit}` or `git fetch --refetch`, because nothing is downloaded for a worktree: {said}",
        repository.display()
    )]
    PartialClone {
        repository: PathBuf,
        commit: String,
        said: String,
    },
    #[error("the path {} is not UTF-8, which a worktree cannot be kept for; rename it", .0.display())]
    OddPath(PathBuf),
    #[error(
        "the configuration of {} has filters or hooks that cannot be switched off ({why}); take them out, or start the agent without a worktree",
        folder.display()
    )]
    OddConfiguration { folder: PathBuf, why: String },
    #[error(
        "{} cannot be written; make room or make it writable: {said}",
        place.display()
    )]
    NotWritable { place: PathBuf, said: String },
    #[error("{} could not be read or written: {source}", path.display())]
    Disk { path: PathBuf, source: io::Error },
    #[error("git could not {step}: {said}")]
    Git { step: String, said: String },
    #[error(
        "git took longer than {seconds} seconds to {step} and was stopped; try again when the machine is less busy"
    )]
    TooSlow { step: String, seconds: u64 },
    #[error("git said more than is read when asked to {step}")]
    TooMuch { step: String },
    #[error("git could not be started: {0}")]
    Start(#[source] SpawnError),
    #[error(
        "this home has {0} worktrees already; remove some with `loop worktrees remove <id>` (`loop worktrees` lists them)"
    )]
    TooMany(usize),
    #[error("there is no worktree {0}; `loop worktrees` lists them")]
    NotFound(String),
    #[error("the worktree {0} is being made, looked at or removed already; try again in a moment")]
    Busy(String),
    #[error("the worktree {0} is in use by an agent; stop the agent first")]
    InUse(String),
    #[error(
        "the worktree {id} has changes ({changes}); take what you need from {}, or remove it all the same with --force",
        path.display()
    )]
    Changed {
        id: String,
        path: PathBuf,
        changes: Changes,
    },
    #[error(
        "it cannot be seen whether {} has changes, so it is kept: {why}; take what you need, and remove it with `loop worktrees remove --force`",
        path.display()
    )]
    Unclear { path: PathBuf, why: String },
    #[error("the work on a worktree broke off; `loop worktrees` lists what it left")]
    BrokeOff,
}

impl WorktreeError {
    /// Finds the cause of a failure in the messages of git, which runs in the locale `C`.
    pub(super) fn of_git(step: &str, place: &Path, said: &str) -> Self {
        const NOT_WRITABLE: [&str; 4] = [
            "Permission denied",
            "Read-only file system",
            "No space left on device",
            "Disk quota exceeded",
        ];
        if said.contains("dubious ownership") {
            Self::ForeignOwner(place.to_owned())
        } else if said.contains("not a git repository") {
            Self::NoRepository(place.to_owned())
        } else if NOT_WRITABLE.iter().any(|words| said.contains(words)) {
            Self::NotWritable {
                place: place.to_owned(),
                said: said.to_owned(),
            }
        } else {
            Self::Git {
                step: step.to_owned(),
                said: said.to_owned(),
            }
        }
    }

    pub(super) fn of_start(error: SpawnError) -> Self {
        match error {
            SpawnError::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Self::NoGit
            }
            SpawnError::NoFolder(folder) => Self::NoFolder(folder),
            other => Self::Start(other),
        }
    }

    /// Says of a worktree with unknown contents that it is kept, and why.
    pub(super) fn unclear(self, path: &Path) -> Self {
        match self {
            Self::Unclear { .. } => self,
            other => Self::Unclear {
                path: path.to_owned(),
                why: other.to_string(),
            },
        }
    }
}
