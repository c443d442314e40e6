//! `loop autopilot`: shows what the autopilot of a session does, pauses it, lets it go on.

use loopd_sdk::{AutopilotStatus, Mode, Session};

use crate::app::App;
use crate::args::AutopilotVerb;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

pub(crate) async fn run(
    app: &App,
    session: Option<&str>,
    what: Option<AutopilotVerb>,
) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = super::queue::join(app, &client, session).await?;
    let outcome = act(app, &session, what).await;
    drop(session);
    client.close().await;
    outcome
}

async fn act(app: &App, session: &Session, what: Option<AutopilotVerb>) -> anyhow::Result<Outcome> {
    let status = match what {
        None => session.autopilot().await?,
        Some(AutopilotVerb::Pause) => session.pause_autopilot().await?.status,
        Some(AutopilotVerb::Continue) => session.continue_autopilot().await?.status,
    };
    if app.options.json {
        let line = serde_json::to_string(&status)?;
        app.terminal.print(&format!("{line}\n"))?;
    } else {
        app.terminal.print(&sanitize(&describe(&status)))?;
    }
    if matches!(what, Some(AutopilotVerb::Continue)) && status.active && status.request_id.is_some()
    {
        app.terminal.notice(&format!(
            "the agent goes on while a client is attached to the session; to attach one: loop resume {}",
            session.id()
        ));
    }
    // To pause or continue what is not on does nothing, and must not look as if it had.
    Ok(if what.is_some() && status.mode != Mode::Autopilot {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

/// Describes the state in lines for a person.
fn describe(status: &AutopilotStatus) -> String {
    let mut lines = Vec::new();
    lines.push(match (status.mode, status.paused) {
        (Mode::Autopilot, true) => {
            "autopilot: paused; loop autopilot continue lets it go on".to_owned()
        }
        (Mode::Autopilot, false) if status.active => "autopilot: on".to_owned(),
        (Mode::Autopilot, false) => {
            "autopilot: on, but the app of the session tells the agent itself to go on".to_owned()
        }
        (Mode::Interactive | Mode::Plan, _) => "autopilot: off".to_owned(),
    });
    if status.mode == Mode::Autopilot {
        lines.push(format!(
            "told to go on: {} of {} times, {} without a tool call",
            status.continues, status.max_continues, status.continues_without_tool_call
        ));
    }
    if let Some(said) = &status.completion {
        let what = match said.success {
            Some(false) => "not complete",
            Some(true) | None => "complete",
        };
        let summary = said.summary.as_deref().unwrap_or_default();
        lines.push(format!("task: {what}: {summary}"));
        if let Some(reason) = &said.reason {
            lines.push(format!("reason: {reason}"));
        }
    }
    if let Some(stop) = &status.last_stop {
        let words = stop.message.as_deref().map(|words| format!(": {words}"));
        let words = words.unwrap_or_default();
        lines.push(format!("stopped last: {}{words}", stop.reason.name()));
    }
    lines.join("\n") + "\n"
}
