//! The todo list of a session, as clients read it.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::todo::{Todo, TodoDependency, TodoList};

/// A row of the table `todos`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoRow {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub status: &'static str,
    pub created_at: String,
}

/// The rows of `todos`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TodoRows {
    pub rows: Vec<TodoRow>,
}

/// The rows of `todos` and of `todo_deps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TodoRowsWithDependencies {
    pub rows: Vec<TodoRow>,
    pub dependencies: Vec<TodoDependency>,
}

/// The todo list, in its own order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodosListed {
    #[serde(flatten)]
    pub list: TodoList,
    /// How many entries are neither completed nor cancelled.
    pub remaining: usize,
}

impl From<&Todo> for TodoRow {
    fn from(todo: &Todo) -> Self {
        Self {
            id: todo.id.clone(),
            title: todo.content.clone(),
            description: todo.description.clone(),
            status: todo.status.in_sql(),
            created_at: todo.created_at.clone(),
        }
    }
}

impl From<&TodoList> for TodoRows {
    fn from(list: &TodoList) -> Self {
        let mut todos: Vec<&Todo> = list.todos.iter().collect();
        // The sort is stable: of two from the same second the first in the list stays first.
        todos.sort_by_key(|todo| todo.created_at.as_str());
        Self {
            rows: todos.into_iter().map(TodoRow::from).collect(),
        }
    }
}
