//! How a run came to its end: its answer, and its exit code.

use loopd_sdk::{
    BegunWork, Error, FleetEnd, LimitKind, Mode, Reply, Session, StopReason, TurnOutcome,
};

use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// Returns the answer to a message. An agent that ends with `task_complete` may have put it there.
/// What it said beside that comes first.
pub(super) fn answer(reply: &Reply) -> String {
    match &reply.outcome {
        TurnOutcome::Completed { summary } | TurnOutcome::Blocked { summary, .. }
            if reply.text.trim().is_empty() =>
        {
            sanitize(summary)
        }
        TurnOutcome::Completed { summary } | TurnOutcome::Blocked { summary, .. }
            if !reply.text.contains(summary.trim()) =>
        {
            sanitize(&format!("{}\n\n{summary}", reply.text.trim_end()))
        }
        TurnOutcome::Answered
        | TurnOutcome::Idle
        | TurnOutcome::Completed { .. }
        | TurnOutcome::Blocked { .. }
        | TurnOutcome::Stopped { .. } => sanitize(&reply.text),
    }
}

/// Returns the outcome of a turn. `was_shown` tells whether an event has shown that it ended.
pub(crate) fn outcome_of(
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
        // The only limit of time that `loop` sets is that of its run.
        Err(error)
            if error.limit_reached() == Some(LimitKind::Time)
                && app.options.run.timeout.is_some() =>
        {
            Ok(Outcome::TimedOut)
        }
        // An event of the turn has already shown this.
        Err(error) if error.limit_reached().is_some() => Ok(Outcome::Limit),
        Err(Error::Failed(_) | Error::Aborted) => Ok(Outcome::Failed),
        Err(error) => Err(error.into()),
        // The agent says itself what it needs.
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
            TurnOutcome::Stopped { reason, .. } => of_stop(app, reason),
        }),
    }
}

/// Returns the outcome of a run at whose end the autopilot stopped.
pub(super) fn of_stop(app: &App, reason: StopReason) -> Outcome {
    match reason {
        StopReason::TaskComplete => Outcome::Done,
        StopReason::Blocked => Outcome::Blocked,
        StopReason::CapReached => Outcome::Limit,
        // The person at this terminal said no, which is an answer and no failure of the run.
        StopReason::Rejected if app.terminal.can_ask() => Outcome::Done,
        StopReason::Rejected => Outcome::NobodyToAsk,
        StopReason::Aborted | StopReason::Error => Outcome::Failed,
    }
}

/// Returns the outcome of a run that was to go on until its task is marked as complete, and has ended
/// without that; says why. `of_message` tells that it was the run of a message, and not of a command.
pub(super) async fn unfinished(
    app: &App,
    session: &Session,
    of_message: bool,
) -> anyhow::Result<Option<Outcome>> {
    let status = session.autopilot().await?;
    let why = match status.mode {
        Mode::Interactive | Mode::Plan => "somebody has switched the autopilot off",
        Mode::Autopilot if status.paused => "the autopilot is paused",
        Mode::Autopilot if !status.active => {
            "the app of the session tells the agent itself to go on"
        }
        // A warning of the session has said why.
        Mode::Autopilot if of_message => "the autopilot cannot go on",
        Mode::Autopilot => return Ok(None),
    };
    app.terminal.notice(&format!(
        "loop: {why}, and the task is not marked as complete; to let it go on: loop resume {} --autopilot \"go on\"",
        session.id()
    ));
    Ok(Some(Outcome::Limit))
}

/// Returns the outcome of a command and of what it has begun.
pub(crate) async fn command_outcome(
    app: &App,
    session: &Session,
    begun: Option<BegunWork>,
    finished: Result<(), Error>,
) -> anyhow::Result<Outcome> {
    match finished {
        Err(error)
            if error.limit_reached() == Some(LimitKind::Time)
                && app.options.run.timeout.is_some() =>
        {
            return Ok(Outcome::TimedOut);
        }
        // An event has already shown this.
        Err(error) if error.limit_reached().is_some() => return Ok(Outcome::Limit),
        Err(Error::Failed(_)) => return Ok(Outcome::Failed),
        Err(error) => return Err(error.into()),
        Ok(()) if app.denied_unasked.happened() => return Ok(Outcome::NobodyToAsk),
        Ok(()) => {}
    }
    match begun {
        Some(BegunWork::Fleet) => {}
        Some(BegunWork::Agent) | None => return Ok(Outcome::Done),
    }
    let fleet = session.fleet().await?;
    if fleet.paused {
        app.terminal.notice(&format!(
            "loop: the fleet waits, because the session was opened again; to let it go on: loop resume {} /fleet",
            session.id()
        ));
        return Ok(Outcome::Failed);
    }
    Ok(match fleet.last {
        Some(last) if last.ended == Some(FleetEnd::Stopped) => {
            match session.autopilot().await?.mode {
                // A warning of the session has said that plan mode has stopped it.
                Mode::Plan => Outcome::Blocked,
                Mode::Interactive | Mode::Autopilot => Outcome::Failed,
            }
        }
        // Todos are left that nobody could do.
        Some(last) if last.blocked + last.waiting > 0 => Outcome::Blocked,
        Some(_) | None => Outcome::Done,
    })
}
