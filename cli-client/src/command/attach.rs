//! `loop attach`: joins a session, shows its events, answers its questions and sends what is typed,
//! or what is piped in. Leaving does not affect the session.

mod piped;

use loopd_sdk::proto::method::ModelSwitchTo;
use loopd_sdk::proto::params::model::SwitchParams;
use loopd_sdk::{Session, SessionConfig};

use crate::answer::with_handlers;
use crate::app::{App, find_session};
use crate::chat::Left;
use crate::outcome::Outcome;
use crate::render::{Renderer, UserMessages};
use crate::slash::{self, Said};
use crate::stdin;
use crate::terminal::{Style, Typed};

pub(crate) async fn run(app: &App, id: &str) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let id = find_session(&client, id).await?;
    let terminal = &app.terminal;
    let config = if terminal.can_ask() {
        with_handlers(
            SessionConfig::new().client_name("loop"),
            terminal,
            &app.turnstile,
            &app.denied_unasked,
            &app.planning,
        )
    } else {
        SessionConfig::new()
            .client_name("loop")
            .leave_permissions_open()
    };
    let session = client.watch(id, config).await?;
    app.apply_options(&session).await?;
    if let Some(model) = &app.options.model {
        let params = SwitchParams {
            session_id: session.id().clone(),
            model_id: model.clone(),
            reasoning_effort: None,
            reasoning_summary: None,
            context_tier: None,
            model_capabilities: None,
        };
        session.call::<ModelSwitchTo>(&params).await?;
    }
    let (past, mut events) = session.past_and_events().await?;
    app.set_mode(&session).await?;
    if terminal.can_draw() && !app.options.json {
        let left = crate::chat::run(app, &session, &past, events).await?;
        let again = format!("left {0}; to come back: loop attach {0}", session.id());
        terminal.notice(&terminal.styled(Style::Dim, &again));
        drop(session);
        client.close().await;
        return Ok(match left {
            Left::Idle | Left::AtWork => Outcome::Done,
            Left::Asked => Outcome::NobodyToAsk,
        });
    }
    let left = if terminal.can_ask() {
        "what you type is sent to it; leave it with Ctrl-C or Ctrl-D"
    } else if stdin::can_bring_text() {
        "what stdin brings is sent to it when stdin ends; leave it with Ctrl-C"
    } else {
        "nothing that is typed is read, because stdin and stderr are not both a terminal; leave it with Ctrl-C"
    };
    let left = format!("attached to {}; {left}", session.id());
    terminal.notice(&terminal.styled(Style::Dim, &left));
    let mut renderer = Renderer::new(
        terminal,
        app.options.json,
        UserMessages::Shown,
        session.id(),
    );
    for event in past {
        renderer.show(&event)?;
    }
    // What comes next belongs to no turn that was aborted before.
    renderer.end_turn()?;
    if !terminal.can_ask() && stdin::can_bring_text() {
        let outcome = piped::run(app, &session, events, renderer).await;
        drop(session);
        client.close().await;
        return outcome;
    }
    let _completes = terminal.completes_by(&session);
    let prompt = terminal.styled(Style::Bold, "> ");
    let line = terminal.line(&prompt);
    tokio::pin!(line);
    loop {
        tokio::select! {
            biased;
            () = terminal.interrupted() => break,
            event = events.next() => match (event, events.end()) {
                (Some(event), _) => renderer.show(&event)?,
                (None, Some(error)) => return Err(error.into()),
                (None, None) => break,
            },
            question = app.turnstile.next() => {
                renderer.end_line()?;
                question.release();
            }
            typed = &mut line, if terminal.can_ask() => {
                let Typed::Line(text) = typed else { break };
                if !text.trim().is_empty() && !say(app, &session, &mut renderer, &text).await {
                    break;
                }
                line.set(terminal.line(&prompt));
            }
        }
    }
    drop(session);
    client.close().await;
    Ok(Outcome::Done)
}

/// Does what a typed line says; returns `false` if it says to leave. What fails is told, and the
/// session stays attached.
async fn say(app: &App, session: &Session, renderer: &mut Renderer, text: &str) -> bool {
    let said = match slash::read(app, session, text, None).await {
        Ok(Said::Exit) => return false,
        // What it has begun is shown like everything else.
        Ok(Said::Done(_) | Said::Over(_)) => Ok(()),
        Ok(Said::Send(message)) => match session.send(message).await {
            Ok(id) => {
                renderer.hide_message(id);
                Ok(())
            }
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error),
    };
    if let Err(error) = said {
        app.terminal.notice(&format!("loop: {error:#}"));
    }
    true
}
