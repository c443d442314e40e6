//! `loop todos`: the todo list of a session.

use loopd_sdk::proto::event::todo::{Todo, TodoList, TodoStatus};

use super::queue::join;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::sanitize;

pub(crate) async fn run(app: &App, session: Option<&str>) -> anyhow::Result<Outcome> {
    let client = app.connect().await?;
    let session = join(app, &client, session).await?;
    let list = session.todos().await;
    drop(session);
    client.close().await;
    let list = list?;
    if app.options.json {
        for todo in &list.todos {
            app.terminal.print(&(serde_json::to_string(todo)? + "\n"))?;
        }
        return Ok(Outcome::Done);
    }
    if list.todos.is_empty() {
        app.terminal.notice("the session has no todos");
    }
    for todo in &list.todos {
        app.terminal.print(&(row(todo, &list) + "\n"))?;
    }
    Ok(Outcome::Done)
}

/// Describes an entry in one line, with what it waits for.
fn row(todo: &Todo, list: &TodoList) -> String {
    let mark = match todo.status {
        TodoStatus::Pending => ' ',
        TodoStatus::InProgress => '>',
        TodoStatus::Completed => 'x',
        TodoStatus::Blocked => '!',
        TodoStatus::Cancelled => '-',
    };
    let waits = list.dependencies.iter();
    let waits = waits.filter(|it| it.todo_id == todo.id);
    let waits: Vec<&str> = waits.map(|it| it.depends_on.as_str()).collect();
    let waits = match waits.as_slice() {
        [] => String::new(),
        ids => format!("  (after {})", ids.join(", ")),
    };
    let text = todo.content.replace('\n', " ");
    sanitize(&format!("[{mark}] {}  {text}{waits}", todo.id))
}

#[cfg(test)]
mod tests {
    use loopd_sdk::proto::event::todo::{TodoDependency, TodoPriority};

    use super::*;

    #[test]
    fn an_entry_is_shown_with_its_state_and_what_it_waits_for() {
        let todo = Todo {
            id: "two".to_owned(),
            content: "Bake\nbread".to_owned(),
            status: TodoStatus::InProgress,
            priority: TodoPriority::default(),
            description: None,
            created_at: String::new(),
        };
        let list = TodoList {
            todos: vec![todo.clone()],
            dependencies: vec![TodoDependency {
                todo_id: "two".to_owned(),
                depends_on: "one".to_owned(),
            }],
        };
        assert_eq!(row(&todo, &list), "[>] two  Bake bread  (after one)");
    }
}
