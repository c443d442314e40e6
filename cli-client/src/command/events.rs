//! `loop events`: what happened in a session, and with --follow what happens. Answers nothing.

use loopd_sdk::{Event, SessionConfig};

use crate::open::{Desk, find};
use crate::outcome::Outcome;
use crate::render;

pub(crate) async fn run(desk: &Desk, id: &str, follow: bool) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let id = find(&client, id).await?;
    // What the session asks is left to others, not refused because this one only looks.
    let config = SessionConfig::new().leave_permissions_open();
    let session = client.watch(id, config).await?;
    let (past, mut events) = session.past_and_events().await?;
    for event in past {
        show(desk, &event)?;
    }
    let mut following = follow;
    while following {
        let event = tokio::select! {
            event = events.next() => event,
            _ = tokio::signal::ctrl_c() => None,
        };
        match (event, events.end()) {
            (Some(event), _) => show(desk, &event)?,
            (None, Some(error)) => return Err(error.into()),
            (None, None) => following = false,
        }
    }
    drop(session);
    client.close().await;
    Ok(Outcome::Done)
}

fn show(desk: &Desk, event: &Event) -> anyhow::Result<()> {
    let line = if desk.options.json {
        event.to_line()?
    } else {
        render::line(event)
    };
    desk.terminal.answer(&(line + "\n"))?;
    Ok(())
}
