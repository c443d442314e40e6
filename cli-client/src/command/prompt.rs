//! `loop "…"` and `loop`: one message, or a conversation.

use loopd_sdk::{Error, Session, Wait};

use crate::app::App;
use crate::outcome::Outcome;
use crate::render::{Renderer, UserMessages};
use crate::terminal::Style;

pub(crate) async fn run(
    app: &App,
    prompt: Option<String>,
    resume_last: bool,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = if resume_last {
        let last = app.last_here(&client).await?;
        app.resume(&client, last).await?
    } else {
        app.create(&client).await?
    };
    talk(app, session, prompt).await
}

/// Sends the prompt, or else every line that is typed, and then leaves the session.
pub(super) async fn talk(
    app: &App,
    session: Session,
    prompt: Option<String>,
) -> anyhow::Result<Outcome> {
    let outcome = match prompt {
        Some(prompt) => one_turn(app, &session, prompt).await?,
        None => converse(app, &session).await?,
    };
    if outcome != Outcome::Interrupted {
        session.destroy().await?;
    }
    let client = session.client().clone();
    drop(session);
    client.close().await;
    Ok(outcome)
}

async fn converse(app: &App, session: &Session) -> anyhow::Result<Outcome> {
    let terminal = &app.terminal;
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
            one_turn(app, session, line).await?;
        }
    }
}

/// Sends a message and shows its turn. Ctrl-C stops the turn and keeps the session.
async fn one_turn(app: &App, session: &Session, prompt: String) -> anyhow::Result<Outcome> {
    let mut renderer = Renderer::new(&app.terminal, app.options.json, UserMessages::Hidden);
    let mut turn = session.turn(prompt, Wait::Session);
    let mut interrupted = false;
    let mut was_shown = false;
    loop {
        let event = tokio::select! {
            event = turn.next() => event,
            _ = tokio::signal::ctrl_c() => {
                // A second Ctrl-C does not wait for the daemon.
                if std::mem::replace(&mut interrupted, true) {
                    return Ok(Outcome::Interrupted);
                }
                session.abort().await?;
                continue;
            }
        };
        match event {
            Some(event) => {
                was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
                renderer.show(&event)?;
            }
            None => break,
        }
    }
    let finished = turn.finish();
    if interrupted {
        let again = format!("the session is kept: loop resume {}", session.id());
        app.terminal
            .notice(&app.terminal.styled(Style::Dim, &again));
        return Ok(Outcome::Interrupted);
    }
    match finished {
        Err(Error::Aborted) if !was_shown => {
            let why = "the message left the queue before it was answered: somebody cleared it";
            app.terminal.notice(why);
            Ok(Outcome::Failed)
        }
        // An event of the turn has already shown this.
        Err(Error::Failed(_) | Error::Aborted) => Ok(Outcome::Failed),
        Err(error) => Err(error.into()),
        Ok(_) if app.denied_unasked.happened() => Ok(Outcome::NobodyToAsk),
        Ok(_) => Ok(Outcome::Done),
    }
}
