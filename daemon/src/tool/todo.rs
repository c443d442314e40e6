//! The tools for the todo list: `todowrite` and `todoread` for the whole list, `sql` for the same list
//! as tables. `session` keeps the list; these tools reach it through [`TodoAccess`].

mod read;
mod sql;
mod words;
mod write;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use futures::future::BoxFuture;
use loopd_kernel::todos::TodoInput;
use loopd_proto::event::todo::TodoList;
use loopd_store::todos::StatementResult;
use tokio_util::sync::CancellationToken;

pub(super) use read::TodoRead;
pub(super) use sql::Sql;
pub(super) use write::TodoWrite;

pub const TODO_WRITE: &str = "todowrite";
pub const TODO_READ: &str = "todoread";
pub const SQL: &str = "sql";
/// The tools that use the list.
pub const NAMES: [&str; 3] = [TODO_WRITE, TODO_READ, SQL];

/// The todo list that a session works with: its own, or that of the session at the top.
pub trait TodoAccess: Send + Sync + 'static {
    fn read(&self) -> BoxFuture<'_, Result<TodoList, TodoFailure>>;

    /// Replaces the list, and returns it as it is stored.
    fn write(&self, inputs: Vec<TodoInput>) -> BoxFuture<'_, Result<TodoList, TodoFailure>>;

    /// Runs SQL on the database of the session. A changed list is in the log when this resolves.
    fn query(
        &self,
        query: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<SqlAnswer, TodoFailure>>;
}

/// What a query did.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlAnswer {
    pub results: Vec<StatementResult>,
    /// A note about the database, for example that it had to be made anew.
    pub note: Option<String>,
    /// How many todos are left, if the list was changed.
    pub remaining: Option<usize>,
}

/// Why a todo list was not read or changed, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TodoFailure(pub String);

/// Access to the todo list of a session; cheap to clone.
#[derive(Clone)]
pub struct SessionTodos(Arc<dyn TodoAccess>);

impl SessionTodos {
    pub fn new(access: impl TodoAccess) -> Self {
        Self(Arc::new(access))
    }
}

impl Deref for SessionTodos {
    type Target = dyn TodoAccess;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl fmt::Debug for SessionTodos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTodos")
    }
}
