//! `session.workspaces.diff`: what changed in the working directory, by git or by what was captured.

use std::path::{Path, PathBuf};

use loopd_proto::params::rewind::UnavailableReason;
use loopd_proto::params::workspace::{
    DiffChange, DiffChangeType, DiffMode, DiffParams, DiffResult,
};
use similar::TextDiff;

use super::super::discover::look;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::regular_file;
use crate::session::SessionHandle;
use crate::tool::capture::SessionChange;
use loopd_exec::worktree::{DiffBase, FolderDiff, Whitespace, WorktreeError};
use loopd_kernel::decide::rewind::work_in_the_way;

/// The longest diff of one file.
const LONGEST: usize = 128 * 1024;

/// The most files of an answer.
const MOST_FILES: usize = 1_000;

pub(in crate::front::rpc::method) async fn diff(
    context: Context,
    params: DiffParams,
) -> Result<DiffResult, RpcError> {
    let session = context.session(&params.session_id)?;
    let mut answer = DiffResult {
        requested_mode: params.mode,
        mode: params.mode,
        changes: Vec::new(),
        base_branch: None,
        is_fallback: false,
        unavailable_reason: None,
    };
    match params.mode {
        DiffMode::Session => match of_session(&session).await? {
            Ok(changes) => {
                answer.changes = changes;
                return Ok(answer);
            }
            Err(reason) => {
                answer.unavailable_reason = Some(reason);
                answer.is_fallback = true;
            }
        },
        DiffMode::Branch => {
            if let Ok(found) = by_git(&context, &session, &params, DiffBase::DefaultBranch).await? {
                answer.base_branch = found.1;
                answer.changes = found.0;
                return Ok(answer);
            }
            answer.is_fallback = true;
        }
        DiffMode::Unstaged => {}
    }
    answer.mode = DiffMode::Unstaged;
    match by_git(&context, &session, &params, DiffBase::LastCommit).await? {
        Ok((changes, _)) => answer.changes = changes,
        // Without a repository nothing is known to have changed.
        Err(WorktreeError::NoRepository(_) | WorktreeError::NoGit | WorktreeError::NoFiles(_)) => {}
        Err(error) => return Err(RpcError::Failed(error.to_string())),
    }
    Ok(answer)
}

/// Returns what the tools of the session changed, or why that is not known.
async fn of_session(
    session: &SessionHandle,
) -> Result<Result<Vec<DiffChange>, UnavailableReason>, RpcError> {
    let (captures, workspace) = session.view(|view| (view.captures)()).await?;
    if !captures.is_on() {
        return Ok(Err(UnavailableReason::FileChangeTrackingDisabled));
    }
    if session.state(work_in_the_way).await?.is_some() {
        return Ok(Err(UnavailableReason::SessionBusy));
    }
    let root = workspace.cwd.clone();
    captures.settle(workspace).await;
    let changes = look(move || {
        let root = root.canonicalize().unwrap_or(root);
        let changes = captures.session_changes()?;
        Ok::<_, std::io::Error>(changes.iter().map(|it| of_file(&root, it)).collect())
    });
    let changes = changes.await?.map_err(|error| {
        RpcError::Failed(format!(
            "the record of changed files cannot be read: {error}"
        ))
    })?;
    Ok(Ok(changes))
}

fn of_file(root: &Path, change: &SessionChange) -> DiffChange {
    let change_type = match (&change.before, &change.after) {
        (None, _) => DiffChangeType::Added,
        (_, None) => DiffChangeType::Deleted,
        (Some(_), Some(_)) => DiffChangeType::Modified,
    };
    let path = below(root, &change.path);
    let text = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.clone().unwrap_or_default();
        String::from_utf8(bytes).ok()
    };
    let diff = match (text(&change.before), text(&change.after)) {
        (Some(before), Some(after)) => unified(&path, change_type, &before, &after),
        _ => format!("Binary files a/{path} and b/{path} differ\n"),
    };
    limited(path, None, change_type, diff)
}

/// Names a file relative to a folder, also if it is outside of it.
fn below(root: &Path, path: &Path) -> String {
    if let Ok(below) = path.strip_prefix(root) {
        return below.to_string_lossy().into_owned();
    }
    for (up, above) in root.ancestors().enumerate().skip(1) {
        if let Ok(below) = path.strip_prefix(above)
            && above.parent().is_some()
        {
            let up: PathBuf = std::iter::repeat_n("..", up).collect();
            return up.join(below).to_string_lossy().into_owned();
        }
    }
    path.to_string_lossy().into_owned()
}

