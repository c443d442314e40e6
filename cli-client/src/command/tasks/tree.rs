//! Shows the tasks as a tree in columns, printed once or kept up to date on the screen.

use std::time::Duration;

use loopd_sdk::proto::time::Timestamp;
use loopd_sdk::{TaskInfo, TaskNode, TaskStatus};

use super::follow::View;
use super::{WatchedSession, now, shown_id, status_of};
use crate::amount::{span, tokens};
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

/// The maximum length of a line when the output is not a screen.
const LINE_CHARS: usize = 160;
/// How many characters of an id are shown; `--json` has whole ids.
const ID_CHARS: usize = 48;

pub(super) fn print(app: &App, watched: &[WatchedSession]) -> anyhow::Result<Outcome> {
    let lines = draw(watched, now(), LINE_CHARS);
    if lines.is_empty() {
        app.terminal.notice("no tasks");
    }
    for line in lines {
        app.terminal.print(&(line.text + "\n"))?;
    }
    Ok(Outcome::Done)
}

/// Draws the tree on the screen, over the previous one.
#[derive(Default)]
pub(super) struct Screen {
    drawn: usize,
}

impl View for Screen {
    fn show(&mut self, app: &App, watched: &[WatchedSession]) -> anyhow::Result<()> {
        let (columns, rows) = app.terminal.size();
        let mut lines = draw(watched, now(), columns);
        if lines.is_empty() {
            lines.push(Line::new("no tasks".to_owned()));
        }
        // Lines that have scrolled off the top cannot be drawn over.
        let room = rows.saturating_sub(1).max(1);
        let hidden = lines.len().saturating_sub(room);
        if hidden > 0 {
            lines.truncate(room.saturating_sub(1));
            lines.push(Line::new(format!("… {} more lines", hidden + 1)));
        }
        let mut text = match self.drawn {
            0 => String::new(),
            above => format!("\x1b[{above}A\r\x1b[J"),
        };
        // No automatic wrap: a line that is wider than expected must stay one line.
        text.push_str("\x1b[?7l");
        for line in &lines {
            text.push_str(&match line.style {
                Some(style) => app.terminal.styled(style, &line.text),
                None => line.text.clone(),
            });
            text.push_str("\r\n");
        }
        text.push_str("\x1b[?7h");
        self.drawn = lines.len();
        app.terminal.print(&text)?;
        Ok(())
    }
}

/// One line of the tree.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    text: String,
    style: Option<Style>,
}

impl Line {
    fn new(text: String) -> Self {
        Self { text, style: None }
    }
}

fn draw(watched: &[WatchedSession], now: Timestamp, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for each in watched {
        if watched.len() > 1 {
            lines.push(Line {
                text: format!("session {}", each.session.id()),
                style: Some(Style::Bold),
            });
        }
        lines.extend(table(&each.tasks, now, width));
    }
    lines
}

/// The columns of one task.
struct Row {
    id: String,
    kind: String,
    status: TaskStatus,
    calls: String,
    tokens: String,
    time: String,
    doing: String,
}

fn table(tasks: &[TaskNode], now: Timestamp, width: usize) -> Vec<Line> {
    let mut rows = Vec::new();
    lay_out(tasks, None, None, now, &mut rows);
    if rows.is_empty() {
        return Vec::new();
    }
    let widest = |cell: fn(&Row) -> &str, least: usize| {
        let widths = rows.iter().map(|row| cell(row).chars().count());
        widths.max().unwrap_or(0).max(least)
    };
    let ids = widest(|row| &row.id, 4);
    let kinds = widest(|row| &row.kind, 4);
    let times = widest(|row| &row.time, 4);
    let line = |id: &str, kind: &str, status: &str, calls: &str, used: &str, time: &str| {
        format!("{id:<ids$}  {kind:<kinds$}  {status:<9}  {calls:>5}  {used:>6}  {time:>times$}  ")
    };
    let mut heading = line("TASK", "TYPE", "STATUS", "CALLS", "TOKENS", "TIME");
    heading.push_str("DOING");
    let mut lines = vec![Line {
        text: cut(&heading, width),
        style: Some(Style::Dim),
    }];
    lines.extend(rows.iter().map(|row| {
        let mut text = line(
            &row.id,
            &row.kind,
            status(row.status),
            &row.calls,
            &row.tokens,
            &row.time,
        );
        text.push_str(&row.doing);
        Line {
            text: cut(text.trim_end(), width),
            style: match row.status {
                TaskStatus::Running => Some(Style::Bold),
                TaskStatus::Failed => Some(Style::Bad),
                TaskStatus::Idle => None,
                TaskStatus::Completed | TaskStatus::Cancelled => Some(Style::Dim),
            },
        }
    }));
    lines
}

/// Makes a row of each task, its children after it. Rows below the top level have branch lines.
fn lay_out(
    tasks: &[TaskNode],
    agent: Option<&str>,
    lead: Option<&str>,
    now: Timestamp,
    rows: &mut Vec<Row>,
) {
    for (index, node) in tasks.iter().enumerate() {
        let last = index + 1 == tasks.len();
        let (own, below) = match lead {
            None => (String::new(), String::new()),
            Some(lead) if last => (format!("{lead}└─ "), format!("{lead}   ")),
            Some(lead) => (format!("{lead}├─ "), format!("{lead}│  ")),
        };
        rows.push(row(node, agent, &own, now));
        let id = Some(node.task.id().as_str());
        lay_out(&node.children, id, Some(&below), now, rows);
    }
}

fn row(node: &TaskNode, agent: Option<&str>, lead: &str, now: Timestamp) -> Row {
    let id = cut(&plain(&shown_id(agent, node)), ID_CHARS);
    let (kind, time, doing) = match &node.task {
        TaskInfo::Shell(shell) => {
            let end = shell.completed_at.unwrap_or(now);
            let time = end.millis_since(shell.started_at);
            ("shell".to_owned(), time, shell.command.clone())
        }
        TaskInfo::Agent(agent) => {
            let since = agent.completed_at.unwrap_or(now);
            let time = since.millis_since(agent.started_at);
            let came_to = match agent.status {
                TaskStatus::Running => node.latest_intent.as_ref(),
                TaskStatus::Idle | TaskStatus::Completed => agent.latest_response.as_ref(),
                TaskStatus::Failed | TaskStatus::Cancelled => agent.error.as_ref(),
            };
            let doing = came_to.filter(|text| !text.trim().is_empty());
            (
                agent.agent_type.clone(),
                agent.active_time_ms.unwrap_or(time),
                doing.unwrap_or(&agent.description).clone(),
            )
        }
    };
    let is_agent = matches!(node.task, TaskInfo::Agent(_));
    let of_agent = |text: String| if is_agent { text } else { "-".to_owned() };
    Row {
        id: format!("{lead}{id}"),
        kind: plain(&kind),
        status: status_of(node),
        calls: of_agent(node.tool_calls.to_string()),
        tokens: of_agent(tokens(node.tokens)),
        time: span(Duration::from_millis(time)),
        doing: plain(&doing),
    }
}

pub(super) fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Idle => "idle",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    }
}

/// Makes untrusted text safe to print and puts it on one line.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    sanitize(&words.join(" "))
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
