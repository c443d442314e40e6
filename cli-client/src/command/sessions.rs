//! `loop sessions`: the stored sessions.

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How many characters of a name are shown.
const NAME_CHARS: usize = 60;

pub(crate) async fn run(app: &App) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let sessions = client.sessions().await?;
    let in_memory = client.daemon_status().await?.sessions;
    for session in &sessions {
        let line = if app.options.json {
            serde_json::to_string(session)?
        } else {
            let named = session.name.as_deref().or(session.summary.as_deref());
            let name = named.unwrap_or("(no message yet)");
            let name: String = sanitize(name)
                .replace('\n', " ")
                .chars()
                .take(NAME_CHARS)
                .collect();
            let activity = in_memory
                .iter()
                .find(|live| live.session_id == session.session_id)
                .map_or_else(
                    || "stored".to_owned(),
                    |live| format!("{:?}", live.activity).to_lowercase(),
                );
            let cwd = session.context.as_ref().map_or("", |it| it.cwd.as_str());
            format!(
                "{}  {}  {activity:<7}  {name}  ({})",
                session.session_id,
                session.modified_time,
                sanitize(cwd)
            )
        };
        app.terminal.print(&(line + "\n"))?;
    }
    if sessions.is_empty() && !app.options.json {
        app.terminal
            .notice("no sessions yet; begin one with loop \"…\"");
    }
    client.close().await;
    Ok(Outcome::Done)
}
