//! Tool calls: a line for each, with its time and the size of its result, and all of it on demand.

use std::collections::VecDeque;
use std::time::Duration;

use loopd_sdk::proto::event::tool::{ToolComplete, ToolPartial, ToolStart};
use loopd_sdk::proto::id::ToolCallId;
use loopd_sdk::proto::time::Timestamp;
use loopd_sdk::proto::visible::for_person;
use serde_json::Value;
use tokio::time::Instant;

use super::diff;
use super::styled::{Colour, Line, Look};
use crate::amount::{counted, took};
use crate::render::summary;

/// How many calls can be shown again.
const KEPT: usize = 200;
/// How many lines of a diff, of an error and of a command of the user are shown with the call.
const DIFF_LINES: usize = 16;
const ERROR_LINES: usize = 6;
const USER_LINES: usize = 40;
/// How much of the output of a running command is kept to show its last line.
const PARTIAL: usize = 4_096;

/// The tools whose calls are told by events.
const TOLD: [&str; 3] = ["task_complete", "todowrite", INTENT];
const INTENT: &str = "report_intent";

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct Running {
    id: ToolCallId,
    number: usize,
    pub(super) summary: String,
    name: String,
    started: Timestamp,
    pub(super) since: Instant,
    partial: String,
    arguments: Option<Value>,
}

impl Running {
    /// Returns the last line that the call has written.
    pub(super) fn last_line(&self) -> Option<String> {
        let line = self.partial.lines().rev().find(|it| !it.trim().is_empty());
        line.map(for_person)
    }
}

/// A call that has ended.
#[derive(Debug)]
struct Ended {
    number: usize,
    summary: String,
    arguments: Option<Value>,
    result: String,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    last_number: usize,
    pub(super) running: Vec<Running>,
    ended: VecDeque<Ended>,
    /// What the model says that it is doing.
    pub(super) intent: Option<String>,
}

impl Calls {
    pub(super) fn start(&mut self, start: &ToolStart, at: Timestamp) {
        if start.tool_name == INTENT {
            let intent = start.arguments.as_ref().and_then(|it| it.get("intent"));
            self.intent = intent.and_then(Value::as_str).map(for_person);
        }
        if TOLD.contains(&start.tool_name.as_str()) {
            return;
        }
        self.last_number += 1;
        self.running.push(Running {
            id: start.tool_call_id.clone(),
            number: self.last_number,
            summary: summary(start),
            name: start.tool_name.clone(),
            started: at,
            since: Instant::now(),
            partial: String::new(),
            arguments: start.arguments.clone(),
        });
    }

    pub(super) fn partial(&mut self, partial: &ToolPartial) {
        let running = self.running.iter_mut();
        for call in running.filter(|it| it.id == partial.tool_call_id) {
            call.partial.push_str(&partial.partial_output);
            let surplus = call.partial.len().saturating_sub(PARTIAL);
            let cut = (surplus..call.partial.len()).find(|at| call.partial.is_char_boundary(*at));
            call.partial.drain(..cut.unwrap_or(0));
        }
    }

    pub(super) fn forget_running(&mut self) {
        self.running.clear();
        self.intent = None;
    }

