//! `loop sessions`: the stored sessions: listed, found, named, deleted, copied and carried to other homes.

mod carry;
mod change;
mod search;

use loopd_sdk::proto::params::daemon::{Activity, LiveSession};
use loopd_sdk::proto::params::session::{ListFilter, Metadata};
use loopd_sdk::{Client, SessionId};

use crate::app::App;
use crate::args::SessionsVerb;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How many characters of a name are shown.
const NAME_CHARS: usize = 60;

pub(crate) async fn run(app: &App, what: Option<SessionsVerb>) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let done = match what.unwrap_or(SessionsVerb::List { here: false }) {
        SessionsVerb::List { here } => list(app, &client, here).await,
        SessionsVerb::Search { text, limit } => search::run(app, &client, &text, limit).await,
        SessionsVerb::Rename { id, name } => change::rename(app, &client, &id, name).await,
        SessionsVerb::Delete { ids, yes } => change::delete(app, &client, &ids, yes).await,
        SessionsVerb::Prune {
            older_than,
            dry_run,
            named,
            yes,
        } => {
            let wanted = change::Prune {
                older_than,
                dry_run,
                named,
                yes,
            };
            change::prune(app, &client, wanted).await
        }
        SessionsVerb::Fork { id, to, name } => {
            change::fork(app, &client, &id, to.as_deref(), name).await
        }
        SessionsVerb::Export {
            id,
            output,
            without_files,
        } => carry::export(app, &client, &id, output, without_files).await,
        SessionsVerb::Import {
            file,
            directory,
            copy,
        } => carry::import(app, &client, &file, directory.as_deref(), copy).await,
    };
    client.close().await;
    done
}

async fn list(app: &App, client: &Client, here: bool) -> anyhow::Result<Outcome> {
    let cwd = here.then(|| app.directory.to_string_lossy().into_owned());
    let filter = ListFilter {
        cwd,
        ..ListFilter::default()
    };
    let sessions = client.sessions_where(filter).await?;
    let in_memory = client.daemon_status().await?.sessions;
    for session in &sessions {
        let line = if app.options.json {
            serde_json::to_string(session)?
        } else {
            row(session, &in_memory)
        };
        app.terminal.print(&(line + "\n"))?;
    }
    if sessions.is_empty() && !app.options.json {
        app.terminal.notice(if here {
            "no sessions of this directory; begin one with loop \"…\""
        } else {
            "no sessions yet; begin one with loop \"…\""
        });
    }
    Ok(Outcome::Done)
}

fn row(session: &Metadata, in_memory: &[LiveSession]) -> String {
    let activity = in_memory
        .iter()
        .find(|live| live.session_id == session.session_id)
        .map_or("stored", |live| match live.activity {
            Activity::Idle => "idle",
            Activity::Working => "working",
            Activity::Waiting => "waiting",
        });
    let cwd = session.context.as_ref().map_or("", |it| it.cwd.as_str());
    format!(
        "{}  {}  {activity:<7}  {}  ({})",
        session.session_id,
        session.modified_time,
        named(session),
        sanitize(cwd)
    )
}

/// Returns what a session is called, in one line.
fn named(session: &Metadata) -> String {
    let name = session.name.as_deref().or(session.summary.as_deref());
    one_line(name.unwrap_or("(no message yet)"), NAME_CHARS)
}

fn one_line(text: &str, chars: usize) -> String {
    let text = sanitize(text).replace('\n', " ");
    text.chars().take(chars).collect()
}

/// Returns the sessions that these beginnings of ids name.
async fn find(client: &Client, beginnings: &[String]) -> anyhow::Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for beginning in beginnings {
        let id = crate::app::find_session(client, beginning).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Asks before something is gone for good; says what to give where nobody can be asked.
async fn confirmed(app: &App, yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !app.terminal.can_ask() || app.options.json {
        anyhow::bail!("nobody is there to ask; to do it without asking, give --yes");
    }
    let answer = tokio::select! {
        answer = app.terminal.ask(question, "  yes or no? [y/n] ") => answer,
        () = app.terminal.interrupted() => None,
    };
    Ok(matches!(
        answer.as_deref().map(str::trim),
        Some("y" | "yes")
    ))
}
