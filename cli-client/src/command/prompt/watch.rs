//! Shows the work of a session until its end: the turn of a message, or what a slash command has begun.

use loopd_sdk::{
    BegunWork, Body, CompletionOutcome, Durable, Event, KeepsWaiting, Session, Stopped,
    TaskComplete, Turn, UntilIdle,
};

use super::Shows;
use super::ending::{answer, command_outcome, outcome_of};
use super::run_limits::RunLimits;
use crate::app::App;
use crate::outcome::Outcome;
use crate::render::{OwnRun, Renderer, UserMessages};
use crate::terminal::{Style, sanitize};

/// Which answers are shown, if other clients send messages to the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Only the answer to what was said here: stdout is its result.
    Own(Shows),
    All,
}

/// The work that is shown until its end.
pub(crate) enum Work {
    Message(Turn),
    /// A command that has run, and what goes on because of it.
    Command {
        begun: Option<BegunWork>,
        until_idle: UntilIdle,
    },
}

impl Work {
    pub(crate) async fn next(&mut self) -> Option<Event> {
        match self {
            Self::Message(turn) => turn.next().await,
            Self::Command { until_idle, .. } => until_idle.next().await,
        }
    }

    /// Prepares a renderer for it.
    fn renderer(&self, app: &App, answers: Answers) -> Renderer {
        let mut renderer = Renderer::new(&app.terminal, app.options.json, UserMessages::Hidden);
        let Answers::Own(shows) = answers else {
            return renderer;
        };
        match self {
            Self::Message(turn) => renderer.only_answers_to(turn.message_id().clone()),
            Self::Command { .. } => renderer.only_last_answer(),
        }
        if shows == Shows::Answer {
            renderer.only_problems();
        }
        renderer
    }

    /// Stops the turn of our own message, or takes the message out of the queue, or stops what the
    /// command has begun. A turn of another client goes on; then returns `false`.
    async fn stop(&self, app: &App, session: &Session) -> anyhow::Result<bool> {
        let turn = match self {
            Self::Message(turn) => turn,
            Self::Command { begun, .. } => {
                match begun {
                    Some(BegunWork::Fleet) => drop(session.stop_fleet().await?),
                    Some(BegunWork::Agent) | None => {}
                }
                session.abort().await?;
                return Ok(true);
            }
        };
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
}

/// Shows the work until its end. Ctrl-C stops it and keeps the session.
pub(crate) async fn watch(
    app: &App,
    session: &Session,
    mut work: Work,
    answers: Answers,
) -> anyhow::Result<Outcome> {
    let mut renderer = work.renderer(app, answers);
    let mut limits = match answers {
        Answers::Own(_) => RunLimits::new(&app.options.run),
        Answers::All => RunLimits::default(),
    };
    // Whose run an event belongs to, where other clients send messages to the same session.
    let mut own = match (&work, answers) {
        (Work::Message(turn), Answers::Own(_)) => Some(OwnRun::of(turn.message_id().clone())),
        (Work::Message(_) | Work::Command { .. }, _) => None,
    };
    let mut task = None;
    let mut interrupted = false;
    let mut was_shown = false;
    loop {
        let event = tokio::select! {
            biased;
            () = app.terminal.interrupted() => {
                // A second Ctrl-C does not wait for the daemon.
                if std::mem::replace(&mut interrupted, true) || !work.stop(app, session).await? {
                    return Ok(Outcome::Interrupted);
                }
                continue;
            }
            outcome = limits.over() => {
                // The daemon gets some time to stop it, and no more.
                if !limits.stops(outcome) || !work.stop(app, session).await? {
                    return Ok(outcome);
                }
                continue;
            }
            // The question stays open, and the session goes on without this client.
            () = app.terminal.closed() => return Ok(Outcome::Interrupted),
            event = work.next() => event,
            // Only when no event is left: a question comes after what it is about.
            question = app.turnstile.next() => {
                renderer.end_line()?;
                question.release();
                continue;
            }
        };
        let Some(event) = event else { break };
        was_shown |= matches!(event.body.kind(), "abort" | "session.idle");
        limits.note(&event);
        renderer.show(&event)?;
        if !own.as_mut().is_none_or(|own| own.takes(&event)) {
            app.denied_unasked.forget(&event);
        } else if let Some(denied) = app.denied_unasked.denial(&event) {
            renderer.end_line()?;
            app.terminal.notice(&denied);
        }
        if let (Body::Durable(Durable::TaskComplete(said)), None) =
            (&event.body, &event.head.agent_id)
        {
            task = Some(said.clone());
        }
        if let Body::Durable(Durable::ModeChanged(change)) = &event.body {
            app.planning.set(change.new_mode);
        }
        if !app.terminal.can_ask() && waits_for_guard(&event.body) {
            return give_up(app, session, &work).await;
        }
    }
    renderer.end_turn()?;
    let (failed, outcome) = match work {
        Work::Message(turn) => {
            let finished = turn.finish();
            let answer = finished.as_ref().ok().map(answer);
            renderer.end_run(answer.as_deref())?;
            if answer.is_some_and(|answer| answer.trim().is_empty()) {
                app.terminal
                    .notice("loop: the agent ended without an answer");
            }
            (finished.is_err(), outcome_of(app, finished, was_shown))
        }
        Work::Command { begun, until_idle } => {
            let finished = until_idle.finish();
            let failed = finished.is_err() || limits.stopped().is_some() || interrupted;
            if failed {
                renderer.end_run(None)?;
            } else {
                let task = task.as_ref().filter(|_| begun.is_some());
                let summary = task.and_then(|task| task.summary.as_deref());
                renderer.end_work(summary.map(sanitize).as_deref())?;
            }
            let outcome = command_outcome(app, session, begun, finished).await;
            let is_blocked = |task: &TaskComplete| task.outcome == Some(CompletionOutcome::Blocked);
            let outcome = match outcome {
                Ok(Outcome::Done) if begun.is_some() && task.as_ref().is_some_and(is_blocked) => {
                    Ok(Outcome::Blocked)
                }
                outcome => outcome,
            };
            (failed, outcome)
        }
    };
    if interrupted {
        let again = format!("the session is kept: loop resume {}", session.id());
        app.terminal
            .notice(&app.terminal.styled(Style::Dim, &again));
        return Ok(Outcome::Interrupted);
    }
    if let (Some(outcome), true) = (limits.stopped(), failed) {
        app.terminal.notice(&limits.words(outcome, session.id()));
        return Ok(outcome);
    }
    outcome
}

/// Whether an event says that a call waits for an app whose hooks guard the session.
fn waits_for_guard(body: &Body) -> bool {
    matches!(
        body,
        Body::Durable(Durable::SessionWarning(warning)) if warning.warning_type == "guard_absent"
    )
}

/// Stops work that waits for somebody whom nobody here can call.
async fn give_up(app: &App, session: &Session, work: &Work) -> anyhow::Result<Outcome> {
    work.stop(app, session).await?;
    app.terminal.notice(&format!(
        "loop: nobody is there to wait, so the turn was stopped; to go on without the hooks of that app: \
         loop hooks lift {}",
        session.id()
    ));
    Ok(Outcome::NobodyToAsk)
}
