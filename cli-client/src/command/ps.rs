//! `loop ps`: the commands that the daemon runs as processes.

use loopd_sdk::{Process, ProcessClass, ProcessState};

use super::daemon::connect_to_running;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

/// How many characters of a command are shown.
const COMMAND_CHARS: usize = 80;

pub(crate) async fn run(app: &App) -> anyhow::Result<Outcome> {
    let Some(client) = connect_to_running(app).await? else {
        app.terminal
            .notice("the daemon is not running, and what ran with it has ended");
        return Ok(Outcome::Done);
    };
    let processes = client.processes().await?;
    if processes.is_empty() && !app.options.json {
        app.terminal.notice("no commands are running");
    } else if !app.options.json {
        app.terminal.print(&heading())?;
    }
    for process in &processes {
        let line = if app.options.json {
            serde_json::to_string(process)?
        } else {
            row(process)
        };
        app.terminal.print(&(line + "\n"))?;
    }
    client.close().await;
    Ok(Outcome::Done)
}

fn heading() -> String {
    format!(
        "{:>8}  {:<8}  {:<11}  {:<24}  {:<36}  COMMAND\n",
        "PID", "CLASS", "STATE", "STARTED", "SESSION"
    )
}

fn row(process: &Process) -> String {
    let class = match process.class {
        ProcessClass::Turn => "turn",
        ProcessClass::Session => "session",
        ProcessClass::Daemon => "daemon",
        ProcessClass::Detached => "detached",
    };
    let state = match process.state {
        ProcessState::Running => "running",
        ProcessState::Idle => "idle",
        ProcessState::LeftBehind => "left behind",
    };
    let session = process.session_id.as_ref().map_or("-", |id| id.as_str());
    let command: String = sanitize(&process.command)
        .replace('\n', " ")
        .chars()
        .take(COMMAND_CHARS)
        .collect();
    let log = process
        .log_path
        .as_deref()
        .map(|log| format!("  (log: {})", sanitize(log)))
        .unwrap_or_default();
    format!(
        "{:>8}  {class:<8}  {state:<11}  {:<24}  {:<36}  {command}{log}",
        process.pid,
        process.started_at.to_string(),
        sanitize(session),
    )
}

#[cfg(test)]
mod tests;
