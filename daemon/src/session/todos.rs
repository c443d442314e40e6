//! The todo list of a session for its tools. The list itself is in the state; the database file
//! shows it as tables, and is opened when SQL is first run.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::todo::TodoList;
use loopd_proto::id::TaskId;
use loopd_store::todos::{Opened, SqlError, SqlRun, TodoDatabase};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::{SessionError, SessionHandle};
use crate::tool::todo::{SessionTodos, SqlAnswer, TODO_WRITE, TodoAccess, TodoFailure};
use loopd_kernel::command::{Command, Refusal};
use loopd_kernel::todos::TodoInput;

/// How often a query is run again because the list was changed meanwhile.
const MOST_TRIES: u32 = 5;

/// The database of a session. Whoever runs SQL holds the lock.
#[derive(Clone)]
pub(super) struct SqlCell {
    folder: PathBuf,
    open: Arc<Mutex<Option<TodoDatabase>>>,
}

impl SqlCell {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            open: Arc::default(),
        }
    }
}

/// The list of one session.
struct OwnedTodos {
    owner: SessionHandle,
    /// The sub-agent that works with the list of another session.
    by: Option<TaskId>,
}

impl Actor {
    /// Returns the list that this session works with. A sub-agent works with the list of the session
    /// at the top, unless it may write a list of its own.
    pub(super) fn session_todos(&self) -> SessionTodos {
        let own = SessionHandle {
            id: self.state.id.clone(),
            mailbox: self.mailbox.clone(),
        };
        let has_own =
            |tools: &super::toolset::Toolset<'_>| tools.names().any(|it| it == TODO_WRITE);
        let task = self.state.subagent.as_ref().map(|own| own.task.clone());
        let (owner, by) = match self.subagents.parent() {
            Some(parent) if !has_own(&self.toolset()) => (parent.tree().top.clone(), task),
            Some(_) | None => (own, None),
        };
        SessionTodos::new(OwnedTodos { owner, by })
    }
}

impl TodoAccess for OwnedTodos {
    fn read(&self) -> BoxFuture<'_, Result<TodoList, TodoFailure>> {
        let list = self.owner.state(|state| state.todos.list.clone());
        async { list.await.map_err(|error| failure(&error)) }.boxed()
    }

    fn write(&self, inputs: Vec<TodoInput>) -> BoxFuture<'_, Result<TodoList, TodoFailure>> {
        async move {
            let written = self.owner.command(Command::WriteTodos(inputs)).await;
            written.map_err(|error| failure(&error))?;
            self.read().await
        }
        .boxed()
    }

    fn query(
        &self,
        query: String,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<SqlAnswer, TodoFailure>> {
        async move {
            let cell = self.owner.view(|view| view.sql.clone()).await;
            let cell = cell.map_err(|error| failure(&error))?;
            // A query takes seconds at most, so that the wait is bounded.
            let mut open = tokio::select! {
                open = cell.open.clone().lock_owned() => open,
                () = cancel.cancelled() => return Err(sql_failure(&SqlError::Stopped)),
            };
            let mut note = None;
            for _ in 0..MOST_TRIES {
                let base = self
                    .owner
                    .state(|state| (state.todos.list.clone(), state.todos.revision));
                let (list, revision) = base.await.map_err(|error| failure(&error))?;
                let job = Job {
                    database: open.take(),
                    folder: cell.folder.clone(),
                    list,
                    query: query.clone(),
                    cancel: cancel.clone(),
                };
                let done = blocking(move || job.run()).await?;
                let (mut database, run, opened) = done.map_err(|error| sql_failure(&error))?;
                note = match opened {
                    Opened::Sound => note,
                    Opened::MadeAnew => Some(MADE_ANEW.to_owned()),
                    Opened::Gone => Some(GONE.to_owned()),
                };
                let run = match run {
                    Ok(run) => run,
                    Err(error) => {
                        *open = keepable(database, &error);
                        return Err(sql_failure(&error));
                    }
                };
                let remaining = run.changed.as_ref().map(TodoList::remaining);
                if let Some(list) = run.changed {
                    let base = revision;
                    let by = self.by.clone();
                    let stored = Command::StoreTodos { by, base, list };
                    let stored = self.owner.command(stored).await;
                    if let Err(error) = stored {
                        *open = Some(
                            blocking(move || {
                                database.undo();
                                database
                            })
                            .await?,
                        );
                        if matches!(error, SessionError::Refused(Refusal::TodosChanged)) {
                            continue;
                        }
                        return Err(failure(&error));
                    }
                }
                let (database, kept) = blocking(move || {
                    let kept = database.keep();
                    (database, kept)
                })
                .await?;
                *open = Some(database);
                return match kept {
                    Ok(()) => Ok(SqlAnswer {
                        results: run.results,
                        note,
                        remaining,
                    }),
                    // The log has the list all the same.
                    Err(error) if remaining.is_some() => Err(TodoFailure(format!(
                        "the todo list was stored, but other changes were not, because {error}"
                    ))),
                    Err(error) => Err(sql_failure(&error)),
                };
            }
            Err(TodoFailure(
                "the todo list was changed again and again meanwhile; try again".to_owned(),
            ))
        }
        .boxed()
    }
}

const MADE_ANEW: &str = "Note: the database of the session was damaged and was made anew. The todos are there, other tables are not.";

const GONE: &str = "Note: somebody removed or replaced the database of the session while it was in use. The todos are there, from the log of the session; other tables are not.";

/// One run of a query, for a thread that may block.
struct Job {
    database: Option<TodoDatabase>,
    folder: PathBuf,
    list: TodoList,
    query: String,
    cancel: CancellationToken,
}

type Ran = (TodoDatabase, Result<SqlRun, SqlError>, Opened);

impl Job {
    fn run(self) -> Result<Ran, SqlError> {
        let (mut database, opened) = match self.database {
            Some(database) if database.is_in_place() => (database, Opened::Sound),
            Some(database) => {
                drop(database);
                let (database, _) = TodoDatabase::open(&self.folder)?;
                (database, Opened::Gone)
            }
            None => TodoDatabase::open(&self.folder)?,
        };
        let cancel = self.cancel;
        let run = database.run(&self.list, &self.query, move || cancel.is_cancelled());
        Ok((database, run, opened))
    }
}

/// Returns the database unless it should be opened again: that finds out what is wrong with its file.
fn keepable(database: TodoDatabase, error: &SqlError) -> Option<TodoDatabase> {
    match error {
        SqlError::Unusable(_) | SqlError::TooMuchMemory => None,
        SqlError::NotAllowed(_)
        | SqlError::Failed { .. }
        | SqlError::Empty
        | SqlError::TooManyStatements { .. }
        | SqlError::TooSlow
        | SqlError::TooLarge
        | SqlError::Stopped
        | SqlError::BadValue(_) => Some(database),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TodoFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        tracing::error!(%error, "SQL of a session could not be run");
        TodoFailure("the query crashed inside the daemon; this is a bug of loopd".to_owned())
    })
}

fn failure(error: &SessionError) -> TodoFailure {
    TodoFailure(error.to_string())
}

fn sql_failure(error: &SqlError) -> TodoFailure {
    TodoFailure(error.to_string())
}
