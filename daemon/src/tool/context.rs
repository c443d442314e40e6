//! Where and for whom a tool is assessed and runs: values of the session and its launch, never of
//! the process.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use loopd_proto::id::{ShellId, ToolCallId};

use super::Web;
use crate::subagent::{SlotLease, Subagents};
use loopd_exec::shells::{CommandContext, FoundShell, ShellError, Shells};
use loopd_exec::terminal::Backend;

/// What a tool may know while a call is only assessed. There is nothing in it by which anything
/// could be started or changed.
#[derive(Debug, Clone)]
pub struct AssessContext {
    /// The session's working directory; relative paths are resolved against it.
    pub cwd: PathBuf,
    /// A folder of the session for large outputs, created on first use.
    pub scratch: PathBuf,
    /// The places that rules keep from being read: a search through a folder leaves them out.
    pub unreadable: Arc<[String]>,
    pub open_shells: ShellLookup,
}

/// The shells of the session, to look at.
#[derive(Debug, Clone)]
pub struct ShellLookup(Shells);

impl ShellLookup {
    pub fn new(shells: Shells) -> Self {
        Self(shells)
    }

    /// What a shell id stands for.
    pub fn find(&self, id: &ShellId) -> Result<FoundShell, ShellError> {
        self.0.find(id)
    }
}

impl AssessContext {
    /// Resolves a path the model gave against the working directory, without touching the disk.
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

/// What a tool runs with: all that it could know before, and the means to do something.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub assess: AssessContext,
    /// The environment for child processes, already free of secrets.
    pub env: BTreeMap<String, String>,
    /// Cancelled when the turn is aborted; a tool then ends as soon as it can.
    pub cancel: CancellationToken,
    /// The way to the network; none once the launch that brought it has ended.
    pub web: Option<Web>,
    /// Where partial output goes while the tool runs; a full channel drops it.
    pub partial: mpsc::Sender<String>,
    /// The commands of the session.
    pub shells: Shells,
    /// The agents of the session.
    pub agents: Subagents,
    /// The slot of the agent that the tool runs for, lent while it waits for others.
    pub lease: Option<Arc<SlotLease>>,
    /// How commands are run.
    pub backend: Backend,
    /// The call that the tool runs for.
    pub call: ToolCallId,
}

impl Deref for ToolContext {
    type Target = AssessContext;

    fn deref(&self) -> &AssessContext {
        &self.assess
    }
}

impl ToolContext {
    /// Where a command of this moment runs.
    pub fn command_context(&self) -> CommandContext {
        CommandContext {
            backend: self.backend,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
        }
    }
}
