//! The todo list of a session. Every change stores the whole list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The whole todo list, as of now. It is the data of `todo.updated`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoList {
    pub todos: Vec<Todo>,
    #[serde(default)]
    pub dependencies: Vec<TodoDependency>,
}

/// One entry of the list.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    pub id: String,
    /// What is to be done. The column `title` in SQL.
    pub content: String,
    pub status: TodoStatus,
    pub priority: TodoPriority,
    pub description: Option<String>,
    /// When the entry was made, in UTC: `YYYY-MM-DD HH:MM:SS`.
    pub created_at: String,
}

/// One entry has to be done before another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TodoDependency {
    /// The entry that waits.
    pub todo_id: String,
    /// The entry that it waits for.
    pub depends_on: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Blocked,
    Cancelled,
}

/// The status names: on the wire, and in SQL.
const STATUSES: [(TodoStatus, &str, &str); 5] = [
    (TodoStatus::Pending, "pending", "pending"),
    (TodoStatus::InProgress, "in_progress", "in_progress"),
    (TodoStatus::Completed, "completed", "done"),
    (TodoStatus::Blocked, "blocked", "blocked"),
    (TodoStatus::Cancelled, "cancelled", "cancelled"),
];

impl TodoStatus {
    /// Returns the name in SQL.
    pub fn in_sql(self) -> &'static str {
        let mut names = STATUSES.iter();
        let known = names.find(|(status, ..)| *status == self);
        known.map_or("pending", |(_, _, name)| name)
    }

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        let mut names = STATUSES.iter();
        let known = names.find(|(status, ..)| *status == self);
        known.map_or("pending", |(_, name, _)| name)
    }

    /// Reads either name.
    pub fn read(name: &str) -> Option<Self> {
        let mut names = STATUSES.iter();
        let known = names.find(|(_, wire, sql)| *wire == name || *sql == name);
        known.map(|(status, ..)| *status)
    }

    /// Lists the names in SQL, for errors.
    pub fn names_in_sql() -> String {
        let names: Vec<&str> = STATUSES.iter().map(|(_, _, name)| *name).collect();
        names.join(", ")
    }

    /// Returns whether nothing is left to do.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Cancelled)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoPriority {
    High,
    #[default]
    Medium,
    Low,
}

const PRIORITIES: [(TodoPriority, &str); 3] = [
    (TodoPriority::High, "high"),
    (TodoPriority::Medium, "medium"),
    (TodoPriority::Low, "low"),
];

impl TodoPriority {
    pub fn name(self) -> &'static str {
        let mut names = PRIORITIES.iter();
        let known = names.find(|(priority, _)| *priority == self);
        known.map_or("medium", |(_, name)| name)
    }

    pub fn read(name: &str) -> Option<Self> {
        let mut names = PRIORITIES.iter();
        names.find(|(_, it)| *it == name).map(|(it, _)| *it)
    }

    /// Lists the names, for errors.
    pub fn names() -> String {
        let names: Vec<&str> = PRIORITIES.iter().map(|(_, name)| *name).collect();
        names.join(", ")
    }
}

impl TodoList {
    pub fn get(&self, id: &str) -> Option<&Todo> {
        self.todos.iter().find(|todo| todo.id == id)
    }

    /// Counts the entries that are neither completed nor cancelled.
    pub fn remaining(&self) -> usize {
        let open = self.todos.iter().filter(|todo| !todo.status.is_over());
        open.count()
    }
}
