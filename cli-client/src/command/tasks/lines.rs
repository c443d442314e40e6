//! The tasks as JSON: a line for each task, and for each change of a task.

use std::collections::BTreeMap;

use loopd_sdk::TaskNode;
use serde_json::{Value, json};

use super::follow::View;
use super::{WatchedSession, shown_id};
use crate::app::App;
use crate::outcome::Outcome;

pub(super) fn print(app: &App, watched: &[WatchedSession]) -> anyhow::Result<Outcome> {
    for (_, line) in all(watched)? {
        app.terminal.print(&format!("{line}\n"))?;
    }
    Ok(Outcome::Done)
}

/// The ids of the session and of the task.
type Key = (String, String);

/// The last line that was printed of each task.
#[derive(Default)]
pub(super) struct Changes(BTreeMap<Key, Value>);

impl View for Changes {
    fn show(&mut self, app: &App, watched: &[WatchedSession]) -> anyhow::Result<()> {
        let mut left = std::mem::take(&mut self.0);
        for (key, line) in all(watched)? {
            let known = left.remove(&key);
            if known.is_none_or(|known| without_time(known) != without_time(line.clone())) {
                app.terminal.print(&format!("{line}\n"))?;
            }
            self.0.insert(key, line);
        }
        for (session, id) in left.into_keys() {
            let line = json!({"topSessionId": session, "id": id, "gone": true});
            app.terminal.print(&format!("{line}\n"))?;
        }
        Ok(())
    }
}

/// Removes the active time, which changes all the time and is not worth a line.
fn without_time(mut line: Value) -> Value {
    if let Some(task) = line.get_mut("task").and_then(Value::as_object_mut) {
        task.remove("activeTimeMs");
    }
    line
}

fn all(watched: &[WatchedSession]) -> anyhow::Result<Vec<(Key, Value)>> {
    let mut lines = Vec::new();
    for watched in watched {
        flatten(
            watched.session.id().as_str(),
            None,
            &watched.tasks,
            &mut lines,
        )?;
    }
    Ok(lines)
}

/// Makes a line of each task. The tasks of an agent follow it and name it as their parent.
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
        let shown = shown_id(parent, node);
        let mut line = json!({"topSessionId": top, "parentId": parent, "id": shown});
        if let (Value::Object(line), Value::Object(more)) =
            (&mut line, serde_json::to_value(&alone)?)
        {
            line.extend(more);
        }
        lines.push(((top.to_owned(), shown), line));
        flatten(top, Some(node.task.id().as_str()), &node.children, lines)?;
    }
    Ok(())
}
