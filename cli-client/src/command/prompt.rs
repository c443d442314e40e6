//! `loop "…"`, `loop -p "…"` and `loop`: one message, or a conversation.

mod background;
mod ending;
mod leave;
mod run_limits;
mod watch;
mod work;

use std::io::ErrorKind;

use loopd_sdk::{Body, Durable, Error, Events, LimitKind, Mode, Session, Wait};

use crate::app::App;
use crate::chat::{self, Left};
use crate::outcome::{Outcome, WrongUsage};
use crate::slash::{self, CommandStopped, Said};
use crate::terminal::{Style, Typed};

pub(super) use ending::{command_outcome, outcome_of};
pub(super) use work::Work;

use leave::leave;
use watch::{Answers, watch};

/// What of a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Everything,
    /// The answer at the end, and what went wrong.
    Answer,
}

pub(crate) async fn run(
    app: &App,
    prompt: Option<String>,
    resume_last: bool,
    shows: Shows,
) -> anyhow::Result<Outcome> {
    refuse_limits(app, prompt.as_deref())?;
    if !resume_last {
        // A new session is in the mode that the command line names.
        needs_autopilot(app, Mode::Interactive)?;
    }
    let client = app.connect().await?;
    let session = if resume_last {
        let last = app.last_here(&client).await?;
        app.resume(&client, last).await?
    } else {
        app.create(&client).await?
    };
    talk(app, session, prompt, shows).await
}

/// Sends the prompt, or else every line that is typed, and then leaves the session.
pub(super) async fn talk(
    app: &App,
    session: Session,
    prompt: Option<String>,
    shows: Shows,
) -> anyhow::Result<Outcome> {
    if app.options.run.max_continues.is_some() {
        let mode = session.autopilot().await?.mode;
        if let Err(error) = needs_autopilot(app, mode) {
            session.destroy().await?;
            return Err(error);
        }
    }
    let outcome = match prompt {
        Some(prompt) => match say(app, &session, &prompt, Answers::Own(shows)).await {
            Ok(outcome) => outcome.unwrap_or(Outcome::Done),
            Err(NotSaid::Command(error)) => {
                let Some(stopped) = error.downcast_ref::<CommandStopped>() else {
                    session.destroy().await?;
                    return Err(error);
                };
                app.terminal.notice(&format!("loop: {stopped}"));
                stopped.outcome
            }
            Err(NotSaid::Run(error)) if is_unread(&error) => {
                app.terminal.notice(&format!(
                    "loop: nobody reads the output any more, so the run was stopped; the session is kept: loop resume {}",
                    session.id()
                ));
                Outcome::Failed
            }
            Err(NotSaid::Run(error)) => {
                // Without a reader nobody learns of what goes on.
                if error.is::<std::io::Error>() {
                    leave(app, &session, Outcome::Failed).await?;
                }
                return Err(error);
            }
        },
        None if app.terminal.can_draw() && !app.options.json => {
            return converse_drawing(app, session).await;
        }
        None => converse(app, &session).await?,
    };
    leave(app, &session, outcome).await?;
    let client = session.client().clone();
    drop(session);
    client.close().await;
    Ok(outcome)
}

/// Returns whether a run failed because the reader of stdout is gone.
fn is_unread(error: &anyhow::Error) -> bool {
    let failure = error.downcast_ref::<std::io::Error>();
    failure.is_some_and(|failure| failure.kind() == ErrorKind::BrokenPipe)
}

/// Why a line came to nothing.
enum NotSaid {
    /// It is a command, which failed.
    Command(anyhow::Error),
    /// Its run could not be watched to its end.
    Run(anyhow::Error),
}

/// Does what a line says, and shows the work that it begins until its end. Returns `None` if the line
/// ends the conversation.
async fn say(
    app: &App,
    session: &Session,
    line: &str,
    answers: Answers,
) -> Result<Option<Outcome>, NotSaid> {
    // A command may begin work before it has ended. A message gets a stream of its own.
    let events = slash::is_command(line).then(|| session.events());
    let limits = match answers {
        Answers::Own(_) => run_limits::of_run(&app.options.run),
        Answers::All => None,
    };
    let said = slash::read(app, session, line, limits).await;
    let said = match (said, events) {
        (Ok(said), events) => (said, events),
        (Err(error), None) => return Err(NotSaid::Command(error)),
        (Err(error), Some(events)) => {
            let failure = error.downcast_ref::<Error>();
            let limit = failure.filter(|failure| failure.is_limit());
            let past = past(app, events).await;
            let outcome = limit.map(|_| Outcome::Limit).or(past);
            return Err(NotSaid::Command(match outcome {
                // Who stopped it knows why it ended.
                Some(outcome) if !error.is::<CommandStopped>() => CommandStopped {
                    outcome,
                    text: format!("{error:#}"),
                }
                .into(),
                Some(_) | None => error,
            }));
        }
    };
    let work = match said {
        (Said::Exit, _) => return Ok(None),
        (Said::Over(outcome), None) => return Ok(Some(outcome)),
        (Said::Over(outcome), Some(events)) => {
            let past = past(app, events).await;
            return Ok(Some(match outcome {
                Outcome::Done => past.unwrap_or(outcome),
                _ => outcome,
            }));
        }
        (Said::Send(message), _) => {
            let message = match answers {
                Answers::Own(_) => run_limits::of_message(&app.options.run, message),
                Answers::All => message,
            };
            let turn = session.turn(message, Wait::Session);
            // Who asks for the autopilot does not mean a paused one. The message goes first, so that
            // nothing goes on with an earlier task.
            if app.options.asks_for_autopilot() {
                let went_on = session.continue_autopilot().await;
                went_on.map_err(|error| NotSaid::Command(error.into()))?;
            }
            Work::Message(turn)
        }
        (Said::Done(begun), Some(events)) => Work::Command {
            begun,
            until_idle: session.until_idle(events),
        },
        (Said::Done(_), None) => return Ok(Some(Outcome::Done)),
    };
    let outcome = watch(app, session, work, answers).await;
    outcome.map(Some).map_err(NotSaid::Run)
}

