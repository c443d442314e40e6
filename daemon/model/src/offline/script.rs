//! Reads a user message as commands for the offline model.
//!
//! Only `offline` calls it. A message is either commands from its first line to its last or no
//! command at all; nothing is carried out in part because of a misspelling.

use serde_json::{Value, json};

/// Notes that loopd wraps around a user's words; they are not instructions.
const WRAPPERS: [&str; 11] = [
    "current_datetime",
    "tools_changed_notice",
    "session_limits_status",
    "tagged_files",
    "github_references",
    "ide_selection",
    "reminder",
    "system_reminder",
    "system_notification",
    "agent_instructions",
    "task-notification",
];
const VERBS: [&str; 5] = ["run", "read", "find", "write", "ask"];
const SEPARATOR: &str = " then ";

/// What a user message asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Instruction {
    Commands(Vec<Step>),
    /// It begins with a command but holds a line that is none.
    HalfUnderstood {
        line: String,
    },
    Other(String),
}

/// One command and the call that carries it out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    /// The command as the user wrote it.
    pub(super) text: String,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
}

/// Reads a message; none when it says nothing besides wrapped notes.
pub(super) fn read(text: &str) -> Option<Instruction> {
    let text = without_wrappers(text);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        for command in split_commands(line) {
            match parse(command) {
                Some(step) => steps.push(step),
                None if steps.is_empty() => return Some(Instruction::Other(text.to_owned())),
                None => {
                    return Some(Instruction::HalfUnderstood {
                        line: command.to_owned(),
                    });
                }
            }
        }
    }
    Some(Instruction::Commands(steps))
}

/// Removes notes such as `<reminder>…</reminder>`, wherever they stand.
fn without_wrappers(text: &str) -> String {
    let mut rest = text.to_owned();
    for name in WRAPPERS {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        while let Some(start) = rest.find(&open) {
            let after = rest.get(start..).unwrap_or_default();
            let Some(length) = after.find(&close) else {
                break;
            };
            rest.replace_range(start..start + length + close.len(), "");
        }
    }
    rest
}

/// Cuts a line at each ` then ` that a verb follows: shell scripts use the word too.
fn split_commands(line: &str) -> Vec<&str> {
    let mut commands = Vec::new();
    let mut start = 0;
    for (position, _) in line.match_indices(SEPARATOR) {
        let next = position + SEPARATOR.len();
        let follows = line.get(next..).unwrap_or_default().trim_start();
        let word = follows
            .split(char::is_whitespace)
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if position >= start && VERBS.contains(&word.as_str()) {
            commands.extend(line.get(start..position));
            start = next;
        }
    }
    commands.extend(line.get(start..));
    commands.into_iter().map(str::trim).collect()
}

fn parse(command: &str) -> Option<Step> {
    let command = command.trim();
    let (verb, rest) = command.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return None;
    }
    let (tool, arguments) = match verb.to_ascii_lowercase().as_str() {
        "run" => (
            "bash",
            json!({ "command": rest, "description": "Run the user's command" }),
        ),
        "read" => ("view", json!({ "path": unquoted(rest) })),
        "find" if rest.contains(['*', '?', '[', '{']) => ("glob", json!({ "pattern": rest })),
        "find" => ("grep", json!({ "pattern": rest, "output_mode": "content" })),
        "write" => {
            let (path, text) = path_and_text(rest)?;
            (
                "create",
                json!({ "path": path, "file_text": text.replace("\\n", "\n") }),
            )
        }
        "ask" => ("ask_user", json!({ "question": rest })),
        _ => return None,
    };
    Some(Step {
        text: command.to_owned(),
        tool,
        arguments,
    })
}

fn unquoted(path: &str) -> &str {
    path.strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'))
        .unwrap_or(path)
}

/// Splits `<path> <text>`, where a quoted path may hold blanks.
fn path_and_text(rest: &str) -> Option<(&str, &str)> {
    let (path, text) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_once(char::is_whitespace)?,
    };
    let text = text.trim_start();
    (!path.is_empty() && !text.is_empty()).then_some((path, text))
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests fail by panicking")]
mod tests;
