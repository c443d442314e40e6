//! Sees whether there is anything in a worktree that would be lost with it: changed or new files,
//! commits, files that git was told not to look at, submodules that were checked out. Ignored files
//! alone do not count.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::error::WorktreeError;
use super::git::{Git, Step, path_of};

/// How many files are named, and how many are counted.
const NAMED: usize = 50;
const COUNTED: usize = 10_000;

/// How many places its HEAD has been at are looked at.
const PLACES: usize = 500;

/// What an agent did in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Files that differ from the commit it started from, in order; not more than a few.
    pub files: Vec<String>,
    /// How many more there are, up to a limit.
    pub more_files: usize,
    /// Commits that were made or fetched there.
    pub commits: u32,
    /// The branch it is on now.
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

/// Looks at a worktree that started from a commit; none means that nothing would be lost.
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

/// Changed and new files.
async fn uncommitted(git: &Git, files: &mut BTreeSet<String>) -> Result<(), WorktreeError> {
    let args = [
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        // Looking into one would run git with that one's own configuration; see `unseen`.
        "--ignore-submodules=dirty",
    ];
    git.each(Step::all_files("look for changes"), args, |entry| {
        // Two letters and a space come before the path.
        note(files, entry.get(3..).unwrap_or_default());
    })
    .await
}

/// What `git status` does not see: files that it was told to take for unchanged or to leave out
/// although they are there, and submodules that were checked out.
async fn unseen(git: &Git, files: &mut BTreeSet<String>) -> Result<(), WorktreeError> {
    let args = ["ls-files", "-v", "--stage", "-z"];
    git.each(Step::all_files("list the files"), args, |entry| {
        // `H 100644 <hash> 0<tab>path`
        let Some(tab) = memchr::memchr(b'\t', entry) else {
            return;
        };
        let (head, path) = entry.split_at(tab);
        let path = path.get(1..).unwrap_or_default();
        let on_disk = || git.cwd.join(path_of(path.to_owned()));
        let hidden = match head.first() {
            // Small letters mean "take it for unchanged".
            Some(tag) if tag.is_ascii_lowercase() => true,
            // "Leave it out", as sparse checkouts do with files that are not there.
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

/// How many commits its HEAD has that the first commit has not; when none, how many it had on its
/// way, for example on a branch that was made there and left again.
async fn commits(git: &Git, commit: &str) -> Result<u32, WorktreeError> {
    let first = format!("^{commit}");
    let count = ["rev-list", "--count", "HEAD", &first, "--"].map(str::to_owned);
    let ahead = number(git, count.to_vec()).await?;
    if ahead > 0 {
        return Ok(ahead);
    }
    let most = format!("--max-count={PLACES}");
    let log = ["rev-list", "--walk-reflogs", &most, "HEAD", "--"];
    let places = git.ask(Step::lookup("read where HEAD was"), log).await?;
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
    let step = Step::all_files("count commits");
    let answer = git.ask(step, args).await?;
    let answer = String::from_utf8_lossy(&answer);
    answer.trim().parse().map_err(|_| WorktreeError::Git {
        step: step.what.to_owned(),
        said: format!("it answered `{}`", answer.trim()),
    })
}

/// The files that its commits changed, as far as HEAD has them.
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
    let step = Step::all_files("compare commits");
    git.each(step, args, |path| note(files, path)).await
}

/// The branch, when it is on one.
async fn branch(git: &Git) -> Option<String> {
    let args = ["symbolic-ref", "--quiet", "--short", "HEAD"];
    // A failure means that it is on none.
    let name = git.line("name the branch", args).await.ok()?;
    Some(String::from_utf8_lossy(&name).into_owned())
}