/// Looks at the events of a command that has ended: tells what was denied, and returns what that means
/// for the outcome.
async fn past(app: &App, mut events: Events) -> Option<Outcome> {
    let mut outcome = None;
    while events.waiting() > 0 {
        let event = events.next().await?;
        app.denied_unasked.note(&event);
        if let Some(denied) = app.denied_unasked.denial(&event) {
            app.terminal.notice(&denied);
            outcome.get_or_insert(Outcome::NobodyToAsk);
        }
        if let Body::Durable(Durable::SessionError(failure)) = &event.body {
            let limit = LimitKind::of_error(&failure.error_type, failure.error_code.as_deref());
            if limit.is_some() {
                outcome = Some(Outcome::Limit);
            }
        }
    }
    outcome
}

/// Refuses options of the autopilot where the session is in another mode: nobody would keep them.
fn needs_autopilot(app: &App, mode: Mode) -> anyhow::Result<()> {
    let is_on = app.options.asks_for_autopilot() || mode == Mode::Autopilot;
    if app.options.run.max_continues.is_some() && !is_on {
        return Err(WrongUsage::error(
            "--max-continues is for the autopilot, which is off; add --autopilot",
        ));
    }
    Ok(())
}

/// Holds a conversation that draws on the screen. Work that is going on when it is left goes on.
async fn converse_drawing(app: &App, session: Session) -> anyhow::Result<Outcome> {
    let (past, events) = session.past_and_events().await?;
    let left = chat::run(app, &session, &past, events).await?;
    let (id, terminal) = (session.id(), &app.terminal);
    let told = match left {
        Left::Idle => {
            session.destroy().await?;
            format!("the session is kept: loop resume {id}")
        }
        Left::AtWork => format!("the session goes on; to come back: loop attach {id}"),
        Left::Asked => format!("a question waits for an answer; to give it: loop attach {id}"),
    };
    terminal.notice(&terminal.styled(Style::Dim, &told));
    let client = session.client().clone();
    drop(session);
    client.close().await;
    Ok(match left {
        Left::Idle | Left::AtWork => Outcome::Done,
        Left::Asked => Outcome::NobodyToAsk,
    })
}

/// Refuses options that only hold for one message, where there is none.
pub(super) fn refuse_limits(app: &App, prompt: Option<&str>) -> anyhow::Result<()> {
    match app.options.run.needs_prompt() {
        Some(option) if prompt.is_none() => Err(WrongUsage::error(format!(
            "{option} is for a prompt, as in loop \"…\"; in a conversation, press Ctrl-C to stop"
        ))),
        Some(_) | None => Ok(()),
    }
}

async fn converse(app: &App, session: &Session) -> anyhow::Result<Outcome> {
    let terminal = &app.terminal;
    let id = session.id();
    terminal.notice(&terminal.styled(
        Style::Dim,
        &format!("session {id}; end it with Ctrl-D, stop a turn with Ctrl-C, /help lists commands"),
    ));
    let _completes = terminal.completes_by(session);
    let _keeps = terminal.keeps_typed();
    let mut interrupted_before = false;
    loop {
        let interrupted = match next_line(app).await {
            Typed::Line(line) if line.trim().is_empty() => false,
            Typed::Line(line) => {
                match say(app, session, &line, Answers::All).await {
                    // A question waits, and this is no answer to it.
                    Ok(Some(outcome)) if terminal.is_left() => return Ok(outcome),
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(Outcome::Done),
                    Err(NotSaid::Command(error)) => terminal.notice(&format!("loop: {error:#}")),
                    Err(NotSaid::Run(error)) => return Err(error),
                }
                false
            }
            Typed::Interrupted if !interrupted_before => {
                terminal.notice("press Ctrl-C again or Ctrl-D to leave; the session is kept");
                true
            }
            Typed::Interrupted | Typed::End => {
                terminal.notice("");
                return Ok(Outcome::Done);
            }
        };
        interrupted_before = interrupted;
    }
}

/// Reads a line of the conversation, and lets questions of the session come before it.
async fn next_line(app: &App) -> Typed {
    let prompt = app.terminal.styled(Style::Bold, "> ");
    let line = app.terminal.line(&prompt);
    tokio::pin!(line);
    loop {
        tokio::select! {
            typed = &mut line => return typed,
            question = app.turnstile.next() => question.release(),
            () = app.terminal.interrupted() => return Typed::Interrupted,
        }
    }
}
