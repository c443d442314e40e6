//! `loop worktrees`: the copies of repositories in which agents work, and their removal.

use loopd_sdk::{Worktree, WorktreeContents, WorktreeUse};

use crate::app::App;
use crate::args::WorktreesVerb;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How many characters of a commit hash are shown.
const COMMIT_CHARS: usize = 10;

/// How many changed files are named.
const FILES: usize = 5;

pub(crate) async fn run(app: &App, what: Option<WorktreesVerb>) -> anyhow::Result<Outcome> {
    match what {
        None => list(app).await,
        Some(WorktreesVerb::Remove { id, force }) => remove(app, &id, force).await,
    }
}

async fn list(app: &App) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let worktrees = client.worktrees().await?;
    if worktrees.is_empty() && !app.options.json {
        app.terminal.notice("no worktrees");
    }
    for worktree in &worktrees {
        let text = if app.options.json {
            serde_json::to_string(worktree)? + "\n"
        } else {
            described(worktree)
        };
        app.terminal.print(&text)?;
    }
    client.close().await;
    Ok(Outcome::Done)
}

async fn remove(app: &App, id: &str, force: bool) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    if force {
        client.remove_worktree_with_changes(id).await?;
    } else {
        client.remove_worktree(id).await?;
    }
    app.terminal.notice(&format!("removed {}", sanitize(id)));
    client.close().await;
    Ok(Outcome::Done)
}

/// Describes a worktree in a few lines, because paths are too long for columns.
fn described(worktree: &Worktree) -> String {
    let usage = match worktree.usage {
        WorktreeUse::InUse => "in use",
        WorktreeUse::Kept => "kept",
        WorktreeUse::Leftover => "leftover",
    };
    let mut lines = vec![format!(
        "{}  {usage}, {}",
        worktree.id,
        describe_contents(&worktree.contents)
    )];
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let value = sanitize(&value).replace('\n', " ");
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

fn describe_contents(contents: &WorktreeContents) -> String {
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
            let why = sanitize(why).replace('\n', " ");
            format!("contents unclear: {why}")
        }
    }
}

#[cfg(test)]
mod tests;
