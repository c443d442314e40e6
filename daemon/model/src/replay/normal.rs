//! The form in which conversations are compared: what differs from run to run is taken out.
//!
//! Taken out are the system message's words, the time, reminders, the working directory, the ids of
//! calls and the order of results that belong to one turn. Everything else has to be equal.

use std::collections::HashMap;

use serde_json::Value;

use loopd_kernel::model::{ModelMessage, Part};

use super::conversation::{RecordedCall, RecordedFunction, RecordedMessage, Role};

/// Stands for the working directory.
pub(super) const WORKDIR: &str = "${workdir}";
/// Stands for the system message.
pub(super) const SYSTEM: &str = "${system}";
/// Stands for an image.
const IMAGE: &str = "[image]";
/// Stands for a document.
const DOCUMENT: &str = "[document]";
/// Blocks of a user message that we add and that change with the time.
const TRANSIENT_BLOCKS: [&str; 4] = [
    "current_datetime",
    "reminder",
    "system_reminder",
    "agent_instructions",
];

/// Writes a request's messages in the normal form.
pub(super) fn of_request(messages: &[ModelMessage], cwd: &str) -> Vec<RecordedMessage> {
    let messages = messages.iter().map(|message| match message {
        ModelMessage::System(_) => RecordedMessage {
            role: Role::System,
            content: Some(SYSTEM.to_owned()),
            ..RecordedMessage::default()
        },
        ModelMessage::User(parts) => RecordedMessage {
            role: Role::User,
            content: Some(user_text(parts)),
            ..RecordedMessage::default()
        },
        ModelMessage::Assistant(turn) => RecordedMessage {
            role: Role::Assistant,
            content: Some(turn.text.clone()),
            tool_calls: turn
                .calls
                .iter()
                .map(|call| RecordedCall {
                    id: call.id.to_string(),
                    kind: "function".to_owned(),
                    function: RecordedFunction {
                        name: call.name.clone(),
                        arguments: call.arguments.to_string(),
                    },
                })
                .collect(),
            tool_call_id: None,
        },
        ModelMessage::ToolResult { call, text } => RecordedMessage {
            role: Role::Tool,
            content: Some(text.clone()),
            tool_call_id: Some(call.to_string()),
            ..RecordedMessage::default()
        },
    });
    normal(messages.collect(), cwd)
}

/// Brings messages, recorded or not, into the normal form.
pub(super) fn normal(messages: Vec<RecordedMessage>, cwd: &str) -> Vec<RecordedMessage> {
    let mut out: Vec<RecordedMessage> = Vec::with_capacity(messages.len());
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for mut message in messages {
        message.content = Some(content(&message, cwd));
        for call in &mut message.tool_calls {
            let next = numbers.len();
            let number = *numbers.entry(call.id.clone()).or_insert(next);
            call.id = call_name(number);
            call.function.arguments = arguments(&call.function.arguments, cwd);
        }
        if let Some(id) = &mut message.tool_call_id {
            let next = numbers.len();
            let number = *numbers.entry(id.clone()).or_insert(next);
            *id = call_name(number);
        }
        match out.last_mut() {
            // A turn may be recorded as several messages.
            Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
                let more = message.content.unwrap_or_default();
                last.content.get_or_insert_default().push_str(&more);
                last.tool_calls.append(&mut message.tool_calls);
            }
            _ => out.push(message),
        }
    }
    for run in out.chunk_by_mut(|one, next| one.role == Role::Tool && next.role == Role::Tool) {
        run.sort_by_key(position);
    }
    out
}

fn call_name(number: usize) -> String {
    format!("toolcall_{number}")
}

fn position(message: &RecordedMessage) -> Option<usize> {
    let id = message.tool_call_id.as_deref()?;
    id.strip_prefix("toolcall_")?.parse().ok()
}

fn content(message: &RecordedMessage, cwd: &str) -> String {
    let text = message.content.clone().unwrap_or_default();
    match message.role {
        Role::System => SYSTEM.to_owned(),
        Role::User => with_workdir(&without_transient_blocks(text), cwd)
            .trim()
            .to_owned(),
        Role::Assistant | Role::Tool => with_workdir(&text, cwd),
    }
}

fn user_text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => text.trim(),
            Part::Image { .. } => IMAGE,
            Part::Document { .. } => DOCUMENT,
        })
        .collect();
    texts.join("\n")
}

fn without_transient_blocks(mut text: String) -> String {
    for tag in TRANSIENT_BLOCKS {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        while let Some(start) = text.find(&open) {
            let Some(length) = text.get(start..).and_then(|rest| rest.find(&close)) else {
                break;
            };
            text.replace_range(start..start + length + close.len(), "");
        }
    }
    match text.trim_start().strip_prefix("[[PLAN]]") {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

fn with_workdir(text: &str, cwd: &str) -> String {
    if cwd.len() < 2 {
        return text.to_owned();
    }
    text.replace(cwd, WORKDIR)
}

/// Arguments as they compare: the same JSON is the same, however it is spaced.
fn arguments(raw: &str, cwd: &str) -> String {
    let text = with_workdir(raw, cwd);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => sorted(value).to_string(),
        Err(_) => text,
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members
                .into_iter()
                .map(|(name, value)| (name, sorted(value)))
                .collect();
            members.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
