//! `loop tasks read`, `send`, `stop` and `promote`: deal with one task.

use std::time::Duration;

use anyhow::bail;
use loopd_sdk::{Progress, TaskInfo, TaskNode, TaskStatus};

use super::find::{self, Found};
use super::{Seen, status_of, tree};
use crate::amount::{counted, span, tokens};
use crate::args::{TaskPlace, TasksVerb};
use crate::command::piped;
use crate::open::Desk;
use crate::outcome::Outcome;
use crate::terminal::{Style, harmless};

pub(crate) async fn act(desk: &Desk, what: TasksVerb) -> anyhow::Result<Outcome> {
    let client = desk.connect().await?;
    let meant = async |place: &TaskPlace| {
        let session = place.session.as_deref();
        find::sessions(desk, &client, session).await
    };
    match what {
        TasksVerb::Read { id, wait, place } => {
            let found = find::task(&meant(&place).await?, &id).await?;
            read(desk, &found, wait).await?;
        }
        TasksVerb::Send { id, message, place } => {
            let message = if message == "-" { piped()? } else { message };
            if message.trim().is_empty() {
                bail!("there is no message: say what is to be done");
            }
            let found = find::task(&meant(&place).await?, &id).await?;
            let task = found.node.task.id();
            found.session.send_to_task(task.clone(), message).await?;
            note(desk, &format!("sent to {task}"));
        }
        TasksVerb::Stop {
            id: Some(id),
            place,
            ..
        } => {
            let found = find::task(&meant(&place).await?, &id).await?;
            let task = found.node.task.id();
            if !found.session.stop_task(task.clone()).await? {
                let status = tree::status(status_of(&found.node));
                bail!("{} does not run: it is {status}", harmless(task.as_str()));
            }
            note(desk, &format!("stopped {task}"));
        }
        TasksVerb::Stop {
            id: None, place, ..
        } => {
            let stopped = stop_all(&meant(&place).await?).await?;
            note(
                desk,
                &format!("stopped {}", counted(stopped, "task", "tasks")),
            );
        }
        TasksVerb::Promote { id, place } => {
            let seen = meant(&place).await?;
            let promoted = match id {
                Some(id) => promote(&find::task(&seen, &id).await?).await?,
                None => promote_current(&seen).await?,
            };
            note(desk, &format!("{promoted} goes on in the background"));
        }
    }
    client.close().await;
    Ok(Outcome::Done)
}

fn note(desk: &Desk, line: &str) {
    desk.terminal.notice(&harmless(line));
}

async fn read(desk: &Desk, found: &Found, wait: Option<Duration>) -> anyhow::Result<()> {
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
    if desk.options.json {
        let line = serde_json::json!({"node": node, "answers": answers});
        desk.terminal.answer(&format!("{line}\n"))?;
        return Ok(());
    }
    for line in about(&node) {
        let line = desk.terminal.styled(Style::Dim, &harmless(&line));
        desk.terminal.notice(&line);
    }
    for answer in answers.iter().filter(|answer| !answer.trim().is_empty()) {
        let text = harmless(answer);
        desk.terminal.answer(&format!("{}\n", text.trim_end()))?;
    }
    Ok(())
}

/// What is known about a task, in a few lines: paths are too long for columns.
fn about(node: &TaskNode) -> Vec<String> {
    let id = node.task.id();
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

/// Stops the agents, and the commands that agents did not take with them.
async fn stop_all(seen: &[Seen]) -> anyhow::Result<usize> {
    let mut stopped = 0;
    for Seen { session, tasks } in seen {
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
        bail!("nobody waits for {}", harmless(id.as_str()));
    }
    Ok(id.to_string())
}

async fn promote_current(seen: &[Seen]) -> anyhow::Result<String> {
    for seen in seen {
        if let Some(task) = seen.session.promote_current_task().await? {
            return Ok(task.id().to_string());
        }
    }
    bail!("the session waits for nothing that could go on in the background")
}
