//! Live shells and the commands that run in them.
//!
//! A [`Shell`] has one of two backends ([`Backend`]). With `Terminal`, one bash on a pseudo
//! terminal runs all commands: it keeps its folder, variables and functions between commands,
//! commands accept typed input, and a command that waits for input is detected. With `Process`,
//! every command is a new process without input. In both cases a command is a [`CommandRun`], which
//! may outlive its shell:
//!
//! ```ignore
//! let mut shell = Shell::open(&processes, Backend::Terminal, spec).await?;
//! let run = shell.start("make test").await?;       // Busy while another one runs, Closed after exit
//! let mut changes = run.changes();                 // wakes on new output, at most every 100 ms,
//! changes.changed().await;                         // and on Waiting and Ended at once
//! run.unread();                                    // the output since the last call
//! run.send(&parse_input("yes{enter}")?).await?;    // on a terminal only
//! run.stop().await;                                // resolves within 100 ms
//! let end = run.ended().await;                     // several tasks may wait, any number of times
//! run.output();                                    // all of it, or beginning, end and file
//! shell.close(CloseMode::Gently).await;
//! ```
//!
//! Dropping a `Shell` closes it at once. The caller runs one command at a time, decides what may
//! run and writes the text for the model. This module starts processes only through [`Processes`].

mod emulator;
mod environment;
mod keys;
mod lines;
mod output;
mod per_command;
#[cfg(unix)]
mod pty;
#[cfg(not(unix))]
#[path = "terminal/no_pty.rs"]
mod pty;
mod run;
mod sink;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::id::SessionId;

use crate::process::{Lifetime, Processes, SpawnError};
use crate::sandbox::Sandbox;

pub use keys::{InputError, TypedInput, parse_input};
pub use output::{
    CommandOutput, HEAD_CHARS, OutputBody, OutputFilter, OutputFilters, SavedOutput, Screen,
    TAIL_CHARS,
};
pub use run::{CommandEnd, CommandProgress, CommandRun, CommandState, WaitingFor};

/// How a shell runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// One bash on a pseudo terminal, which keeps its state between commands.
    Terminal,
    /// A new process per command, without input and state.
    Process,
}

/// The settings of a new shell.
#[derive(Debug, Clone)]
pub struct ShellSpec {
    pub cwd: PathBuf,
    /// The complete environment; variables that keep pagers and editors from opening are added.
    pub env: BTreeMap<String, String>,
    /// The folder for large outputs.
    pub scratch: PathBuf,
    /// Returns a file name that is not used in `scratch`.
    pub name_output: fn() -> String,
    /// Change what is written to the files.
    pub filters: Arc<dyn OutputFilters>,
    pub session: SessionId,
    pub lifetime: Lifetime,
    /// The text in the process list.
    pub label: String,
    /// Confines bash and all that it starts.
    pub sandbox: Option<Sandbox>,
}

/// How a shell is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseMode {
    /// Kills all its processes.
    Now,
    /// Sends signals first, and kills after five seconds.
    Gently,
}

/// Why a shell was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ShellOpenError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("no terminal could be made: {0}")]
    Terminal(#[source] io::Error),
    #[error("bash ended before it was ready: {0}")]
    NotReady(String),
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum CommandStartError {
    #[error("a command is still running in this shell")]
    Busy,
    #[error("the shell is closed: {}", .0.explain())]
    Closed(CommandEnd),
    #[error("the command contains a NUL character, which no program can be given")]
    Nul,
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// One live shell.
#[derive(Debug)]
pub struct Shell(ShellKind);

#[derive(Debug)]
enum ShellKind {
    Terminal(pty::PtyShell),
    Process(per_command::ProcessShell),
}

impl Shell {
    /// Opens a shell; on a terminal, bash is ready when this resolves.
    pub async fn open(
        processes: &Processes,
        backend: Backend,
        spec: ShellSpec,
    ) -> Result<Self, ShellOpenError> {
        match backend {
            Backend::Terminal => {
                let terminal = pty::PtyShell::open(processes, spec).await?;
                Ok(Self(ShellKind::Terminal(terminal)))
            }
            Backend::Process => {
                let children = per_command::ProcessShell::new(processes.clone(), spec);
                Ok(Self(ShellKind::Process(children)))
            }
        }
    }

    /// Starts a command.
    pub async fn start(&mut self, command: &str) -> Result<CommandRun, CommandStartError> {
        if command.contains('\0') {
            return Err(CommandStartError::Nul);
        }
        match &mut self.0 {
            ShellKind::Terminal(terminal) => terminal.start(command).await,
            ShellKind::Process(children) => children.start(command).await,
        }
    }

    /// Whether commands can be started, now or after the running one.
    pub fn alive(&self) -> bool {
        match &self.0 {
            ShellKind::Terminal(terminal) => terminal.alive(),
            ShellKind::Process(_) => true,
        }
    }

    /// The pid of the shell, or of the last command with the process backend (0 before the first).
    pub fn pid(&self) -> u32 {
        match &self.0 {
            ShellKind::Terminal(terminal) => terminal.pid(),
            ShellKind::Process(children) => children.pid(),
        }
    }

    /// Closes the shell; all its processes are gone when this resolves.
    pub async fn close(self, how: CloseMode) {
        match self.0 {
            ShellKind::Terminal(terminal) => terminal.close(how).await,
            ShellKind::Process(children) => children.close(how).await,
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
