//! The tables `todos` and `todo_deps`: the todo list as rows.

use loopd_proto::event::todo::{Todo, TodoDependency, TodoList, TodoPriority, TodoStatus};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::{SqlError, statement, unusable};

pub(super) const TODOS: &str = "todos";
pub(super) const TODO_DEPS: &str = "todo_deps";

/// The most rows that are read; a list that long is refused later.
const MOST_ROWS: u32 = 10_000;

const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS todos (
        id TEXT PRIMARY KEY NOT NULL,
        title TEXT NOT NULL,
        description TEXT,
        status TEXT NOT NULL DEFAULT 'pending',
        priority TEXT NOT NULL DEFAULT 'medium',
        created_at TEXT NOT NULL DEFAULT (datetime('now'))
    );
    CREATE TABLE IF NOT EXISTS todo_deps (
        todo_id TEXT NOT NULL,
        depends_on TEXT NOT NULL,
        PRIMARY KEY (todo_id, depends_on)
    );
";

const READ_TODOS: &str = "SELECT id, title, description, status, priority, created_at FROM todos ORDER BY rowid LIMIT ?1";
const READ_DEPS: &str = "SELECT todo_id, depends_on FROM todo_deps ORDER BY rowid LIMIT ?1";

/// Makes the tables where they are missing, and makes sure that they are ours.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(CREATE)?;
    // A file of somebody else may have other columns; then these fail.
    connection.prepare(READ_TODOS)?;
    connection.prepare(READ_DEPS)?;
    Ok(())
}

/// Makes the tables equal to a list.
pub(super) fn bring_up(connection: &Connection, list: &TodoList) -> rusqlite::Result<()> {
    if read(connection).is_ok_and(|rows| rows.list == *list && rows.is_canonical) {
        return Ok(());
    }
    write(connection, list)
}

fn write(connection: &Connection, list: &TodoList) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM todos; DELETE FROM todo_deps;")?;
    let mut insert = connection.prepare(
        "INSERT INTO todos (id, title, description, status, priority, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for todo in &list.todos {
        insert.execute((
            &todo.id,
            &todo.content,
            &todo.description,
            todo.status.in_sql(),
            todo.priority.name(),
            &todo.created_at,
        ))?;
    }
    let mut insert = connection
        .prepare("INSERT OR IGNORE INTO todo_deps (todo_id, depends_on) VALUES (?1, ?2)")?;
    for edge in &list.dependencies {
        insert.execute((&edge.todo_id, &edge.depends_on))?;
    }
    Ok(())
}

/// The rows as a list.
struct Rows {
    list: TodoList,
    /// Whether every row has the names that we write.
    is_canonical: bool,
}

/// Reads the list after SQL of a model, and writes names that have another spelling as we do.
pub(super) fn read_checked(connection: &Connection) -> Result<TodoList, SqlError> {
    let rows = read(connection)?;
    if !rows.is_canonical {
        write(connection, &rows.list).map_err(|error| unusable(&error))?;
    }
    Ok(rows.list)
}

fn read(connection: &Connection) -> Result<Rows, SqlError> {
    let mut rows = Rows {
        list: TodoList::default(),
        is_canonical: true,
    };
    let found = each(connection, READ_TODOS, |row| {
        let id = text(row, 0, "todos.id")?;
        let status = text(row, 3, "todos.status")?;
        let priority = text(row, 4, "todos.priority")?;
        let todo = Todo {
            content: text(row, 1, "todos.title")?,
            description: optional(row, 2, "todos.description")?,
            status: TodoStatus::read(&status).ok_or_else(|| {
                let names = TodoStatus::names_in_sql();
                SqlError::BadValue(format!(
                    "todos.status of {id:?} would be {status:?}; it is one of {names}"
                ))
            })?,
            priority: TodoPriority::read(&priority).ok_or_else(|| {
                let names = TodoPriority::names();
                SqlError::BadValue(format!(
                    "todos.priority of {id:?} would be {priority:?}; it is one of {names}"
                ))
            })?,
            created_at: text(row, 5, "todos.created_at")?,
            id,
        };
        rows.is_canonical &= todo.status.in_sql() == status && todo.priority.name() == priority;
        rows.list.todos.push(todo);
        Ok(())
    })?;
    let edges = each(connection, READ_DEPS, |row| {
        rows.list.dependencies.push(TodoDependency {
            todo_id: text(row, 0, "todo_deps.todo_id")?,
            depends_on: text(row, 1, "todo_deps.depends_on")?,
        });
        Ok(())
    })?;
    if found > MOST_ROWS || edges > MOST_ROWS {
        return Err(SqlError::BadValue(format!(
            "todos and todo_deps would have more than {MOST_ROWS} rows"
        )));
    }
    Ok(rows)
}

/// Reads rows one by one and counts them.
fn each(
    connection: &Connection,
    query: &str,
    mut take: impl FnMut(&Row<'_>) -> Result<(), SqlError>,
) -> Result<u32, SqlError> {
    let failed = |error: rusqlite::Error| SqlError::Unusable(statement::message(&error));
    let mut read = connection.prepare(query).map_err(failed)?;
    let mut rows = read.query([MOST_ROWS + 1]).map_err(failed)?;
    let mut count = 0;
    while let Some(row) = rows.next().map_err(failed)? {
        count += 1;
        take(row)?;
    }
    Ok(count)
}

fn optional(row: &Row<'_>, index: usize, column: &str) -> Result<Option<String>, SqlError> {
    let not_text = || SqlError::BadValue(format!("{column} has to be text"));
    match row.get_ref(index) {
        Ok(ValueRef::Null) => Ok(None),
        Ok(ValueRef::Text(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(not_text()),
        },
        Ok(_) | Err(_) => Err(not_text()),
    }
}

fn text(row: &Row<'_>, index: usize, column: &str) -> Result<String, SqlError> {
    optional(row, index, column)?
        .ok_or_else(|| SqlError::BadValue(format!("{column} has to be text")))
}
