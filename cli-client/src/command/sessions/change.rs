//! `loop sessions rename`, `delete`, `prune` and `fork`.

use anyhow::bail;
use loopd_sdk::proto::id::EventId;
use loopd_sdk::proto::params::stored::PruneParams;
use loopd_sdk::{Client, SessionConfig};

use super::{confirmed, find};
use crate::amount::{counted, size};
use crate::app::{App, find_session};
use crate::command::rewind;
use crate::outcome::Outcome;

pub(super) async fn rename(
    app: &App,
    client: &Client,
    id: &str,
    name: String,
) -> anyhow::Result<Outcome> {
    let id = find_session(client, id).await?;
    // As an observer, so that the session does not take it for a visit.
    let config = SessionConfig::new().leave_permissions_open();
    let session = client.watch(id, config).await?;
    session.set_name(name.clone()).await?;
    say(app, &format!("{} is called `{name}`", session.id()));
    Ok(Outcome::Done)
}

pub(super) async fn delete(
    app: &App,
    client: &Client,
    ids: &[String],
    yes: bool,
) -> anyhow::Result<Outcome> {
    let ids = find(client, ids).await?;
    let what = counted(ids.len(), "session", "sessions");
    let question =
        format!("Delete {what} with all messages and files? They cannot be brought back.\n");
    if !confirmed(app, yes, &question).await? {
        app.terminal.notice("nothing was deleted");
        return Ok(Outcome::Failed);
    }
    let freed = client.delete_sessions(ids.clone()).await?.freed_bytes;
    for (id, bytes) in &freed {
        if app.options.json {
            let line = serde_json::json!({"deleted": id, "freedBytes": bytes});
            app.terminal.print(&format!("{line}\n"))?;
        } else {
            say(app, &format!("deleted {id} ({})", size(*bytes)));
        }
    }
    let left: Vec<_> = ids.iter().filter(|id| !freed.contains_key(*id)).collect();
    if let Some(id) = left.first() {
        bail!("{id} could not be deleted; the log of the daemon says why: loop daemon logs");
    }
    Ok(Outcome::Done)
}

/// What is pruned.
pub(super) struct Prune {
    pub(super) older_than: u32,
    pub(super) dry_run: bool,
    pub(super) named: bool,
    pub(super) yes: bool,
}

pub(super) async fn prune(app: &App, client: &Client, wanted: Prune) -> anyhow::Result<Outcome> {
    let params = |dry_run| PruneParams {
        older_than_days: wanted.older_than,
        dry_run,
        include_named: wanted.named,
        exclude_session_ids: None,
    };
    let would = client.prune_sessions(params(true)).await?;
    if wanted.dry_run || would.candidates.is_empty() {
        if app.options.json {
            app.terminal
                .print(&(serde_json::to_string(&would)? + "\n"))?;
        } else {
            for id in &would.candidates {
                app.terminal.print(&format!("{id}\n"))?;
            }
            say(
                app,
                &format!(
                    "{} would be deleted, which take {}",
                    counted(would.candidates.len(), "session", "sessions"),
                    size(would.freed_bytes)
                ),
            );
        }
        return Ok(Outcome::Done);
    }
    let question = format!(
        "Delete {} that have not changed for {}? They cannot be brought back.\n",
        counted(would.candidates.len(), "session", "sessions"),
        counted(
            usize::try_from(wanted.older_than).unwrap_or(usize::MAX),
            "day",
            "days"
        ),
    );
    if !confirmed(app, wanted.yes, &question).await? {
        app.terminal.notice("nothing was deleted");
        return Ok(Outcome::Failed);
    }
    let pruned = client.prune_sessions(params(false)).await?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&pruned)? + "\n"))?;
    } else {
        say(
            app,
            &format!(
                "deleted {}, which took {}",
                counted(pruned.deleted.len(), "session", "sessions"),
                size(pruned.freed_bytes)
            ),
        );
    }
    Ok(Outcome::Done)
}

pub(super) async fn fork(
    app: &App,
    client: &Client,
    id: &str,
    to: Option<&str>,
    name: Option<String>,
) -> anyhow::Result<Outcome> {
    let id = find_session(client, id).await?;
    let before: Option<EventId> = match to {
        None => None,
        Some(meant) => {
            let config = SessionConfig::new().leave_permissions_open();
            let session = client.watch(id.clone(), config).await?;
            let points = session.rewind_points().await?.points;
            Some(rewind::find(&points, meant)?)
        }
    };
    let forked = client.fork(id.clone(), before, name).await?;
    if app.options.json {
        app.terminal
            .print(&(serde_json::to_string(&forked)? + "\n"))?;
    } else {
        app.terminal.print(&format!("{}\n", forked.session_id))?;
        say(
            app,
            &format!(
                "a copy of {id}; to go on: loop resume {}",
                forked.session_id
            ),
        );
    }
    Ok(Outcome::Done)
}

/// Says something that programs do not read.
fn say(app: &App, text: &str) {
    if !app.options.json {
        app.terminal.notice(&crate::terminal::sanitize(text));
    }
}
