//! Finds what would be lost with a worktree: changed or new files, commits, files that git was told
//! to skip, submodules that were checked out. Ignored files do not count.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::error::WorktreeError;
use super::git::{Git, GitStep, path_of};

/// How many changed files are listed, and how many are counted.
const NAMED: usize = 50;
const COUNTED: usize = 10_000;

/// How many entries of the reflog of HEAD are checked.
const MAX_REFLOG: usize = 500;

/// The changes that an agent made in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// The first files that differ from the start commit, sorted.
    pub files: Vec<String>,
    /// How many more files differ, up to a limit.
    pub more_files: usize,
    /// How many commits were made or fetched in the worktree.
    pub commits: u32,
    /// The current branch.
    pub branch: Option<String>,
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |number: usize, word: &str| match number {
            1 => format!("1 {word}"),
            _ => format!("{number} {word}s"),
        };
        let files = count(self.files.len() + self.more_files, "file");
        let commits = usize::try_from(self.commits).unwrap_or(usize::MAX);
        write!(f, "{files}, {}", count(commits, "commit"))
    }
}

/// Finds the changes since the start commit; `None` if nothing would be lost.
pub(super) async fn look(git: &Git, commit: &str) -> Result<Option<Changes>, WorktreeError> {
    let mut files = BTreeSet::new();
    uncommitted(git, &mut files).await?;
    unseen(git, &mut files).await?;
    let commits = commits(git, commit).await?;
    if commits > 0 {
        committed(git, commit, &mut files).await?;
    }
    if files.is_empty() && commits == 0 {
        return Ok(None);
    }
    let more_files = files.len().saturating_sub(NAMED);
    Ok(Some(Changes {
        files: files.into_iter().take(NAMED).collect(),
        more_files,
        commits,
        branch: branch(git).await,
    }))
}

fn note(files: &mut BTreeSet<String>, path: &[u8]) {
    if files.len() < COUNTED {
        files.insert(String::from_utf8_lossy(path).into_owned());
    }
}

/// Adds changed and new files.
async fn uncommitted(git: &Git, files: &mut BTreeSet<String>) -> Result<(), WorktreeError> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        // Checking inside a submodule would run git with the submodule's configuration; see
        // `unseen`.
        "--ignore-submodules=dirty",
    ];
    git.each(GitStep::all_files("look for changes"), args, |entry| {
        // The path follows two status letters and a space.
        note(files, entry.get(3..).unwrap_or_default());
    })
    .await
}

/// Adds what `git status` does not report: files marked "assume unchanged", existing files marked
/// "skip worktree", and submodules that were checked out.
async fn unseen(git: &Git, files: &mut BTreeSet<String>) -> Result<(), WorktreeError> {
    let args = ["ls-files", "-v", "--stage", "-z"];
    git.each(GitStep::all_files("list the files"), args, |entry| {
        // `H 100644 <hash> 0<tab>path`
        let Some(tab) = memchr::memchr(b'\t', entry) else {
            return;
        };
        let (head, path) = entry.split_at(tab);
        let path = path.get(1..).unwrap_or_default();
        let on_disk = || git.cwd.join(path_of(path.to_owned()));
        let hidden = match head.first() {
            // A lower-case tag means "assume unchanged".
            Some(tag) if tag.is_ascii_lowercase() => true,
            // "Skip worktree": sparse checkouts set it for files that do not exist on disk.
            Some(b'S') => is_there(&on_disk()),
            _ => head.get(2..8) == Some(b"160000") && has_entries(&on_disk()),
        };
        if hidden {
            note(files, path);
        }
    })
    .await
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn has_entries(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Counts the commits of HEAD since the start commit. If there are none, counts those in the reflog
/// of HEAD, for example on a branch that was created and left again.
async fn commits(git: &Git, commit: &str) -> Result<u32, WorktreeError> {
    let first = format!("^{commit}");
    let count = ["rev-list", "--count", "HEAD", &first, "--"].map(str::to_owned);
    let ahead = number(git, count.to_vec()).await?;
    if ahead > 0 {
        return Ok(ahead);
    }
    let most = format!("--max-count={MAX_REFLOG}");
    let log = ["rev-list", "--walk-reflogs", &most, "HEAD", "--"];
    let places = git.ask(GitStep::lookup("read where HEAD was"), log).await?;
    let places = String::from_utf8_lossy(&places);
    let places: BTreeSet<&str> = places.lines().filter(|hash| *hash != commit).collect();
    if places.is_empty() {
        return Ok(0);
    }
    let mut count = vec!["rev-list".to_owned(), "--count".to_owned()];
    count.extend(places.into_iter().map(str::to_owned));
    count.extend([first, "--".to_owned()]);
    number(git, count).await
}

async fn number(git: &Git, args: Vec<String>) -> Result<u32, WorktreeError> {
    let step = GitStep::all_files("count commits");
    let answer = git.ask(step, args).await?;
    let answer = String::from_utf8_lossy(&answer);
    answer.trim().parse().map_err(|_| WorktreeError::Git {
        step: step.what.to_owned(),
        said: format!("it answered `{}`", answer.trim()),
    })
}

/// Adds the files that differ between the start commit and HEAD.
async fn committed(
    git: &Git,
    commit: &str,
    files: &mut BTreeSet<String>,
) -> Result<(), WorktreeError> {
    let args = [
        "diff-tree",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        commit,
        "HEAD",
        "--",
    ];
    let step = GitStep::all_files("compare commits");
    git.each(step, args, |path| note(files, path)).await
}

/// The name of the current branch, if any.
async fn branch(git: &Git) -> Option<String> {
    let args = ["symbolic-ref", "--quiet", "--short", "HEAD"];
    // Git fails if HEAD is detached.
    let name = git.line("name the branch", args).await.ok()?;
    Some(String::from_utf8_lossy(&name).into_owned())
}
