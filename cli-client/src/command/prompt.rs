//! `loop "…"` and `loop`: one message, or a conversation.

use loopd_sdk::{Error, Session, Wait};

use crate::open::Desk;
use crate::outcome::Outcome;
use crate::render::{Renderer, Users};
use crate::terminal::Style;

pub(crate) async fn run(
    desk: &Desk,
    prompt: Option<String>,
    resume_last: bool,
) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let session = if resume_last {
        let last = desk.last_here(&client).await?;
        desk.resume(&client, last).await?
    } else {
        desk.create(&client).await?
    };
    talk(desk, session, prompt).await
}

/// Sends the message, or every line that is typed; says goodbye to the session in the end.
pub(super) async fn talk(
    desk: &Desk,
    session: Session,
    prompt: Option<String>,
) -> anyhow::Result<Outcome> {
    let outcome = match prompt {
        Some(prompt) => one_turn(desk, &session, prompt).await?,
        None => converse(desk, &session).await?,
    };
    if outcome != Outcome::Interrupted {
        session.destroy().await?;
    }
    let client = session.client().clone();
    drop(session);
    client.close().await;
    Ok(outcome)
}

async fn converse(desk: &Desk, session: &Session) -> anyhow::Result<Outcome> {
    let terminal = &desk.terminal;
    let id = session.id();
    terminal.notice(&terminal.styled(
        Style::Dim,
        &format!("session {id}; end it with Ctrl-D, stop a turn with Ctrl-C"),
    ));
    let prompt = terminal.styled(Style::Bold, "> ");
    loop {
        let line = tokio::select! {
            line = terminal.ask(&prompt) => line,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else {
            terminal.notice("");
            return Ok(Outcome::Done);
        };
        if !line.trim().is_empty() {
            one_turn(desk, session, line).await?;
        }
    }
}

/// Sends a message and shows what comes of it; Ctrl-C stops the turn and keeps the session.
async fn one_turn(desk: &Desk, session: &Session, prompt: String) -> anyhow::Result<Outcome> {
    let mut renderer = Renderer::new(&desk.terminal, desk.options.json, Users::Hidden);
    let mut turn = session.turn(prompt, Wait::Session);
    let mut interrupted = false;
    let mut was_told = false;
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            _ = tokio::signal::ctrl_c() => {
                // Whoever insists does not want to wait for the daemon.
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Outcome::Interrupted);
                }
                session.abort().await?;
                continue;
            }
        };
        match event {
            Some(event) => {
                was_told |= matches!(event.body.kind(), "abort" | "session.idle");
                renderer.show(&event)?;
            }
            None => break,
        }
    }
    let finished = turn.finish();
    if interrupted {
        let again = format!("the session is kept: loop resume {}", session.id());
        desk.terminal
            .notice(&desk.terminal.styled(Style::Dim, &again));
        return Ok(Outcome::Interrupted);
    }
    match finished {
        Err(Error::Aborted) if !was_told => {
            let why = "the message left the queue before it was answered: somebody cleared it";
            desk.terminal.notice(why);
            Ok(Outcome::Failed)
        }
        // Its own event has said so already.
        Err(Error::Failed(_) | Error::Aborted) => Ok(Outcome::Failed),
        Err(error) => Err(error.into()),
        Ok(_) if desk.unasked.happened() => Ok(Outcome::NobodyToAsk),
        Ok(_) => Ok(Outcome::Done),
    }
}