fn unified(path: &str, kind: DiffChangeType, before: &str, after: &str) -> String {
    let (from, to) = match kind {
        DiffChangeType::Added => ("/dev/null".to_owned(), format!("b/{path}")),
        DiffChangeType::Deleted => (format!("a/{path}"), "/dev/null".to_owned()),
        DiffChangeType::Modified | DiffChangeType::Renamed => {
            (format!("a/{path}"), format!("b/{path}"))
        }
    };
    let diff = TextDiff::from_lines(before, after);
    let hunks = diff.unified_diff().to_string();
    format!("diff --git a/{path} b/{path}\n--- {from}\n+++ {to}\n{hunks}")
}

fn limited(
    path: String,
    old_path: Option<String>,
    change_type: DiffChangeType,
    diff: String,
) -> DiffChange {
    let is_truncated = diff.len() > LONGEST;
    DiffChange {
        path,
        old_path,
        change_type,
        diff: if is_truncated { String::new() } else { diff },
        is_truncated: is_truncated.then_some(true),
    }
}

type ByGit = (Vec<DiffChange>, Option<String>);

async fn by_git(
    context: &Context,
    session: &SessionHandle,
    params: &DiffParams,
    base: DiffBase,
) -> Result<Result<ByGit, WorktreeError>, RpcError> {
    let command = session.view(|view| (view.command_context)()).await?;
    let whitespace = if params.ignore_whitespace == Some(true) {
        Whitespace::Ignored
    } else {
        Whitespace::Counts
    };
    let worktrees = &context.app.services.worktrees;
    let found = worktrees.diff(&command.cwd, &command.env, base, whitespace);
    let found = match found.await {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let (base, cwd) = (found.base.clone(), command.cwd);
    let changes = look(move || changes(&cwd, &found)).await?;
    Ok(Ok((changes, base)))
}

/// Turns the output of git into changes.
fn changes(root: &Path, found: &FolderDiff) -> Vec<DiffChange> {
    let mut changes = sections(&found.text);
    for name in &found.untracked {
        // A file that cannot be read as text is listed all the same.
        let text = regular_file::read_text(&root.join(name), LONGEST as u64);
        let diff = match &text {
            Ok(text) => unified(name, DiffChangeType::Added, "", text),
            Err(_) => format!("Binary files /dev/null and b/{name} differ\n"),
        };
        changes.push(limited(name.clone(), None, DiffChangeType::Added, diff));
    }
    changes.truncate(MOST_FILES);
    changes
}

/// Splits the output of `git diff` into its files.
fn sections(text: &str) -> Vec<DiffChange> {
    let mut changes = Vec::new();
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    for pair in starts.windows(2) {
        let [from, to] = pair else {
            continue;
        };
        let section = text.get(*from..*to).unwrap_or_default();
        changes.extend(section_change(section));
    }
    changes
}

fn section_change(section: &str) -> Option<DiffChange> {
    let header = || section.lines().take_while(|line| !line.starts_with("@@"));
    let named = |prefix: &str| {
        let line = header().find_map(|line| line.strip_prefix(prefix))?;
        Some(line.trim_end_matches('\t').to_owned())
    };
    let is = |prefix: &str| header().any(|line| line.starts_with(prefix));
    let first = section.lines().next()?;
    // The two names are the same here, so that the border is in the middle.
    let same = || {
        let both = first.strip_prefix("diff --git a/")?;
        let half = both.len().checked_sub(3)? / 2;
        both.get(..half).map(str::to_owned)
    };
    let (kind, path, old) = if is("rename from ") {
        let to = named("rename to ")?;
        (DiffChangeType::Renamed, to, named("rename from "))
    } else if is("new file mode ") {
        (DiffChangeType::Added, named("+++ b/").or_else(same)?, None)
    } else if is("deleted file mode ") {
        (
            DiffChangeType::Deleted,
            named("--- a/").or_else(same)?,
            None,
        )
    } else {
        (
            DiffChangeType::Modified,
            named("+++ b/").or_else(same)?,
            None,
        )
    };
    Some(limited(path, old, kind, section.to_owned()))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_git_is_split_into_files() {
        let text = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\t\n+++ b/a b.txt\t\n@@ -1 +1 @@\n-diff --git x\n+y\ndiff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\ndiff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\ndiff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        let found = sections(text);
        let shown: Vec<(&str, DiffChangeType)> = found
            .iter()
            .map(|change| (change.path.as_str(), change.change_type))
            .collect();
        assert_eq!(
            shown,
            [
                ("a b.txt", DiffChangeType::Modified),
                ("run.sh", DiffChangeType::Modified),
                ("new", DiffChangeType::Renamed),
                ("gone", DiffChangeType::Deleted),
            ]
        );
        assert_eq!(found[2].old_path.as_deref(), Some("old"));
    }

    #[test]
    fn a_file_outside_is_named_from_the_folder() {
        let root = Path::new("/home/user/project");
        assert_eq!(below(root, Path::new("/home/user/project/a/b")), "a/b");
        assert_eq!(below(root, Path::new("/home/user/other")), "../other");
        assert_eq!(below(root, Path::new("/etc/hosts")), "/etc/hosts");
    }
}
