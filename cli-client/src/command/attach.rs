//! `loop attach`: joins a session, shows its events and answers its questions. Leaving does not
//! affect the session.

use loopd_sdk::SessionConfig;

use crate::answer::with_handlers;
use crate::app::{App, find_session};
use crate::outcome::Outcome;
use crate::render::{Renderer, UserMessages};
use crate::terminal::Style;

pub(crate) async fn run(app: &App, id: &str) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let id = find_session(&client, id).await?;
    let config = if app.terminal.can_ask() {
        with_handlers(SessionConfig::new(), &app.terminal, &app.denied_unasked)
    } else {
        SessionConfig::new().leave_permissions_open()
    };
    // The stored events are shown before any question about them.
    let held = app.terminal.hold_questions().await;
    let session = client.watch(id, config).await?;
    let (past, mut events) = session.past_and_events().await?;
    let left = format!("attached to {}; leave it with Ctrl-C", session.id());
    app.terminal.notice(&app.terminal.styled(Style::Dim, &left));
    let mut renderer = Renderer::new(&app.terminal, app.options.json, UserMessages::Shown);
    for event in past {
        renderer.show(&event)?;
    }
    drop(held);
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
