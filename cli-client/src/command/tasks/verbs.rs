//! `loop tasks read`, `send`, `stop` and `promote`.

use std::time::Duration;

use anyhow::bail;
use loopd_sdk::{Progress, TaskInfo, TaskNode, TaskStatus};

use super::find::{self, Found};
use super::{WatchedSession, status_of, tree};
use crate::amount::{counted, span, tokens};
use crate::app::App;
use crate::args::{TaskScope, TasksVerb};
use crate::outcome::{Outcome, WrongUsage};
use crate::stdin;
use crate::terminal::{Style, sanitize};

pub(crate) async fn act(app: &App, what: TasksVerb) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let meant = async |scope: &TaskScope| {
        let session = scope.session.as_deref();
        find::sessions(app, &client, session).await
    };
    match what {
        TasksVerb::Read { id, wait, scope } => {
            let found = find::task(&meant(&scope).await?, &id).await?;
            read(app, &found, wait).await?;
        }
        TasksVerb::Send { id, message, scope } => {
            let message = if message == "-" {
                stdin::read()?
            } else {
                message
            };
            if message.trim().is_empty() {
                return Err(WrongUsage::error(
                    "there is no message: say what is to be done",
                ));
            }
            let found = find::task(&meant(&scope).await?, &id).await?;
            let task = found.node.task.id();
            found.session.send_to_task(task.clone(), message).await?;
            note(app, &format!("sent to {}", found.shown));
        }
        TasksVerb::Stop {
            id: Some(id),
            scope,
            ..
        } => {
            let found = find::task(&meant(&scope).await?, &id).await?;
            let task = found.node.task.id();
            if !found.session.stop_task(task.clone()).await? {
                let status = tree::status(status_of(&found.node));
                bail!("{} does not run: it is {status}", sanitize(&found.shown));
            }
            note(app, &format!("stopped {}", found.shown));
        }
        TasksVerb::Stop {
            id: None, scope, ..
        } => {
            let stopped = stop_all(&meant(&scope).await?).await?;
            note(
                app,
                &format!("stopped {}", counted(stopped, "task", "tasks")),
            );
        }
        TasksVerb::Promote { id, scope } => {
            let watched = meant(&scope).await?;
            let promoted = match id {
                Some(id) => promote(&find::task(&watched, &id).await?).await?,
                None => promote_current(&watched).await?,
            };
            note(app, &format!("{promoted} goes on in the background"));
        }
    }
    client.close().await;
    Ok(Outcome::Done)
}

fn note(app: &App, line: &str) {
    app.terminal.notice(&sanitize(line));
}

async fn read(app: &App, found: &Found, wait: Option<Duration>) -> anyhow::Result<()> {
    let id = found.node.task.id();
    let (node, answers) = match &found.node.task {
        TaskInfo::Agent(_) => {
            let read = found.session.read_task(id.clone(), wait).await?;
            let answers = read.turns.into_iter().map(|turn| turn.response);
            (read.node, answers.collect())
        }
        TaskInfo::Shell(_) => {
            let progress = found.session.task_progress(id.clone()).await?;
            let output = match progress {
                Some(Progress::Shell(shell)) => shell.recent_output,
                Some(Progress::Agent(_)) | None => String::new(),
            };
            (found.node.clone(), vec![output])
        }
    };
    if app.options.json {
        let line = serde_json::json!({"node": node, "answers": answers});
        app.terminal.print(&format!("{line}\n"))?;
        return Ok(());
    }
    for line in about(&found.shown, &node) {
        let line = app.terminal.styled(Style::Dim, &sanitize(&line));
        app.terminal.notice(&line);
    }
    for answer in answers.iter().filter(|answer| !answer.trim().is_empty()) {
        let text = sanitize(answer);
        app.terminal.print(&format!("{}\n", text.trim_end()))?;
    }
    Ok(())
}

/// Describes a task in a few lines, because paths are too long for columns.
fn about(id: &str, node: &TaskNode) -> Vec<String> {
    let status = tree::status(status_of(node));
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            let value = value.replace('\n', " ");
            lines.push(format!("    {name:<9} {value}"));
        }
    };
    let heading = match &node.task {
        TaskInfo::Agent(agent) => {
            let doing = node.latest_intent.as_deref();
            line(
                "doing",
                doing.filter(|_| agent.status == TaskStatus::Running),
            );
            line("error", agent.error.as_deref());
            line("output", node.output_file.as_deref());
            line(
                "session",
                node.session_id.as_ref().map(loopd_sdk::SessionId::as_str),
            );
            line("worktree", node.worktree.as_deref());
            let calls = usize::try_from(node.tool_calls).unwrap_or(usize::MAX);
            format!(
                "{id} ({}) {status}, {}, {} tokens, {}",
                agent.agent_type,
                counted(calls, "tool call", "tool calls"),
                tokens(node.tokens),
                span(Duration::from_millis(agent.active_time_ms.unwrap_or(0))),
            )
        }
        TaskInfo::Shell(shell) => {
            line("command", Some(&shell.command));
            line("log", shell.log_path.as_deref());
            format!("{id} (shell) {status}")
        }
    };
    lines.insert(0, heading);
    lines
}

/// Stops all agents and commands. A command that ended with its agent is not counted.
async fn stop_all(watched: &[WatchedSession]) -> anyhow::Result<usize> {
    let mut stopped = 0;
    for WatchedSession { session, tasks } in watched {
        for node in tasks {
            let open = matches!(status_of(node), TaskStatus::Running | TaskStatus::Idle);
            if open && session.stop_task(node.task.id().clone()).await? {
                stopped += 1;
            }
        }
    }
    Ok(stopped)
}

async fn promote(found: &Found) -> anyhow::Result<String> {
    let id = found.node.task.id();
    if !found.session.promote_task(id.clone()).await? {
        bail!("nobody waits for {}", sanitize(id.as_str()));
    }
    Ok(id.to_string())
}

async fn promote_current(watched: &[WatchedSession]) -> anyhow::Result<String> {
    for watched in watched {
        if let Some(task) = watched.session.promote_current_task().await? {
            return Ok(task.id().to_string());
        }
    }
    bail!("the session waits for nothing that could go on in the background")
}
