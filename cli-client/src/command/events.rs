//! `loop events`: prints the stored events of a session, and with --follow the new ones. Answers
//! no questions.

use loopd_sdk::{Event, SessionConfig};

use crate::app::{App, find_session};
use crate::outcome::Outcome;
use crate::render;

pub(crate) async fn run(app: &App, id: &str, follow: bool) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let id = find_session(&client, id).await?;
    // Permission requests are left to other clients, not denied because this client cannot answer.
    let config = SessionConfig::new().leave_permissions_open();
    let session = client.watch(id, config).await?;
    let (past, mut events) = session.past_and_events().await?;
    for event in past {
        show(app, &event)?;
    }
    let mut following = follow;
    while following {
        let event = tokio::select! {
            event = events.next() => event,
            _ = tokio::signal::ctrl_c() => None,
        };
        match (event, events.end()) {
            (Some(event), _) => show(app, &event)?,
            (None, Some(error)) => return Err(error.into()),
            (None, None) => following = false,
        }
    }
    drop(session);
    client.close().await;
    Ok(Outcome::Done)
}

fn show(app: &App, event: &Event) -> anyhow::Result<()> {
    let line = if app.options.json {
        event.to_line()?
    } else {
        render::line(event)
    };
    app.terminal.print(&(line + "\n"))?;
    Ok(())
}
