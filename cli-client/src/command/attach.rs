//! `loop attach`: joins a session, shows it, and answers what it asks. Leaving changes nothing.

use loopd_sdk::SessionConfig;

use crate::answer::answering;
use crate::open::{Desk, find};
use crate::outcome::Outcome;
use crate::render::{Renderer, Users};
use crate::terminal::Style;

pub(crate) async fn run(desk: &Desk, id: &str) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let id = find(&client, id).await?;
    let config = if desk.terminal.can_ask() {
        answering(SessionConfig::new(), &desk.terminal, &desk.unasked)
    } else {
        SessionConfig::new().leave_permissions_open()
    };
    // What happened is shown before anything is asked about it.
    let quiet = desk.terminal.quiet().await;
    let session = client.watch(id, config).await?;
    let (past, mut events) = session.past_and_events().await?;
    let left = format!("attached to {}; leave it with Ctrl-C", session.id());
    desk.terminal
        .notice(&desk.terminal.styled(Style::Dim, &left));
    let mut renderer = Renderer::new(&desk.terminal, desk.options.json, Users::Shown);
    for event in past {
        renderer.show(&event)?;
    }
    drop(quiet);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = tokio::signal::ctrl_c() => break,
        };
        match (event, events.end()) {
            (Some(event), _) => renderer.show(&event)?,
            (None, Some(error)) => return Err(error.into()),
            (None, None) => break,
        }
    }
    drop(session);
    client.close().await;
    Ok(Outcome::Done)
}
