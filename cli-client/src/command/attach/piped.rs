//! `loop attach` with a pipe or a file as stdin: its whole text is one message, as for `loop` itself.
//! The command ends when the session has answered it and is idle.

use anyhow::{Context as _, bail};
use loopd_sdk::{Body, Durable, Ephemeral, Event, Events, Session, Wait};

use crate::answer::describe;
use crate::app::App;
use crate::command::prompt::{Work, command_outcome, outcome_of};
use crate::outcome::{Outcome, WrongUsage};
use crate::render::Renderer;
use crate::slash::{self, Said};
use crate::stdin;

/// Shows events while stdin is read, sends its text, and shows events until the answer is complete.
pub(super) async fn run(
    app: &App,
    session: &Session,
    mut events: Events,
    mut renderer: Renderer,
) -> anyhow::Result<Outcome> {
    // If this future ends first, the thread that reads ends with the process.
    let mut reading = tokio::task::spawn_blocking(stdin::read);
    let text = loop {
        tokio::select! {
            biased;
            () = app.terminal.interrupted() => return Ok(Outcome::Done),
            event = events.next() => match (event, events.end()) {
                (Some(event), _) => show(app, session, &mut renderer, &event)?,
                (None, Some(error)) => return Err(error.into()),
                (None, None) => bail!("the session was closed before stdin ended; nothing was sent"),
            },
            text = &mut reading => break text.context("stdin cannot be read")??,
        }
    };
    if text.trim().is_empty() {
        return Err(WrongUsage::error(
            "stdin brought no message; to send none and only watch, use </dev/null",
        ));
    }
    let mut work = match slash::read(app, session, &text, None).await? {
        Said::Send(message) => {
            let turn = session.turn(message, Wait::Session);
            renderer.hide_message(turn.message_id().clone());
            Work::Message(turn)
        }
        Said::Over(outcome) => return Ok(outcome),
        Said::Done(None) | Said::Exit => return Ok(Outcome::Done),
        Said::Done(begun) => Work::Command {
            begun,
            until_idle: session.until_idle(session.events()),
        },
    };
    let mut was_shown = false;
    let mut show_next = |event: &Event| {
        was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
        show(app, session, &mut renderer, event)
    };
    loop {
        tokio::select! {
            biased;
            () = app.terminal.interrupted() => return Ok(Outcome::Interrupted),
            event = events.next() => match event {
                Some(event) => show_next(&event)?,
                None => break,
            },
            // The work has the same events; this only waits for its end.
            () = end_of(&mut work) => break,
        }
    }
    while events.waiting() > 0
        && let Some(event) = events.next().await
    {
        show_next(&event)?;
    }
    match work {
        Work::Message(turn) => outcome_of(app, turn.finish(), was_shown),
        Work::Command { begun, until_idle } => {
            command_outcome(app, session, begun, until_idle.finish()).await
        }
        // Nothing here begins such a wait.
        Work::Background(_) => Ok(Outcome::Done),
    }
}

async fn end_of(work: &mut Work) {
    while work.next().await.is_some() {}
}

/// Shows an event, and says where a question can be answered: nobody can be asked here.
fn show(
    app: &App,
    session: &Session,
    renderer: &mut Renderer,
    event: &Event,
) -> anyhow::Result<()> {
    renderer.show(event)?;
    let what = match &event.body {
        Body::Durable(Durable::PermissionRequested(asked)) => {
            format!("a permission: {}", describe(&asked.permission_request))
        }
        Body::Ephemeral(Ephemeral::UserInputRequested(_)) => "an answer".to_owned(),
        Body::Ephemeral(Ephemeral::ExitPlanModeRequested(_)) => "an answer to its plan".to_owned(),
        _ => return Ok(()),
    };
    renderer.end_line()?;
    app.terminal.notice(&format!(
        "loop: the session waits for {what}; give it on a terminal with loop attach {}",
        session.id()
    ));
    Ok(())
}