    /// Ends a call; returns the lines about it.
    pub(super) fn complete(&mut self, done: &ToolComplete, at: Timestamp) -> Vec<Line> {
        let position = self
            .running
            .iter()
            .position(|it| it.id == done.tool_call_id);
        let Some(call) = position.map(|position| self.running.remove(position)) else {
            return Vec::new();
        };
        let (result, detail) = match (&done.error, &done.result) {
            (Some(error), _) => (error.message.clone(), None),
            (None, Some(result)) => (result.content.clone(), result.detailed_content.clone()),
            (None, None) => (String::new(), None),
        };
        let time = Duration::from_millis(at.millis_since(call.started));
        let mark = if done.error.is_some() {
            Look::of(Colour::Red)
        } else {
            Look::of(Colour::Green)
        };
        let count = result.trim_end().lines().count();
        let size = counted(count, "line", "lines");
        let mut lines = vec![
            Line::of(mark, "● ")
                .with(Look::PLAIN, &call.summary)
                .with(
                    Look::DIM,
                    format!("  {size}, {} #{}", took(time), call.number),
                )
                .indented("", "  "),
        ];
        let detail = detail.filter(|detail| diff::is_diff(detail));
        let given = || diff_of(call.arguments.as_ref());
        if let Some(error) = &done.error {
            let most = match error.code.as_deref() {
                // Why a call did not run, and how to go on, is told in full.
                Some("denied") => usize::MAX,
                Some(_) | None => ERROR_LINES,
            };
            let text = for_person(&result);
            let shown = text.trim_end().lines();
            let shown =
                shown.map(|line| Line::of(Look::of(Colour::Red), line).indented("  ", "  "));
            fold(&mut lines, shown.collect(), most, call.number);
        } else if let Some(diff) = detail.clone().or_else(given) {
            fold(&mut lines, diff::lines(&diff), DIFF_LINES, call.number);
        } else if done.is_user_requested == Some(true) {
            fold(&mut lines, plain(&result), USER_LINES, call.number);
        }
        let result = match detail {
            Some(detail) => format!("{result}\n{detail}"),
            None => result,
        };
        self.ended.push_back(Ended {
            number: call.number,
            summary: format!("{}  {}", call.name, call.summary),
            arguments: call.arguments,
            result,
        });
        if self.ended.len() > KEPT {
            self.ended.pop_front();
        }
        lines
    }

    /// Returns all of a call: the one with this number, or the last one.
    pub(super) fn unfold(&self, number: Option<usize>) -> Option<Vec<Line>> {
        let call = match number {
            Some(number) => self.ended.iter().find(|call| call.number == number)?,
            None => self.ended.back()?,
        };
        let heading = format!("▾ #{} {}", call.number, call.summary);
        let mut lines = vec![Line::of(Look::BOLD, heading)];
        if let Some(arguments) = &call.arguments {
            let text = match arguments.get("command").and_then(Value::as_str) {
                Some(command) => command.to_owned(),
                None => format!("{arguments:#}"),
            };
            let text = for_person(&text);
            let shown = text.lines().map(|line| Line::of(Look::DIM, line));
            lines.extend(shown.map(|line| line.verbatim().indented("  ", "  ")));
        }
        let text = for_person(&call.result);
        let is_diff = diff::is_diff(&text);
        lines.extend(text.trim_end().lines().map(|line| {
            let line = if is_diff {
                diff::line(line)
            } else {
                Line::plain(line).verbatim()
            };
            line.indented("  ", "  ")
        }));
        Some(lines)
    }
}

fn plain(text: &str) -> Vec<Line> {
    let text = for_person(text);
    let lines = text.trim_end().lines();
    lines
        .map(|line| Line::plain(line).verbatim().indented("  ", "  "))
        .collect()
}

/// Adds the first lines, and says how the others can be seen.
fn fold(lines: &mut Vec<Line>, shown: Vec<Line>, most: usize, number: usize) {
    let more = shown.len().saturating_sub(most);
    lines.extend(shown.into_iter().take(most));
    if more > 0 {
        let more = counted(more, "more line", "more lines");
        let told = format!("  … {more}: Ctrl-O or /show {number}");
        lines.push(Line::of(Look::DIM, told));
    }
}

/// Returns what an editing tool replaces, as a diff.
fn diff_of(arguments: Option<&Value>) -> Option<String> {
    let text = |name: &str| arguments?.get(name)?.as_str();
    if let Some(patch) = text("patch").or_else(|| text("input")) {
        return diff::is_diff(patch).then(|| patch.to_owned());
    }
    let (old, new) = (text("old_str")?, text("new_str")?);
    let marked = |mark: char, text: &str| -> String {
        let lines = text.lines().map(|line| format!("{mark}{line}"));
        lines.collect::<Vec<_>>().join("\n") + "\n"
    };
    Some(marked('-', old) + &marked('+', new))
}
