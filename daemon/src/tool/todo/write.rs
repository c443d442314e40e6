//! `todowrite`: replaces the todo list.

use loopd_kernel::policy::grant::Grant;
use loopd_kernel::todos::TodoInput;
use loopd_proto::event::todo::{TodoPriority, TodoStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{TODO_WRITE, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};

/// The tool `todowrite`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct TodoWrite;

/// The arguments of `todowrite`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct TodoWriteArgs {
    /// The whole list. It replaces the list that there is.
    todos: Vec<WrittenTodo>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct WrittenTodo {
    /// A short id of your own; keep it when you write the list again.
    #[serde(default)]
    id: Option<String>,
    /// What is to be done, in one line.
    content: String,
    /// How far it is. Only one should be in_progress.
    #[serde(default)]
    status: TodoStatus,
    /// How important it is; medium by default.
    #[serde(default)]
    priority: Option<TodoPriority>,
    /// More about it, if one line is not enough.
    #[serde(default)]
    description: Option<String>,
    /// The ids of todos that have to be completed first.
    #[serde(default, alias = "dependsOn")]
    depends_on: Option<Vec<String>>,
}

impl From<WrittenTodo> for TodoInput {
    fn from(todo: WrittenTodo) -> Self {
        Self {
            id: todo.id,
            content: todo.content,
            status: todo.status,
            priority: todo.priority,
            description: todo.description,
            depends_on: todo.depends_on,
        }
    }
}

impl Tool for TodoWrite {
    type Args = TodoWriteArgs;
    const NAME: &'static str = TODO_WRITE;
    const DESCRIPTION: &'static str = "Writes the todo list of this session, which the user sees. Pass the whole list each time; what you leave out is removed.\n\
        - Make a list for work with three or more steps, for several requests at once, and when the user asks for one. Do without it for a single simple step and for plain questions.\n\
        - Set an entry to in_progress before you begin it, one at a time where possible, and to completed as soon as it is done, not in batches at the end.\n\
        - Completed means that it works. Keep an entry in_progress or set it to blocked while errors are unsolved, and add what you find on the way.\n\
        - Set what is no longer wanted to cancelled.\n\
        - Keep entries short. The list is also the tables todos and todo_deps of the tool sql.";

    async fn need(&self, _args: &TodoWriteArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: TodoWriteArgs, context: &ToolContext) -> Outcome {
        let inputs = args.todos.into_iter().map(TodoInput::from).collect();
        match context.todos.write(inputs).await {
            Ok(list) => words::listed(&list),
            Err(failure) => Outcome::failure(format!("The todo list was not changed: {failure}.")),
        }
    }
}
