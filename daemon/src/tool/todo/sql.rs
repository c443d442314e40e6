//! `sql`: runs SQL on the session's own database, which has the todo list in two of its tables.

use loopd_kernel::policy::grant::Grant;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{SQL, words};
use crate::tool::{AssessContext, Need, Outcome, Tool, ToolContext};

/// The tool `sql`.
#[derive(Debug, Clone, Copy)]
pub(in crate::tool) struct Sql;

/// The database of a query. There is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Database {
    Session,
}

/// The arguments of `sql`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::tool) struct SqlArgs {
    /// What the query is for, in a few words for the user.
    #[serde(default)]
    #[expect(dead_code, reason = "clients show it with the call")]
    description: Option<String>,
    /// One or more SQLite statements, separated by semicolons.
    query: String,
    #[serde(default)]
    #[schemars(skip)]
    #[expect(dead_code, reason = "only the session's own database can be named")]
    database: Option<Database>,
}

impl Tool for Sql {
    type Args = SqlArgs;
    const NAME: &'static str = SQL;
    const DESCRIPTION: &'static str = "Runs SQLite statements on a small database of this session. All statements of a call are one transaction: if one fails, none counts.\n\
        - todos (id, title, description, status, priority, created_at) is the todo list. status is pending, in_progress, done, blocked or cancelled; priority is high, medium or low. Give ids that say something, such as parse-config, and put into description what is needed to do the work.\n\
        - todo_deps (todo_id, depends_on) says what has to be done first. What can be done now: SELECT * FROM todos WHERE status = 'pending' AND NOT EXISTS (SELECT 1 FROM todo_deps d JOIN todos t ON t.id = d.depends_on WHERE d.todo_id = todos.id AND t.status <> 'done')\n\
        - Set a todo to in_progress before you begin it and to done when it works.\n\
        - Make tables of your own for notes and for data that you want to query. No other files or databases can be reached.";

    async fn need(&self, args: &SqlArgs, _context: &AssessContext) -> Need {
        if args.query.trim().is_empty() {
            return Need::Refused(Outcome::failure("The query is empty. Pass a statement."));
        }
        Need::Nothing
    }

    async fn run(&self, _grant: &Grant, args: SqlArgs, context: &ToolContext) -> Outcome {
        match context
            .todos
            .query(args.query, context.cancel.clone())
            .await
        {
            Ok(answer) => words::answered(&answer),
            Err(failure) => Outcome::failure(format!("Nothing was changed: {failure}.")),
        }
    }
}
