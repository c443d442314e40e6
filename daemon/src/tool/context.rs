//! What a tool gets when its call is assessed and when it runs. All values belong to the session
//! and its launch, none to the process.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use loopd_proto::id::{SessionId, ShellId, ToolCallId};

use super::Web;
use super::capture::Captures;
use super::context_board::Board;
use super::mcp::McpTasks;
use super::todo::SessionTodos;
use crate::redaction::Redaction;
use crate::skill::SkillView;
use crate::subagent::{SlotLease, Subagents};
use loopd_exec::sandbox::{NetworkAccess, Sandbox};
use loopd_exec::shells::{CloseReason, CommandContext, FoundShell, ShellError, Shells};
use loopd_exec::terminal::Backend;
use loopd_kernel::changed_shells::ChangedShells;
use loopd_kernel::command::GrantCheck;
use loopd_kernel::policy::GuardedPaths;
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::policy::planning::Planning;

/// What a tool gets while its call is only assessed. Nothing in it can start or change anything.
#[derive(Debug, Clone)]
pub struct AssessContext {
    /// The session's working directory; relative paths are resolved against it.
    pub cwd: PathBuf,
    /// A folder of the session for large outputs, created on first use.
    pub scratch: PathBuf,
    /// The paths that rules name. A search through a folder leaves out what may not be read.
    pub guarded: Arc<GuardedPaths>,
    pub open_shells: ShellLookup,
    /// What commands in a sandbox may reach.
    pub sandbox_network: NetworkAccess,
    /// The file with the plan of the session.
    pub plan_file: PathBuf,
    /// Whether the session only looks and plans; its commands run in a sandbox then.
    pub planning: Planning,
    /// Where earlier commands may have led the shells of the session.
    pub changed_shells: ChangedShells,
    /// The secrets that requests show masked. A grant names what the request showed.
    pub redaction: Redaction,
    /// The skills of the session.
    pub skills: SkillView,
}

/// Read-only access to the shells of the session.
#[derive(Debug, Clone)]
pub struct ShellLookup(Shells);

impl ShellLookup {
    pub fn new(shells: Shells) -> Self {
        Self(shells)
    }

    /// Finds the command of a shell id.
    pub fn find(&self, id: &ShellId) -> Result<FoundShell, ShellError> {
        self.0.find(id)
    }

    /// Returns why the shell of this id was closed, if a command in it would get a new one.
    pub fn lost(&self, id: &ShellId) -> Option<CloseReason> {
        self.0.lost(id)
    }

    /// Returns the open shells that do not run in a sandbox.
    pub fn not_sandboxed(&self) -> Vec<ShellId> {
        self.0.not_sandboxed()
    }
}

impl AssessContext {
    /// Returns the sandbox for commands that start now; `None` if they run free.
    pub fn sandbox(&self) -> Option<Sandbox> {
        let planning = self.planning.is_on();
        planning.then(|| self.open_shells.0.sandbox(self.sandbox_network))
    }

    /// Resolves a path from the model against the working directory, without reading the disk.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        let mut resolved = self.cwd.clone();
        for part in path.as_ref().components() {
            match part {
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => {
                    resolved.pop();
                }
                other => resolved.push(other),
            }
        }
        resolved
    }
}

/// What a tool shows while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partial {
    /// A part of its output.
    Output(String),
    /// How far it is, in words.
    Progress(String),
}

/// Asks the session whether a call that was permitted may still begin.
pub trait PermitCheck: std::fmt::Debug + Send + Sync {
    /// Fails with the reason if it may not.
    fn still_permitted(&self, check: GrantCheck) -> BoxFuture<'static, Result<(), String>>;
}

/// What a tool gets when it runs: the context of the assessment, and what it needs to act.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub assess: AssessContext,
    /// The environment for child processes, without secrets.
    pub env: BTreeMap<String, String>,
    /// Cancelled when the turn is aborted. The tool then ends as soon as it can.
    pub cancel: CancellationToken,
    /// Access to the network; `None` once the launch that provides it has ended.
    pub web: Option<Web>,
    /// The channel for what the tool shows while it runs. If it is full, that is dropped.
    pub partial: mpsc::Sender<Partial>,
    /// The shells of the session and their commands.
    pub shells: Shells,
    /// The sub-agents of the session.
    pub agents: Subagents,
    /// The tasks on MCP servers that the session has.
    pub mcp_tasks: McpTasks,
    /// The todo list that the session works with.
    pub todos: SessionTodos,
    /// The slot of the sub-agent that made the call. It is lent while the call waits for other
    /// sub-agents.
    pub lease: Option<Arc<SlotLease>>,
    /// How commands are run.
    pub backend: Backend,
    /// Where earlier versions of files are kept.
    pub captures: Captures,
    /// The notes for later sessions.
    pub board: Board,
    /// Judges once more what had to wait after it was permitted.
    pub permits: Arc<dyn PermitCheck>,
    /// The id of the tool call.
    pub call: ToolCallId,
    pub session: SessionId,
    /// Whether somebody can come back to a command that goes on after its call. Elsewhere such a command is
    /// stopped, and the call has failed.
    pub may_go_on: bool,
}

impl Deref for ToolContext {
    type Target = AssessContext;

    fn deref(&self) -> &AssessContext {
        &self.assess
    }
}

impl ToolContext {
    /// Waits for the copy of the workspace before a command that may change files. Returns whether the
    /// command may begin: the turn may be aborted meanwhile.
    pub async fn command_starts(&self) -> bool {
        let waits = || {
            let text = "Waits for the copy of the working directory, which lets a rewind bring back what the command deletes.";
            // What there is no room for is not shown.
            let told = Partial::Progress(text.to_owned());
            self.partial.try_send(told).ok();
        };
        tokio::select! {
            () = self.captures.command_starts(waits) => true,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Resolves when it is known whether a permitted call may still begin; the error says why not.
    pub async fn may_begin(&self, tool: &str, grant: &Grant) -> Result<(), String> {
        let Some(request) = grant.request() else {
            return Ok(());
        };
        let check = GrantCheck {
            tool: tool.to_owned(),
            request: request.clone(),
            planned: self.planning,
        };
        self.permits.still_permitted(check).await
    }

    /// Returns the directory, environment and backend for a command that starts now.
    pub fn command_context(&self) -> CommandContext {
        CommandContext {
            backend: self.backend,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            sandbox: self.sandbox(),
        }
    }
}
