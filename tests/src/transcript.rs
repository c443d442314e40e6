//! Renders events as text for comparison: one line each, with placeholders for what differs between
//! runs.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

/// Texts that differ between runs, and the placeholders that replace them in a transcript.
#[derive(Debug, Clone, Default)]
pub struct Scrub {
    texts: Vec<(String, &'static str)>,
}

impl Scrub {
    /// Replaces a text wherever it occurs.
    #[must_use]
    pub fn with(mut self, text: impl Into<String>, name: &'static str) -> Self {
        self.texts.push((text.into(), name));
        self
    }
}

/// Members whose values depend on the clock, the version or the length of our own texts.
const MEASURED: [&str; 12] = [
    "duration",
    "durationMs",
    "timeToFirstTokenMs",
    "currentTokens",
    "systemTokens",
    "conversationTokens",
    "toolDefinitionsTokens",
    "availableToolCount",
    "totalApiDurationMs",
    "sessionStartTime",
    "copilotVersion",
    "totalResponseSizeBytes",
];

/// Renders events, one per line; `~` marks ephemeral events.
pub fn render(events: &[Value], scrub: &Scrub) -> String {
    let mut ids = Ids::default();
    let mut text = String::new();
    for event in events {
        let mark = if event["ephemeral"] == true { "~ " } else { "" };
        let kind = event["type"].as_str().unwrap_or_default();
        let mut data = event["data"].clone();
        if kind == "system.message" {
            data["content"] = "<system>".into();
        }
        replace(&mut data, scrub, &mut ids);
        writeln!(text, "{mark}{kind} {data}").unwrap();
    }
    text
}

#[derive(Default)]
struct Ids(HashMap<String, usize>);

fn replace(value: &mut Value, scrub: &Scrub, ids: &mut Ids) {
    match value {
        Value::String(text) => *text = clean(text, scrub, ids),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, scrub, ids)),
        Value::Object(members) => {
            for (name, member) in members {
                if MEASURED.contains(&name.as_str()) {
                    *member = "<n>".into();
                } else {
                    replace(member, scrub, ids);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean(text: &str, scrub: &Scrub, ids: &mut Ids) -> String {
    if is_uuid(text) {
        let next = ids.0.len() + 1;
        return format!("<id {}>", ids.0.entry(text.to_owned()).or_insert(next));
    }
    if is_time(text) {
        return "<time>".to_owned();
    }
    let mut text = text.to_owned();
    for (what, name) in &scrub.texts {
        text = text.replace(what, name);
    }
    without_datetime(&text)
}

/// Replaces the time that every user message gives to the model.
fn without_datetime(text: &str) -> String {
    const OPEN: &str = "<current_datetime>";
    const CLOSE: &str = "</current_datetime>";
    match (text.find(OPEN), text.find(CLOSE)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}{OPEN}<time>{}", &text[..from], &text[to..])
        }
        _ => text.to_owned(),
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

fn is_time(text: &str) -> bool {
    text.len() >= 20 && loopd_proto::time::Timestamp::parse(text).is_some()
}
