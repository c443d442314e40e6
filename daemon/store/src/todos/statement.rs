//! Runs the statements of one query and keeps a bounded part of what they return.

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Error, Statement};

use super::SqlError;

/// The most statements of one query.
const MOST_STATEMENTS: usize = 100;
/// The most rows that one query returns.
const MOST_ROWS: usize = 200;
/// The most bytes of text that one query returns, and those of one value.
const MOST_BYTES: usize = 48 * 1024;
const LONGEST_CELL: usize = 4 * 1024;

/// A value of a returned row.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    Null,
    Integer(i64),
    Real(f64),
    /// A text, or its beginning with the length of the whole.
    Text {
        text: String,
        cut_from: Option<usize>,
    },
    /// The length of a blob.
    Blob(usize),
}

/// What one statement did.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementResult {
    /// The first word of the statement, in capitals.
    pub verb: String,
    pub effect: StatementEffect,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatementEffect {
    /// The statement returned rows.
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<SqlValue>>,
        /// Whether there were more rows than are returned.
        more: bool,
    },
    Inserted {
        count: u64,
        last_id: i64,
    },
    Updated(u64),
    Deleted(u64),
    /// The statement changed tables, or nothing.
    Schema,
}

pub(super) enum Failure {
    Own(SqlError),
    Sqlite { number: usize, error: Error },
}

/// What may still be returned.
struct Budget {
    rows: usize,
    bytes: usize,
}

pub(super) fn run_all(
    connection: &Connection,
    query: &str,
) -> Result<Vec<StatementResult>, Failure> {
    let mut results = Vec::new();
    let mut budget = Budget {
        rows: MOST_ROWS,
        bytes: MOST_BYTES,
    };
    let mut batch = Batch::new(connection, query);
    loop {
        let number = results.len() + 1;
        let failed = |error| Failure::Sqlite { number, error };
        let Some(mut statement) = batch.next().map_err(failed)? else {
            break;
        };
        if number > MOST_STATEMENTS {
            return Err(Failure::Own(SqlError::TooManyStatements {
                limit: MOST_STATEMENTS,
            }));
        }
        let result = run(connection, &mut statement, &mut budget).map_err(failed)?;
        results.push(result);
    }
    if results.is_empty() {
        return Err(Failure::Own(SqlError::Empty));
    }
    Ok(results)
}

fn run(
    connection: &Connection,
    statement: &mut Statement<'_>,
    budget: &mut Budget,
) -> Result<StatementResult, Error> {
    let verb = verb(&statement.expanded_sql().unwrap_or_default());
    if statement.column_count() > 0 {
        let effect = rows(statement, budget)?;
        return Ok(StatementResult { verb, effect });
    }
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    drop(rows);
    let changes = connection.changes();
    let effect = match verb.as_str() {
        "INSERT" | "REPLACE" => StatementEffect::Inserted {
            count: changes,
            last_id: connection.last_insert_rowid(),
        },
        "UPDATE" => StatementEffect::Updated(changes),
        "DELETE" => StatementEffect::Deleted(changes),
        // What a WITH leads to is not the first word.
        "WITH" if !statement.readonly() => StatementEffect::Updated(changes),
        _ => StatementEffect::Schema,
    };
    Ok(StatementResult { verb, effect })
}

fn rows(statement: &mut Statement<'_>, budget: &mut Budget) -> Result<StatementEffect, Error> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut kept = Vec::new();
    let mut more = false;
    let mut found = statement.raw_query();
    // A statement that changes rows has changed them all when its first row comes.
    while let Some(row) = found.next()? {
        if budget.rows == 0 || budget.bytes == 0 {
            more = true;
            break;
        }
        budget.rows -= 1;
        let mut values = Vec::new();
        for index in 0..columns.len() {
            let value = value(row.get_ref(index)?, budget.bytes);
            if let SqlValue::Text { text, .. } = &value {
                budget.bytes = budget.bytes.saturating_sub(text.len());
            }
            values.push(value);
        }
        kept.push(values);
    }
    Ok(StatementEffect::Rows {
        columns,
        rows: kept,
        more,
    })
}

fn value(value: ValueRef<'_>, left: usize) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let mut end = LONGEST_CELL.min(left).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            SqlValue::Text {
                cut_from: (end < text.len()).then_some(text.len()),
                text: text.get(..end).unwrap_or_default().to_owned(),
            }
        }
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.len()),
    }
}

/// Returns the first word of a statement, in capitals.
fn verb(sql: &str) -> String {
    let mut rest = sql.trim_start();
    loop {
        let skipped = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            break;
        };
        rest = skipped.trim_start();
    }
    let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next();
    word.unwrap_or_default().to_ascii_uppercase()
}

/// Returns what SQLite says about an error, without the statement.
pub(super) fn message(error: &Error) -> String {
    match error {
        Error::SqliteFailure(_, Some(text)) | Error::SqlInputError { msg: text, .. } => {
            text.clone()
        }
        other => other.to_string(),
    }
}
