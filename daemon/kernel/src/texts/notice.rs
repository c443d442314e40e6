//! Notifications for the model about background tasks that ended or became idle.
//!
//! Recorded conversations contain the sentence about an agent. Other facts follow in a reminder,
//! which recordings leave out.

use loopd_proto::event::task::{ShellWork, TaskOutcome, TaskWork};
use loopd_proto::id::TaskId;

use super::super::tasks::{Task, Tasks};
use super::AGENT_LOG_GONE;

/// How much of an agent's answer a notification quotes. A tool reads the whole answer.
const QUOTED_ANSWER: usize = 2_000;

/// Returns the notification that a task has ended or that an agent has answered. `tasks` are those of the
/// session that is told.
pub(crate) fn task_rested(task: &Task, tasks: &Tasks) -> String {
    match &task.work {
        TaskWork::Shell(shell) => command_ended(task, shell, tasks),
        TaskWork::Agent(work) => agent_rested(task, &work.name, &work.agent_type),
        TaskWork::External(work) => agent_rested(task, task.id.as_str(), &work.agent_type),
    }
}

fn agent_rested(task: &Task, name: &str, agent_type: &str) -> String {
    let id = task.id.as_str();
    let outcome = task.ending().map(|ending| ending.outcome);
    let reason = task.ending().and_then(|ending| ending.reason.as_deref());
    let because = reason
        .map(|why| format!(": {}", escaped(why)))
        .unwrap_or_default();
    let (status, sentence) = match outcome {
        None => (
            "idle",
            format!(
                "Agent \"{name}\" ({agent_type}) has finished processing and is now idle. Use read_agent with agent_id \
                 \"{id}\" to read the results, or write_agent to send follow-up messages."
            ),
        ),
        Some(TaskOutcome::Completed) => (
            "completed",
            format!(
                "Agent \"{name}\" ({agent_type}) has completed successfully. Use read_agent with agent_id \"{id}\" to \
                 retrieve the full results."
            ),
        ),
        Some(TaskOutcome::Failed) if reason.is_some_and(|why| why.contains(AGENT_LOG_GONE)) => (
            "failed",
            format!("Agent \"{name}\" ({agent_type}) did not finish{because}."),
        ),
        Some(TaskOutcome::Failed) if task.external().is_some() => (
            "failed",
            format!(
                "Agent \"{name}\" ({agent_type}) did not finish{because}. Start a new task to try again."
            ),
        ),
        Some(TaskOutcome::Failed) => (
            "failed",
            format!(
                "Agent \"{name}\" ({agent_type}) did not finish{because}. Use read_agent with agent_id \"{id}\" to see how \
                 far it got, or write_agent to let it go on from there."
            ),
        ),
        Some(TaskOutcome::Cancelled) => (
            "cancelled",
            format!(
                "Agent \"{name}\" ({agent_type}) was stopped{because}. Use read_agent with agent_id \"{id}\" to see how far \
                 it got."
            ),
        ),
    };
    let answer = task.latest_response().map(|text| {
        if text.trim().is_empty() {
            return "<result>\n[It answered nothing.]\n</result>".to_owned();
        }
        let shown = beginning(text, QUOTED_ANSWER);
        let cut = if shown.len() < text.len() {
            "\n[cut here; read_agent shows the rest]"
        } else {
            ""
        };
        format!("<result>\n{}{cut}\n</result>", escaped(shown))
    });
    let usage = &task.usage;
    let file = task.agent().and_then(|work| work.output_file.as_ref());
    let details = [
        Some(format!("<task_id>{}</task_id>", escaped(id))),
        tool_use(task),
        Some(format!("<status>{status}</status>")),
        Some(format!("<summary>{}</summary>", escaped(&task.description))),
        answer,
        (usage.tokens() > 0).then(|| {
            format!(
                "<usage>{} tokens, {} tool calls, {} s</usage>",
                usage.tokens(),
                usage.tool_calls,
                task.active_ms / 1_000
            )
        }),
        super::worked_in(task).map(|copy| format!("<worktree>{}</worktree>", escaped(&copy))),
        file.map(|file| format!("<output_file>{}</output_file>", escaped(file))),
    ];
    let details: Vec<String> = details.into_iter().flatten().collect();
    format!(
        "<system_notification>\n{sentence}\n</system_notification>\n<system_reminder>\n{}\n</system_reminder>",
        details.join("\n")
    )
}

