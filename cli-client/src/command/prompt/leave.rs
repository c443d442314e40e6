//! Leaves the session of a run. What the run has left in the background ends with the session, unless
//! another client is attached; whoever is here is told what was stopped and what goes on.

use loopd_sdk::proto::event::task::ShellAttachment;
use loopd_sdk::{Session, TaskInfo, TaskStatus};

use super::run_limits::STOPPING;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

/// How many tasks are named.
const MOST_NAMED: usize = 10;

pub(super) async fn leave(app: &App, session: &Session, outcome: Outcome) -> anyhow::Result<()> {
    match outcome {
        Outcome::Left => Ok(()),
        // Whoever wants it to end does not wait for ever.
        Outcome::TimedOut | Outcome::Interrupted => {
            let is_done = tokio::select! {
                ended = tokio::time::timeout(STOPPING, end(app, session, outcome)) => {
                    matches!(ended, Ok(Ok(())))
                }
                () = app.terminal.interrupted() => false,
            };
            if !is_done {
                app.terminal.notice(&format!(
                    "loop: the session may still be at work; to see what runs there: loop tasks {}",
                    session.id()
                ));
            }
            if outcome == Outcome::Interrupted {
                let again = format!("the session is kept: loop resume {}", session.id());
                dim(app, &again);
            }
            Ok(())
        }
        Outcome::Done
        | Outcome::Failed
        | Outcome::NobodyToAsk
        | Outcome::Limit
        | Outcome::Blocked => end(app, session, outcome).await,
    }
}

async fn end(app: &App, session: &Session, outcome: Outcome) -> anyhow::Result<()> {
    let running = running(session).await?;
    session.destroy().await?;
    if running.is_empty() {
        return Ok(());
    }
    let status = session.client().daemon_status().await?;
    let mut live = status.sessions.iter();
    if !live.any(|it| it.session_id == *session.id()) {
        dim(
            app,
            &format!("stopped in the background: {}", named(&running)),
        );
    } else if outcome != Outcome::Done {
        dim(
            app,
            &format!(
                "another client is in the session, so this goes on in the background: {}; to stop it: loop tasks stop \
                 --all --session {}",
                named(&running),
                session.id()
            ),
        );
    }
    Ok(())
}

/// Returns the agents that work and the commands that run, as far as they belong to the session.
async fn running(session: &Session) -> anyhow::Result<Vec<String>> {
    let tasks = match session.tasks().await {
        Ok(tasks) => tasks,
        // Another client has closed the session.
        Err(error) if error.is_session_not_found() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let running = tasks.into_iter().filter_map(|node| match node.task {
        TaskInfo::Shell(shell) => {
            let is_own = shell.attachment_mode == ShellAttachment::Attached;
            (is_own && shell.status == TaskStatus::Running).then_some(shell.command)
        }
        TaskInfo::Agent(agent) => {
            (agent.status == TaskStatus::Running).then(|| format!("the agent {}", agent.id))
        }
    });
    Ok(running.collect())
}

fn named(tasks: &[String]) -> String {
    let mut names: Vec<String> = tasks
        .iter()
        .take(MOST_NAMED)
        .map(|it| sanitize(&it.replace('\n', " ")))
        .collect();
    if tasks.len() > MOST_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn dim(app: &App, line: &str) {
    app.terminal.notice(&app.terminal.styled(Style::Dim, line));
}
