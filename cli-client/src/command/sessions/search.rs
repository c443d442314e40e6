//! `loop sessions search`: sessions by what was said in them.

use loopd_sdk::Client;
use loopd_sdk::proto::params::bundle::SessionMatch;

use super::{named, one_line};
use crate::app::App;
use crate::outcome::Outcome;

/// How many characters of a message are shown.
const EXCERPT_CHARS: usize = 160;

pub(super) async fn run(
    app: &App,
    client: &Client,
    text: &str,
    limit: usize,
) -> anyhow::Result<Outcome> {
    let found = client.search_sessions(text, limit).await?;
    for hit in &found.sessions {
        let line = if app.options.json {
            serde_json::to_string(hit)?
        } else {
            described(hit)
        };
        app.terminal.print(&(line + "\n"))?;
    }
    if !app.options.json {
        if found.sessions.is_empty() {
            app.terminal.notice(&format!("no session has `{text}`"));
        } else if !found.complete {
            app.terminal
                .notice("there may be more; --limit NUMBER shows more sessions");
        }
    }
    // As grep does: nothing found is no error of the search, but scripts can tell.
    Ok(if found.sessions.is_empty() {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

fn described(hit: &SessionMatch) -> String {
    let session = &hit.session;
    let head = format!(
        "{}  {}  {}",
        session.session_id,
        session.modified_time,
        named(session)
    );
    match &hit.message {
        None => head,
        Some(message) => {
            let who = if message.by_user { "you" } else { "model" };
            let excerpt = one_line(&message.excerpt, EXCERPT_CHARS);
            format!("{head}\n    {who}: {excerpt}")
        }
    }
}
