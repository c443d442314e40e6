//! `todoread`: returns the todo list.

use loopd_kernel::policy::grant::Grant;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{TODO_READ, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};

/// The tool `todoread`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct TodoRead;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct TodoReadArgs {}

impl Tool for TodoRead {
    type Args = TodoReadArgs;
    const NAME: &'static str = TODO_READ;
    const DESCRIPTION: &'static str = "Returns the todo list of this session. Use it at the start of a conversation that goes on with earlier work, and when you are not sure what is left.";

    async fn need(&self, _args: &TodoReadArgs, _context: &AssessContext) -> Need {
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, _args: TodoReadArgs, context: &ToolContext) -> Outcome {
        match context.todos.read().await {
            Ok(list) => words::listed(&list),
            Err(failure) => Outcome::failure(format!("The todo list cannot be read: {failure}.")),
        }
    }
}
