//! What the tests of tools share: a working directory of their own and a context in it.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use loopd_proto::id::{SessionId, ToolCallId};
use loopd_proto::permission::{PermissionRequest, Permissions};

use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::Processes;
use loopd_exec::shells::{Shells, ShellsSetup, TaskLog, TaskLogError};
use loopd_exec::terminal::Backend;
use loopd_kernel::command::{Command, GrantCheck};
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::todos::TodoInput;
use loopd_proto::event::todo::TodoList;

use super::todo::{SqlAnswer, TodoAccess, TodoFailure};
use super::{
    AssessContext, DynTool, Need, Outcome, Partial, PermitCheck, ShellLookup, ToolContext,
};

/// What the shells told the session.
#[derive(Default)]
pub(super) struct Noted(watch::Sender<Vec<String>>);

impl TaskLog for Noted {
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), TaskLogError>> {
        self.0
            .send_modify(|noted| noted.push(format!("{command:?}")));
        std::future::ready(Ok(())).boxed()
    }
}

impl Noted {
    /// Waits until the session was told something.
    pub(super) async fn told(&self, what: &str) -> String {
        let mut noted = self.0.subscribe();
        let has = |all: &Vec<String>| all.iter().any(|note| note.starts_with(what));
        let all = noted.wait_for(has).await.unwrap();
        all.iter()
            .find(|note| note.starts_with(what))
            .unwrap()
            .clone()
    }

    pub(super) fn count(&self, what: &str) -> usize {
        let noted = self.0.borrow();
        noted.iter().filter(|note| note.starts_with(what)).count()
    }
}

/// A session without a todo list.
struct NoTodos;

fn no_todos() -> TodoFailure {
    TodoFailure("there is no todo list".to_owned())
}

impl TodoAccess for NoTodos {
    fn read(&self) -> BoxFuture<'_, Result<TodoList, TodoFailure>> {
        std::future::ready(Err(no_todos())).boxed()
    }

    fn write(&self, _: Vec<TodoInput>) -> BoxFuture<'_, Result<TodoList, TodoFailure>> {
        std::future::ready(Err(no_todos())).boxed()
    }

    fn query(
        &self,
        _: String,
        _: CancellationToken,
    ) -> BoxFuture<'_, Result<SqlAnswer, TodoFailure>> {
        std::future::ready(Err(no_todos())).boxed()
    }
}

/// A session in which no rule changes.
#[derive(Debug)]
struct Permits;

impl PermitCheck for Permits {
    fn still_permitted(&self, _: GrantCheck) -> BoxFuture<'static, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }
}

pub(super) struct Fixture {
    pub(super) context: ToolContext,
    pub(super) partial: mpsc::Receiver<Partial>,
    pub(super) noted: Arc<Noted>,
    _root: TempDir,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let cwd = base.join("work");
        std::fs::create_dir(&cwd).unwrap();
        let (sender, partial) = mpsc::channel(1024);
        let mut env = BTreeMap::new();
        env.insert("PATH".to_owned(), std::env::var("PATH").unwrap());
        let noted = Arc::new(Noted::default());
        let shells = Shells::new(ShellsSetup {
            session: SessionId::from("session"),
            processes: Processes::new(&base, KeepAlive::default()),
            scratch: base.join("scratch"),
            name_output: super::large_output::file_name,
            filters: Arc::new(crate::redaction::file::FileMasks::default()),
            log: noted.clone(),
        });
        let context = ToolContext {
            assess: AssessContext {
                cwd,
                scratch: base.join("scratch"),
                guarded: Arc::default(),
                open_shells: ShellLookup::new(shells.clone()),
                sandbox_network: loopd_exec::sandbox::NetworkAccess::Denied,
                plan_file: base.join("plan.md"),
                planning: loopd_kernel::policy::planning::Planning::No,
                changed_shells: loopd_kernel::changed_shells::ChangedShells::default(),
                redaction: crate::redaction::Redaction::default(),
                skills: crate::skill::SkillView::default(),
            },
            env,
            cancel: CancellationToken::new(),
            web: None,
            partial: sender,
            shells,
            agents: crate::subagent::fixture::Home::new(1).agents(),
            mcp_tasks: super::mcp::McpTasks::new(super::mcp::McpTasksSetup {
                log: noted.clone(),
                keep_alive: KeepAlive::default(),
                scratch: base.join("scratch"),
                masks: crate::redaction::file::FileMasks::default(),
                patience: std::time::Duration::ZERO,
            }),
            todos: super::todo::SessionTodos::new(NoTodos),
            lease: None,
            backend: Backend::Process,
            captures: super::capture::Captures::off(),
            board: super::context_board::Board::new(&base, base.clone()),
            permits: Arc::new(Permits),
            call: ToolCallId::from("call"),
            session: SessionId::from("session"),
            may_go_on: true,
        };
        Self {
            context,
            partial,
            noted,
            _root: root,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.context.cwd.join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(super) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Asks what a call needs.
    pub(super) async fn need(&self, tool: &dyn DynTool, args: &Value) -> Need {
        tool.need(args, &self.context).await
    }

    /// Asks for the permission a call needs.
    pub(super) async fn request(&self, tool: &dyn DynTool, args: &Value) -> PermissionRequest {
        match self.need(tool, args).await {
            Need::Permission(request) | Need::PermissionForShell(request) => request,
            other => unreachable!("expected a permission request, got {other:?}"),
        }
    }

    /// Makes a call that cannot work; returns why. What tells of a file is told only to who may read
    /// it.
    pub(super) async fn refusal(&self, tool: &dyn DynTool, args: &Value) -> String {
        let need = self.need(tool, args).await;
        if let Need::Permission(request) = &need {
            let is_read = matches!(request, PermissionRequest::Read { .. });
            assert!(is_read, "expected a refusal, got {request:?}");
        }
        let outcome = self.call(tool, args.clone()).await;
        assert_eq!(outcome.status, super::Status::Failure, "{outcome:?}");
        outcome.text
    }

    /// Does what the session does when everything is allowed.
    pub(super) async fn call(&self, tool: &dyn DynTool, args: Value) -> Outcome {
        match self.need(tool, &args).await {
            Need::Nothing => tool.run(&granted(None), args, &self.context).await,
            Need::Permission(request) | Need::PermissionForShell(request) => {
                tool.run(&granted(request), args, &self.context).await
            }
            Need::Approval(plan) => unreachable!("nobody approves {plan:?}"),
            Need::Answer(question) => unreachable!("nobody answers {question:?}"),
            Need::Refused(outcome) => outcome,
        }
    }
}

/// The right to do this, by rules that allow everything.
pub(super) fn granted(request: impl Into<Option<PermissionRequest>>) -> Grant {
    let everything = Permissions {
        approve_all: true,
        ..Permissions::default()
    };
    Grant::by_rules(&everything, "/", request.into()).unwrap()
}

/// The names in a folder, sorted.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
