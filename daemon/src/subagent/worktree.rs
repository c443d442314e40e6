//! The git worktree of an isolated sub-agent: made, restored, and removed if unchanged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loopd_proto::event::task::WorktreeWork;
use loopd_proto::id::SessionId;

use super::error::ChildError;
use loopd_exec::worktree::{Settled, Worktree, WorktreeError, Worktrees};

/// Whether a worktree was removed, with a text for the model if it was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorktreeEnd {
    Removed,
    Kept(String),
    Failed(String),
}

/// Makes a worktree of the repository for a sub-agent.
pub(super) async fn make(
    worktrees: &Worktrees,
    session: &SessionId,
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> Result<WorktreeWork, Arc<WorktreeError>> {
    let made = worktrees.create(session, cwd, env).await?;
    Ok(WorktreeWork {
        copied: names_of(&made.copied, cwd),
        id: made.id,
        path: made.path.to_string_lossy().into_owned(),
        cwd: made.cwd.to_string_lossy().into_owned(),
        repository: made.repository.to_string_lossy().into_owned(),
        commit: made.commit,
    })
}

/// Returns the names of the folder that was copied: the real one, and the one that `cwd` begins with if
/// that leads through links.
fn names_of(copied: &Path, cwd: &Path) -> Vec<String> {
    let is_it = |folder: &&Path| folder.canonicalize().is_ok_and(|real| real == copied);
    let spelled = cwd.ancestors().find(is_it);
    let mut names = vec![copied.to_string_lossy().into_owned()];
    let spelled = spelled.map(|folder| folder.to_string_lossy().into_owned());
    names.extend(spelled.filter(|name| *name != copied.to_string_lossy()));
    names
}

/// Makes the worktree of a sub-agent that works again, if it was removed because it had no changes.
pub(super) async fn restore(
    worktrees: &Worktrees,
    session: &SessionId,
    work: &WorktreeWork,
    env: &BTreeMap<String, String>,
) -> Result<(), ChildError> {
    if Path::new(&work.path).is_dir() {
        return Ok(());
    }
    let made = make(worktrees, session, Path::new(&work.repository), env).await;
    let made = made.map_err(ChildError::NoWorktree)?;
    if made.path == work.path {
        Ok(())
    } else {
        Err(ChildError::WorktreeGone(work.path.clone()))
    }
}

/// Removes the worktree of an idle sub-agent if it is unchanged.
pub(super) async fn settle(
    worktrees: &Worktrees,
    work: &WorktreeWork,
    env: &BTreeMap<String, String>,
) -> WorktreeEnd {
    let worktree = Worktree {
        id: work.id.clone(),
        path: work.path.clone().into(),
        cwd: work.cwd.clone().into(),
        repository: work.repository.clone().into(),
        copied: work.repository.clone().into(),
        commit: work.commit.clone(),
        filters_off: Vec::new(),
    };
    match worktrees.settle(&worktree, env).await {
        Ok(Settled::Removed) => WorktreeEnd::Removed,
        Ok(Settled::Kept {
            path,
            commit,
            changes,
        }) => WorktreeEnd::Kept(format!(
            "The agent worked in the worktree {}, which starts from commit {commit} and is kept because of its changes: {changes}",
            path.display()
        )),
        Err(error) => WorktreeEnd::Failed(format!(
            "The worktree {} is still there, because it could not be looked at: {error}",
            work.path
        )),
    }
}
