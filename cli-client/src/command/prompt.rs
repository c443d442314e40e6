//! `loop "…"`, `loop -p "…"` and `loop`: one message, or a conversation.

mod run_limits;

use anyhow::bail;
use loopd_sdk::{
    Body, Durable, Error, KeepsWaiting, Message, Reply, Session, StopReason, Stopped, Turn,
    TurnOutcome, Wait,
};

use crate::app::App;
use crate::outcome::Outcome;
use crate::render::{Renderer, UserMessages};
use crate::slash::{self, Said};
use crate::terminal::{Style, Typed, sanitize};

use run_limits::RunLimits;

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
    let outcome = match prompt {
        Some(prompt) => match slash::read(app, &session, &prompt).await {
            Ok(Said::Send(message)) => {
                one_turn(app, &session, message, Answers::Own(shows)).await?
            }
            Ok(Said::Done | Said::Exit) => Outcome::Done,
            Err(error) => {
                session.destroy().await?;
                return Err(error);
            }
        },
        None => converse(app, &session).await?,
    };
    if outcome == Outcome::TimedOut {
        // Who gave a time does not wait for ever.
        tokio::time::timeout(run_limits::STOPPING, session.destroy())
            .await
            .ok();
    } else if outcome != Outcome::Interrupted {
        session.destroy().await?;
    }
    let client = session.client().clone();
    drop(session);
    client.close().await;
    Ok(outcome)
}

