//! Tasks for programs: a line of JSON for each, and for each change of one.

use std::collections::BTreeMap;

use loopd_sdk::TaskNode;
use serde_json::{Value, json};

use super::Seen;
use super::follow::View;
use crate::open::Desk;
use crate::outcome::Outcome;

pub(super) fn print(desk: &Desk, seen: &[Seen]) -> anyhow::Result<Outcome> {
    for (_, line) in all(seen)? {
        desk.terminal.answer(&format!("{line}\n"))?;
    }
    Ok(Outcome::Done)
}

/// Which task of which session.
type Key = (String, String);

/// What was said of each task last.
#[derive(Default)]
pub(super) struct Changes(BTreeMap<Key, Value>);

impl View for Changes {
    fn show(&mut self, desk: &Desk, seen: &[Seen]) -> anyhow::Result<()> {
        let mut left = std::mem::take(&mut self.0);
        for (key, line) in all(seen)? {
            let known = left.remove(&key);
            if known.is_none_or(|known| timeless(known) != timeless(line.clone())) {
                desk.terminal.answer(&format!("{line}\n"))?;
            }
            self.0.insert(key, line);
        }
        for (session, id) in left.into_keys() {
            let line = json!({"topSessionId": session, "id": id, "gone": true});
            desk.terminal.answer(&format!("{line}\n"))?;
        }
        Ok(())
    }
}

/// What a task is without the time it has worked, which changes while nothing happens.
fn timeless(mut line: Value) -> Value {
    if let Some(task) = line.get_mut("task").and_then(Value::as_object_mut) {
        task.remove("activeTimeMs");
    }
    line
}

fn all(seen: &[Seen]) -> anyhow::Result<Vec<(Key, Value)>> {
    let mut lines = Vec::new();
    for seen in seen {
        flatten(seen.session.id().as_str(), None, &seen.tasks, &mut lines)?;
    }
    Ok(lines)
}

/// Each task in a line of its own, those of an agent after it and with its id.
fn flatten(
    top: &str,
    parent: Option<&str>,
    tasks: &[TaskNode],
    lines: &mut Vec<(Key, Value)>,
) -> anyhow::Result<()> {
    for node in tasks {
        let alone = TaskNode {
            children: Vec::new(),
            ..node.clone()
        };
        let id = node.task.id().as_str();
        let mut line = json!({"topSessionId": top, "parentId": parent, "id": id});
        if let (Value::Object(line), Value::Object(more)) =
            (&mut line, serde_json::to_value(&alone)?)
        {
            line.extend(more);
        }
        lines.push(((top.to_owned(), id.to_owned()), line));
        flatten(top, Some(id), &node.children, lines)?;
    }
    Ok(())
}
