//! `loop worktrees`: the copies of repositories in which agents work, and their removal.

use loopd_sdk::{Worktree, WorktreeContents, WorktreeUse};

use crate::args::WorktreesVerb;
use crate::open::Desk;
use crate::outcome::Outcome;
use crate::terminal::harmless;

/// How much of a commit's name is shown.
const COMMIT_CHARS: usize = 10;

/// How many changed files are named.
const FILES: usize = 5;

pub(crate) async fn run(desk: &Desk, what: Option<WorktreesVerb>) -> anyhow::Result<Outcome> {
    match what {
        None => list(desk).await,
        Some(WorktreesVerb::Remove { id, force }) => remove(desk, &id, force).await,
    }
}

async fn list(desk: &Desk) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let worktrees = client.worktrees().await?;
    if worktrees.is_empty() && !desk.options.json {
        desk.terminal.notice("no worktrees");
    }
    for worktree in &worktrees {
        let text = if desk.options.json {
            serde_json::to_string(worktree)? + "\n"
        } else {
            described(worktree)
        };
        desk.terminal.answer(&text)?;
    }
    client.close().await;
    Ok(Outcome::Done)
}

async fn remove(desk: &Desk, id: &str, force: bool) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    if force {
        client.remove_worktree_with_changes(id).await?;
    } else {
        client.remove_worktree(id).await?;
    }
    desk.terminal.notice(&format!("removed {}", harmless(id)));
    client.close().await;
    Ok(Outcome::Done)
}

/// One worktree in a few lines: paths are too long for columns.
fn described(worktree: &Worktree) -> String {
    let usage = match worktree.usage {
        WorktreeUse::InUse => "in use",
        WorktreeUse::Kept => "kept",
        WorktreeUse::Leftover => "leftover",
    };
    let mut lines = vec![format!(
        "{}  {usage}, {}",
        worktree.id,
        lost(&worktree.contents)
    )];
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let value = harmless(&value).replace('\n', " ");
            lines.push(format!("    {name:<11} {value}"));
        }
    };
    line("path", Some(worktree.path.clone()));
    line("repository", worktree.repository.clone());
    let short = |hash: &String| hash.chars().take(COMMIT_CHARS).collect();
    line("commit", worktree.commit.as_ref().map(short));
    line(
        "session",
        worktree.session_id.as_ref().map(ToString::to_string),
    );
    line(
        "made",
        worktree.created_at.as_ref().map(ToString::to_string),
    );
    if let WorktreeContents::Changed {
        files,
        more_files,
        branch,
        ..
    } = &worktree.contents
    {
        line("branch", branch.clone());
        for file in files.iter().take(FILES) {
            line("changed", Some(file.clone()));
        }
        let more = files.len().saturating_sub(FILES) + more_files;
        line("", (more > 0).then(|| format!("and {more} more")));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn lost(contents: &WorktreeContents) -> String {
    match contents {
        WorktreeContents::Unchanged {} => "unchanged".to_owned(),
        WorktreeContents::Changed {
            files,
            more_files,
            commits,
            ..
        } => {
            let files = files.len() + more_files;
            let end = |number: usize| if number == 1 { "" } else { "s" };
            let many = usize::try_from(*commits).unwrap_or(usize::MAX);
            format!(
                "{files} changed file{}, {commits} commit{}",
                end(files),
                end(many)
            )
        }
        WorktreeContents::Unclear { why } => {
            let why = harmless(why).replace('\n', " ");
            format!("contents unclear: {why}")
        }
    }
}

#[cfg(test)]
mod tests;