async fn converse(app: &App, session: &Session) -> anyhow::Result<Outcome> {
    if let Some(option) = app.options.run.needs_prompt() {
        bail!(
            "{option} is for a prompt, as in loop \"…\"; in a conversation, press Ctrl-C to stop"
        );
    }
    let terminal = &app.terminal;
    let id = session.id();
    terminal.notice(&terminal.styled(
        Style::Dim,
        &format!("session {id}; end it with Ctrl-D, stop a turn with Ctrl-C, /help lists commands"),
    ));
    let mut interrupted_before = false;
    loop {
        let interrupted = match next_line(app).await {
            Typed::Line(line) if line.trim().is_empty() => false,
            Typed::Line(line) => {
                match slash::read(app, session, &line).await {
                    Ok(Said::Send(message)) => {
                        one_turn(app, session, message, Answers::All).await?;
                    }
                    Ok(Said::Done) => {}
                    Ok(Said::Exit) => return Ok(Outcome::Done),
                    Err(error) => terminal.notice(&format!("loop: {error:#}")),
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

/// Which answers a turn shows, if other clients send messages to the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Only the answer to the own message: stdout is its result.
    Own(Shows),
    All,
}

/// Sends a message and shows its turn. Ctrl-C stops the turn and keeps the session.
async fn one_turn(
    app: &App,
    session: &Session,
    message: Message,
    answers: Answers,
) -> anyhow::Result<Outcome> {
    let mut renderer = Renderer::new(&app.terminal, app.options.json, UserMessages::Hidden);
    let mut turn = session.turn(message, Wait::Session);
    let mut limits = RunLimits::default();
    if let Answers::Own(shows) = answers {
        renderer.only_answers_to(turn.message_id().clone());
        if shows == Shows::Answer {
            renderer.only_problems();
        }
        limits = RunLimits::new(&app.options.run);
    }
    let mut interrupted = false;
    let mut was_shown = false;
    loop {
        let event = tokio::select! {
            biased;
            () = app.terminal.interrupted() => {
                // A second Ctrl-C does not wait for the daemon.
                if std::mem::replace(&mut interrupted, true)
                    || !stop(app, session, &turn).await?
                {
                    return Ok(Outcome::Interrupted);
                }
                continue;
            }
            outcome = limits.over() => {
                // The daemon gets some time to stop it, and no more.
                if !limits.stops(outcome) || !stop(app, session, &turn).await? {
                    return Ok(outcome);
                }
                continue;
            }
            // The question stays open, and the session goes on without this client.
            () = app.terminal.closed() => return Ok(Outcome::Interrupted),
            event = turn.next() => event,
            // Only when no event is left: a question comes after what it is about.
            question = app.turnstile.next() => {
                renderer.end_line()?;
                question.release();
                continue;
            }
        };
        match event {
            Some(event) => {
                was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
                limits.note(&event);
                renderer.show(&event)?;
                if let Some(denied) = app.denied_unasked.denial(&event) {
                    renderer.end_line()?;
                    app.terminal.notice(&denied);
                }
                if let Body::Durable(Durable::ModeChanged(change)) = &event.body {
                    app.planning.set(change.new_mode);
                }
                if !app.terminal.can_ask() && waits_for_guard(&event.body) {
                    return give_up(app, session, &turn).await;
                }
            }
            None => break,
        }
    }
    renderer.end_turn()?;
    let finished = turn.finish();
    renderer.end_run(finished.as_ref().ok().map(answer).as_deref())?;
    if interrupted {
        let again = format!("the session is kept: loop resume {}", session.id());
        app.terminal
            .notice(&app.terminal.styled(Style::Dim, &again));
        return Ok(Outcome::Interrupted);
    }
    if let (Some(outcome), Err(_)) = (limits.stopped(), &finished) {
        app.terminal.notice(&limits.words(outcome, session.id()));
        return Ok(outcome);
    }
    outcome_of(app, finished, was_shown)
}

/// Whether an event says that a call waits for an app whose hooks guard the session.
fn waits_for_guard(body: &Body) -> bool {
    matches!(
        body,
        Body::Durable(Durable::SessionWarning(warning)) if warning.warning_type == "guard_absent"
    )
}

/// Stops a turn that waits for somebody whom nobody here can call.
async fn give_up(app: &App, session: &Session, turn: &Turn) -> anyhow::Result<Outcome> {
    stop(app, session, turn).await?;
    app.terminal.notice(&format!(
        "loop: nobody is there to wait, so the turn was stopped; to go on without the hooks of that app: \
         loop hooks lift {}",
        session.id()
    ));
    Ok(Outcome::NobodyToAsk)
}

/// Returns the answer to a message. An agent that ends with `task_complete` may have put it there.
fn answer(reply: &Reply) -> String {
    match &reply.outcome {
        TurnOutcome::Completed { summary } | TurnOutcome::Blocked { summary, .. }
            if reply.text.trim().is_empty() =>
        {
            sanitize(summary)
        }
        TurnOutcome::Answered
        | TurnOutcome::Idle
        | TurnOutcome::Completed { .. }
        | TurnOutcome::Blocked { .. }
        | TurnOutcome::Stopped { .. } => sanitize(&reply.text),
    }
}

/// Returns the outcome of a turn. `was_shown` tells whether an event has shown that it ended.
pub(super) fn outcome_of(
    app: &App,
    finished: Result<Reply, Error>,
    was_shown: bool,
) -> anyhow::Result<Outcome> {
    match finished {
        Err(Error::Aborted) if !was_shown => {
            let why = "the message left the queue before it was answered: somebody cleared it";
            app.terminal.notice(why);
            Ok(Outcome::Failed)
        }
        // An event of the turn has already shown this.
        Err(error) if error.limit_reached().is_some() => Ok(Outcome::Limit),
        Err(Error::Failed(_) | Error::Aborted) => Ok(Outcome::Failed),
        Err(error) => Err(error.into()),
        // The agent has found another way, or says itself what it needs.
        Ok(reply) if matches!(reply.outcome, TurnOutcome::Completed { .. }) => Ok(Outcome::Done),
        Ok(reply) if matches!(reply.outcome, TurnOutcome::Blocked { .. }) => Ok(Outcome::Blocked),
        Ok(_) if app.denied_unasked.happened() => Ok(Outcome::NobodyToAsk),
        // A warning of the session has said why.
        Ok(reply) if reply.incomplete.is_some() => Ok(Outcome::Limit),
        // An event of the turn has already shown this.
        Ok(reply) => Ok(match reply.outcome {
            TurnOutcome::Answered
            | TurnOutcome::Idle
            | TurnOutcome::Completed { .. }
            | TurnOutcome::Blocked { .. } => Outcome::Done,
            TurnOutcome::Stopped { reason, .. } => match reason {
                StopReason::CapReached => Outcome::Limit,
                StopReason::Rejected => Outcome::NobodyToAsk,
                StopReason::TaskComplete
                | StopReason::Blocked
                | StopReason::Aborted
                | StopReason::Error => Outcome::Failed,
            },
        }),
    }
}

/// Stops the turn of our own message, or takes the message out of the queue. A turn of another
/// client goes on; then returns `false`.
async fn stop(app: &App, session: &Session, turn: &Turn) -> anyhow::Result<bool> {
    let stopped = session.stop_message(turn.message_id(), KeepsWaiting::No);
    match stopped.await? {
        Stopped::Interrupted { .. } | Stopped::Removed => Ok(true),
        Stopped::Spared { .. } => {
            app.terminal.notice(&format!(
                "the running turn belongs to another client and goes on; to stop it: loop abort {}",
                session.id()
            ));
            Ok(false)
        }
    }
}