fn tool_use(task: &Task) -> Option<String> {
    let call = task.call.as_ref()?;
    Some(format!(
        "<tool_use_id>{}</tool_use_id>",
        escaped(call.as_str())
    ))
}

fn beginning(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or(text),
        None => text,
    }
}

/// The tool with which the model reads the output of a command.
pub(crate) const READ_SHELL: &str = if cfg!(windows) {
    "read_powershell"
} else {
    "read_bash"
};

/// Returns the notification that a background command has ended.
fn command_ended(task: &Task, shell: &ShellWork, tasks: &Tasks) -> String {
    let id = escaped(shell.shell_id.as_str());
    let (status, exit_code, how) = match task.ending() {
        None => ("running", None, "still runs".to_owned()),
        Some(ending) => {
            let status = match ending.outcome {
                TaskOutcome::Completed => "completed",
                TaskOutcome::Failed => "failed",
                TaskOutcome::Cancelled => "cancelled",
            };
            let how = match (ending.exit_code, &ending.reason) {
                (Some(code), _) => format!("has ended with exit code {code}"),
                (None, Some(reason)) => format!("is over: {}", escaped(reason)),
                (None, None) => "has ended".to_owned(),
            };
            (status, ending.exit_code, how)
        }
    };
    let named = match task.description.as_str() {
        "" => String::new(),
        description => format!(" ({})", escaped(description)),
    };
    let command = escaped(first_line(&shell.command));
    let by = shell.agent.as_ref();
    let by = by.map(|agent| escaped(agent.as_str()));
    let is_cancelled = task
        .ending()
        .is_some_and(|ending| ending.outcome == TaskOutcome::Cancelled);
    let advice = if is_cancelled {
        "Run it again only if the user wants that.".to_owned()
    } else if let Some(agent) = shell.agent.as_ref() {
        match reached(agent, tasks) {
            Some(own) if own == agent => format!(
                "write_agent with agent_id \"{}\" lets the agent that started it go on with it.",
                escaped(own.as_str())
            ),
            Some(above) => format!(
                "write_agent with agent_id \"{}\" reaches the agent that has that agent below it.",
                escaped(above.as_str())
            ),
            None => String::new(),
        }
    } else if exit_code.is_none() && shell.log_path.is_none() {
        "Run the command again if its result is still needed.".to_owned()
    } else {
        format!("Call {READ_SHELL} with shellId \"{id}\" to read its output.")
    };
    let lines = [
        Some("<system_notification>".to_owned()),
        Some(format!("<task_id>{id}</task_id>")),
        tool_use(task),
        Some(format!("<status>{status}</status>")),
        exit_code.map(|code| format!("<exit_code>{code}</exit_code>")),
        Some(format!(
            "<summary>The background command `{command}`{named}{} {how}.</summary>",
            by.map(|agent| format!(" of the agent {agent}"))
                .unwrap_or_default()
        )),
        task.latest_response()
            .map(|output| format!("<output>\n{}\n</output>", escaped(output))),
        shell
            .log_path
            .as_ref()
            .map(|log| format!("<output_file>{}</output_file>", escaped(log))),
        Some(advice).filter(|advice| !advice.is_empty()),
        Some("</system_notification>".to_owned()),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Returns the agent of this session that is this one or has it below it. The model can send messages to
/// the agents of its own session only.
fn reached<'a>(agent: &TaskId, tasks: &'a Tasks) -> Option<&'a TaskId> {
    let agents = tasks.iter().filter(|task| task.agent().is_some());
    let is_on_path = |id: &&TaskId| {
        let below = agent.as_str().strip_prefix(id.as_str());
        below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
    };
    let on_path = agents.map(|task| &task.id).filter(is_on_path);
    on_path.max_by_key(|id| id.as_str().len())
}

/// How much of a command a notification quotes.
const QUOTED: usize = 200;

fn first_line(command: &str) -> &str {
    beginning(command.lines().next().unwrap_or_default(), QUOTED)
}

/// Escapes a text so that it cannot be taken for a tag.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
