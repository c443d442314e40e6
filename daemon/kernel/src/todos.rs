//! The todo list of a session: its limits, and how a new list follows from what a model wrote.
//!
//! The list is a fold of `todo.updated`. `decide/todos.rs` decides about it.

use std::collections::BTreeSet;

use loopd_proto::event::todo::{Todo, TodoDependency, TodoList, TodoPriority, TodoStatus};
use loopd_proto::time::Timestamp;

/// The todo list, and how often it was changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Todos {
    pub list: TodoList,
    /// Counts the changes. Who changes a copy of the list says which one the copy was.
    pub revision: u64,
}

impl Todos {
    pub(super) fn updated(&mut self, list: &TodoList) {
        self.list = list.clone();
        self.revision += 1;
    }
}

/// The most entries of a list, and of its dependencies.
pub const MOST_TODOS: usize = 500;
pub const MOST_DEPENDENCIES: usize = 2000;
/// The longest texts, in bytes.
pub const LONGEST_ID: usize = 128;
pub const LONGEST_CONTENT: usize = 4 * 1024;
pub const LONGEST_DESCRIPTION: usize = 32 * 1024;
/// The most bytes of all texts together. Every change stores all of them.
pub const MOST_BYTES: usize = 256 * 1024;

/// An entry as a model writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoInput {
    /// Without an id, the entry with the same content is meant, or a new one.
    pub id: Option<String>,
    pub content: String,
    pub status: TodoStatus,
    /// Without a priority the entry keeps its own.
    pub priority: Option<TodoPriority>,
    /// Without a description the entry keeps its own.
    pub description: Option<String>,
    /// The entries that have to be done first. Without a list the entry keeps its own.
    pub depends_on: Option<Vec<String>>,
}

/// Why a todo list is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TodoProblem {
    #[error(
        "a todo list has at most {limit} entries, this one would have {count}; leave out what is done"
    )]
    TooMany { count: usize, limit: usize },
    #[error("a todo list has at most {limit} dependencies, this one would have {count}")]
    TooManyDependencies { count: usize, limit: usize },
    #[error(
        "the texts of the todo list would take {bytes} bytes, more than the limit of {limit}; make them shorter"
    )]
    TooLarge { bytes: usize, limit: usize },
    #[error(
        "the {what} of the todo {id:?} has {bytes} bytes, more than the limit of {limit}; make it shorter"
    )]
    TooLong {
        what: &'static str,
        id: String,
        bytes: usize,
        limit: usize,
    },
    #[error("a todo has no {0}; give it one")]
    Empty(&'static str),
    #[error("two todos have the id {0:?}; give each its own")]
    SameId(String),
    #[error("the todo {todo:?} depends on {on:?}, which is not in the list")]
    UnknownDependency { todo: String, on: String },
    #[error(
        "a fleet carries out the todo {0:?}: only its own worker ends it, and no worker removes it; leave it as it is"
    )]
    OfFleet(String),
    #[error(
        "a fleet carries out the todo {0:?}: no other worker changes what it depends on; leave its dependencies as they are"
    )]
    OrderOfFleet(String),
    #[error(
        "a fleet carries out the todo {0:?}: no other worker rewrites it; leave its title, description and priority as they are"
    )]
    TextOfFleet(String),
    #[error(
        "a fleet carries out the todos, and no worker has carried out {0:?}: add it as pending, so that one does"
    )]
    AddedAsOver(String),
    #[error("the todo {0:?} depends on itself")]
    DependsOnItself(String),
}

/// Checks the limits of a list.
pub fn check(list: &TodoList) -> Result<(), TodoProblem> {
    let (count, edges) = (list.todos.len(), list.dependencies.len());
    if count > MOST_TODOS {
        return Err(TodoProblem::TooMany {
            count,
            limit: MOST_TODOS,
        });
    }
    if edges > MOST_DEPENDENCIES {
        return Err(TodoProblem::TooManyDependencies {
            count: edges,
            limit: MOST_DEPENDENCIES,
        });
    }
    let mut bytes = 0;
    for todo in &list.todos {
        if todo.id.trim().is_empty() {
            return Err(TodoProblem::Empty("id"));
        }
        if todo.content.trim().is_empty() {
            return Err(TodoProblem::Empty("content"));
        }
        let description = todo.description.as_deref().unwrap_or_default();
        for (what, text, limit) in [
            ("id", todo.id.as_str(), LONGEST_ID),
            ("content", todo.content.as_str(), LONGEST_CONTENT),
            ("description", description, LONGEST_DESCRIPTION),
            ("creation time", todo.created_at.as_str(), LONGEST_ID),
        ] {
            bytes += text.len();
            if text.len() > limit {
                return Err(TodoProblem::TooLong {
                    what,
                    id: todo.id.chars().take(LONGEST_ID).collect(),
                    bytes: text.len(),
                    limit,
                });
            }
        }
    }
    for edge in &list.dependencies {
        bytes += edge.todo_id.len() + edge.depends_on.len();
    }
    if bytes > MOST_BYTES {
        return Err(TodoProblem::TooLarge {
            bytes,
            limit: MOST_BYTES,
        });
    }
    Ok(())
}

