//! What the todo tools answer.

use std::fmt::Write as _;

use loopd_proto::event::todo::{TodoList, TodoPriority, TodoStatus};
use loopd_store::todos::{SqlValue, StatementEffect, StatementResult};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::SqlAnswer;
use crate::tool::{Outcome, texts};

/// An entry of the list, as models read it.
#[derive(Serialize)]
struct ListedTodo<'a> {
    id: &'a str,
    content: &'a str,
    status: TodoStatus,
    priority: TodoPriority,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<&'a str>,
}

/// Returns the list as JSON, for people as lines, and the count of what is left as the title.
pub(super) fn listed(list: &TodoList) -> Outcome {
    let mut entries = Vec::new();
    let mut lines = title(list.remaining());
    for todo in &list.todos {
        let on = list.dependencies.iter();
        let on = on.filter(|edge| edge.todo_id == todo.id);
        // Writing to a string cannot fail.
        write!(lines, "\n[{}] {}", todo.status.in_sql(), todo.content).ok();
        entries.push(ListedTodo {
            id: &todo.id,
            content: &todo.content,
            status: todo.status,
            priority: todo.priority,
            description: todo.description.as_deref(),
            depends_on: on.map(|edge| edge.depends_on.as_str()).collect(),
        });
    }
    let text = serde_json::to_string_pretty(&entries).unwrap_or_default();
    Outcome::success(text)
        .with_detail(lines)
        .with_facts(titled(list.remaining()))
}

fn title(remaining: usize) -> String {
    match remaining {
        1 => "1 todo left".to_owned(),
        count => format!("{count} todos left"),
    }
}

fn titled(remaining: usize) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("properties".to_owned(), json!({"title": title(remaining)}));
    facts.insert("metrics".to_owned(), json!({"remaining": remaining}));
    facts
}

/// Returns what the statements of a query did.
pub(super) fn answered(answer: &SqlAnswer) -> Outcome {
    let mut text = match answer.results.as_slice() {
        [one] => done(one),
        several => {
            let mut text = format!("Executed {} statement(s):", several.len());
            for (number, result) in (1..).zip(several) {
                let lines = done(result).replace('\n', "\n   ");
                // Writing to a string cannot fail.
                write!(text, "\n\n{number}. {}\n   {lines}", result.verb).ok();
            }
            text
        }
    };
    if let Some(note) = &answer.note {
        text = format!("{note}\n\n{text}");
    }
    let outcome = Outcome::success(text);
    match answer.remaining {
        Some(remaining) => outcome.with_facts(titled(remaining)),
        None => outcome,
    }
}

fn done(result: &StatementResult) -> String {
    match &result.effect {
        StatementEffect::Inserted { count, last_id } => {
            format!("{count} row(s) inserted. Last inserted row ID: {last_id}.")
        }
        StatementEffect::Updated(count) => format!("{count} row(s) updated."),
        StatementEffect::Deleted(count) => format!("{count} row(s) deleted."),
        StatementEffect::Schema => "Schema operation completed successfully.".to_owned(),
        StatementEffect::Rows {
            columns,
            rows,
            more,
        } => table(columns, rows, *more),
    }
}

fn table(columns: &[String], rows: &[Vec<SqlValue>], more: bool) -> String {
    if rows.is_empty() && !more {
        return "0 row(s) returned.".to_owned();
    }
    let line = |cells: Vec<String>| format!("\n| {} |", cells.join(" | "));
    let mut text = format!("{} row(s) returned:\n", rows.len());
    text += &line(columns.iter().map(|name| cell(name)).collect());
    text += &line(columns.iter().map(|_| "---".to_owned()).collect());
    for row in rows {
        text += &line(row.iter().map(shown).collect());
    }
    if more {
        text += "\n(There are more rows. Ask for fewer columns, or use WHERE, LIMIT and OFFSET.)";
    }
    text
}

fn shown(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => "NULL".to_owned(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text {
            text,
            cut_from: None,
        } => cell(text),
        SqlValue::Text {
            text,
            cut_from: Some(bytes),
        } => format!("{}... [cut, {bytes} bytes in all]", cell(text)),
        SqlValue::Blob(bytes) => format!("<blob of {bytes} bytes>"),
    }
}

/// Writes a text so that it stays in its cell.
fn cell(text: &str) -> String {
    texts::listed(text).replace('|', "\\|")
}
