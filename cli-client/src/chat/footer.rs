//! The lines of the live region below the answer: what the session does, its todos, tasks and usage.

use std::time::Duration;

use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{Mode, TaskInfo, TaskNode, TaskStatus, Todo, TodoStatus};

use super::styled::{Colour, Line, Look};
use super::transcript::Transcript;
use crate::amount::{span, tokens};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How many todos and tasks are shown.
const MOST_TODOS: usize = 5;
const MOST_TASKS: usize = 6;
/// How many cells the bar of the context has.
const BAR: u64 = 10;

/// Returns the sign that turns while something works.
pub(super) fn spinner(tick: usize) -> &'static str {
    SPINNER.get(tick % SPINNER.len()).copied().unwrap_or("*")
}

/// Returns the lines of calls that run, and of what the session does.
pub(super) fn work(transcript: &Transcript, tick: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let sign = Look::of(Colour::Yellow);
    let spin = spinner(tick);
    for call in &transcript.calls.running {
        let time = span(call.since.elapsed());
        lines.push(
            Line::of(sign, format!("{spin} "))
                .with(Look::PLAIN, &call.summary)
                .with(Look::DIM, format!("  {time}")),
        );
        if let Some(line) = call.last_line() {
            lines.push(Line::of(Look::DIM, format!("  {line}")));
        }
    }
    let Some(since) = transcript.working_since else {
        return lines;
    };
    let at_work = transcript.todos.todos.iter();
    let mut at_work = at_work.filter(|it| it.status == TodoStatus::InProgress);
    let intent = match (&transcript.calls.intent, at_work.next()) {
        (Some(intent), _) => intent.clone(),
        (None, Some(todo)) => for_person(&todo.content).replace('\n', " "),
        (None, None) if transcript.calls.running.is_empty() && transcript.is_thinking => {
            "thinking".to_owned()
        }
        (None, None) if transcript.calls.running.is_empty() => "answering".to_owned(),
        (None, None) => "working".to_owned(),
    };
    let time = span(Duration::from_secs(since.elapsed().as_secs()));
    lines.push(
        Line::of(sign, format!("{spin} "))
            .with(Look::BOLD, intent)
            .with(Look::DIM, format!("  {time} · Esc stops")),
    );
    lines
}

/// Returns the lines of messages that wait, of the fleet, of todos and of tasks.
pub(super) fn lists(transcript: &Transcript, tasks: &[TaskNode]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (_, text) in &transcript.waiting {
        let text = for_person(text).replace('\n', " ⏎ ");
        lines.push(Line::of(Look::DIM, format!("> {text} (sent)")));
    }
    if let Some(fleet) = &transcript.fleet {
        lines.push(Line::of(Look::DIM, fleet.clone()));
    }
    lines.extend(todos(&transcript.todos.todos));
    let mut rows = Vec::new();
    for node in tasks {
        task(node, 0, &mut rows);
    }
    let more = rows.len().saturating_sub(MOST_TASKS);
    lines.extend(rows.into_iter().take(MOST_TASKS));
    if more > 0 {
        lines.push(Line::of(Look::DIM, format!("  … {more} more tasks")));
    }
    lines
}

/// Shows the todos while something is left to do: those around the one that is being done.
fn todos(todos: &[Todo]) -> Vec<Line> {
    let is_over =
        |todo: &Todo| matches!(todo.status, TodoStatus::Completed | TodoStatus::Cancelled);
    if todos.iter().all(is_over) {
        return Vec::new();
    }
    let done = todos.iter().filter(|it| it.status == TodoStatus::Completed);
    let heading = format!("todos: {} of {} done", done.count(), todos.len());
    let first = todos.iter().position(|todo| !is_over(todo)).unwrap_or(0);
    let first = first
        .saturating_sub(1)
        .min(todos.len().saturating_sub(MOST_TODOS));
    let mut lines = vec![Line::of(Look::DIM, heading)];
    lines.extend(todos.iter().skip(first).take(MOST_TODOS).map(|todo| {
        let (mark, look) = match todo.status {
            TodoStatus::Pending => ("[ ]", Look::PLAIN),
            TodoStatus::InProgress => ("[>]", Look::BOLD),
            TodoStatus::Completed => ("[x]", Look::DIM),
            TodoStatus::Cancelled => ("[-]", Look::DIM),
            TodoStatus::Blocked => ("[!]", Look::of(Colour::Red)),
        };
        let text = for_person(&todo.content).replace('\n', " ");
        Line::of(look, format!("  {mark} {text}"))
    }));
    lines
}

/// Shows a task that runs, and those below it.
fn task(node: &TaskNode, depth: usize, lines: &mut Vec<Line>) {
    let (name, status, doing) = match &node.task {
        TaskInfo::Agent(agent) => {
            let doing = node.latest_intent.as_ref().unwrap_or(&agent.description);
            (agent.id.as_str(), agent.status, doing.clone())
        }
        TaskInfo::Shell(shell) => (shell.id.as_str(), shell.status, shell.command.clone()),
    };
    if status == TaskStatus::Running {
        let doing = for_person(&doing).replace('\n', " ");
        let used = match node.tokens {
            0 => String::new(),
            used => format!(" ({} tokens)", tokens(used)),
        };
        let indent = "  ".repeat(depth);
        lines.push(
            Line::of(Look::of(Colour::Yellow), format!("{indent}▸ "))
                .with(Look::PLAIN, for_person(name))
                .with(Look::DIM, format!("  {doing}{used}")),
        );
    }
    for child in &node.children {
        task(child, depth + 1, lines);
    }
}

/// Returns the last line: the model, the mode and how full the context is.
pub(super) fn status(transcript: &Transcript) -> Line {
    let mut parts = Vec::new();
    if let Some(model) = &transcript.model {
        parts.push(for_person(model));
    }
    match transcript.mode {
        Mode::Interactive => {}
        Mode::Plan => parts.push("plan mode".to_owned()),
        Mode::Autopilot => parts.push("autopilot".to_owned()),
    }
    if let Some((used, most)) = transcript.context.filter(|(_, most)| *most > 0) {
        let percent = used.saturating_mul(100) / most;
        let full = (percent * BAR).div_ceil(100).min(BAR);
        let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or(0));
        let bar = cells(full, "▰") + &cells(BAR - full, "▱");
        parts.push(format!("context {bar} {percent}% of {}", tokens(most)));
    }
    Line::of(Look::DIM, parts.join(" · "))
}