/// Returns the list that a model wrote in place of another. An entry that was there keeps what the
/// model did not write: its description, priority, dependencies and time.
pub fn rewritten(
    old: &TodoList,
    inputs: Vec<TodoInput>,
    now: Timestamp,
) -> Result<TodoList, TodoProblem> {
    // What is too long is refused before it is looked at.
    if inputs.len() > MOST_TODOS {
        return Err(TodoProblem::TooMany {
            count: inputs.len(),
            limit: MOST_TODOS,
        });
    }
    let wanted = inputs.iter().filter_map(|input| input.depends_on.as_ref());
    let wanted: usize = wanted.map(Vec::len).sum();
    if wanted > MOST_DEPENDENCIES {
        return Err(TodoProblem::TooManyDependencies {
            count: wanted,
            limit: MOST_DEPENDENCIES,
        });
    }
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for id in inputs.iter().filter_map(|input| input.id.as_ref()) {
        if !ids.insert(id.clone()) {
            return Err(TodoProblem::SameId(id.clone()));
        }
    }
    let mut free = FreeIds::of(old);
    let mut list = TodoList::default();
    for input in inputs {
        let known = match &input.id {
            Some(id) => old.get(id),
            None => old
                .todos
                .iter()
                .find(|todo| todo.content == input.content && !ids.contains(&todo.id)),
        };
        let id = match (&input.id, known) {
            (Some(id), _) => id.clone(),
            (None, Some(known)) => known.id.clone(),
            (None, None) => free.next(&ids),
        };
        ids.insert(id.clone());
        if let Some(wanted) = input.depends_on {
            for on in wanted {
                add(&mut list.dependencies, &id, &on);
            }
        } else {
            let edges = old.dependencies.iter().filter(|edge| edge.todo_id == id);
            list.dependencies.extend(edges.cloned());
        }
        list.todos.push(Todo {
            content: input.content,
            status: input.status,
            priority: input
                .priority
                .or(known.map(|known| known.priority))
                .unwrap_or_default(),
            description: input
                .description
                .or_else(|| known.and_then(|known| known.description.clone())),
            created_at: known.map_or_else(|| now.sql_text(), |known| known.created_at.clone()),
            id,
        });
    }
    let in_list = |id: &str| ids.contains(id);
    for edge in &list.dependencies {
        if edge.todo_id == edge.depends_on {
            return Err(TodoProblem::DependsOnItself(edge.todo_id.clone()));
        }
        if !in_list(&edge.depends_on) && !old.dependencies.contains(edge) {
            return Err(TodoProblem::UnknownDependency {
                todo: edge.todo_id.clone(),
                on: edge.depends_on.clone(),
            });
        }
    }
    // What depended on an entry that is gone no longer waits for it.
    list.dependencies.retain(|edge| in_list(&edge.depends_on));
    check(&list)?;
    Ok(list)
}

fn add(edges: &mut Vec<TodoDependency>, todo: &str, on: &str) {
    let edge = TodoDependency {
        todo_id: todo.to_owned(),
        depends_on: on.to_owned(),
    };
    if !edges.contains(&edge) {
        edges.push(edge);
    }
}

/// The ids of new entries: `1`, `2` and so on. Each number is looked at once.
struct FreeIds<'a> {
    old: BTreeSet<&'a str>,
    number: usize,
}

impl<'a> FreeIds<'a> {
    fn of(old: &'a TodoList) -> Self {
        Self {
            old: old.todos.iter().map(|todo| todo.id.as_str()).collect(),
            number: 0,
        }
    }

    /// Returns the next number that no entry has or had in this list.
    fn next(&mut self, taken: &BTreeSet<String>) -> String {
        loop {
            self.number += 1;
            let id = self.number.to_string();
            if !self.old.contains(id.as_str()) && !taken.contains(&id) {
                return id;
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
