//! Live shells and the commands that run in them, for the tools and requests that start commands.
//!
//! A [`Shell`] is one of two kinds, chosen by [`Backend`]. On a terminal, one bash lives on: the
//! directory, variables and functions of a command are there for the next, programs can be typed
//! to, and a command that waits for input is noticed. As a process, every command is a child of its
//! own without input. Either way a command is a [`CommandRun`], which outlives its shell:
//!
//! ```ignore
//! let mut shell = Shell::open(&processes, Backend::Terminal, spec).await?;
//! let run = shell.start("make test").await?;       // Busy while another one runs, Closed after exit
//! let mut changes = run.changes();                 // wakes on new output, at most every 100 ms,
//! changes.changed().await;                         // and on Waiting and Ended at once
//! run.unread();                                    // what is new since the last call
//! run.send(&parse_input("yes{enter}")?).await?;    // on a terminal only
//! run.stop().await;                                // answers within 100 ms, whatever the command does
//! let end = run.ended().await;                     // by several at once, as often as wanted
//! run.output();                                    // all of it, or its ends and the file that has it
//! shell.close(Close::Gently).await;
//! ```
//!
//! Dropping a `Shell` closes it now. The caller serialises commands, decides what may run and words
//! what the model reads; this module starts processes only through [`Processes`].

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
mod reader;
mod run;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use loopd_proto::id::SessionId;

use crate::process::{Lifetime, Processes, SpawnError};

pub use keys::{Input, InputError, parse_input};
pub use output::{Body, HEAD_CHARS, Saved, Screen, Shown, TAIL_CHARS};
pub use run::{CommandEnd, CommandProgress, CommandRun, CommandState, WaitingFor};

/// How commands are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// One bash on a terminal of its own, which keeps its state between commands.
    Terminal,
    /// A child per command, without input and state.
    Process,
}

/// What a shell is opened with.
#[derive(Debug, Clone)]
pub struct ShellSpec {
    pub cwd: PathBuf,
    /// The whole environment; what keeps pagers and editors from opening is added to it.
    pub env: BTreeMap<String, String>,
    /// The folder for what is too large to show.
    pub scratch: PathBuf,
    /// Makes a name that no other file in `scratch` has.
    pub name_output: fn() -> String,
    pub session: SessionId,
    pub lifetime: Lifetime,
    /// What people see in the list of processes.
    pub label: String,
}

/// How a shell is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Kills everything in it.
    Now,
    /// Asks first and kills after five seconds.
    Gently,
}

/// Why there is no shell.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
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
    ) -> Result<Self, OpenError> {
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

    /// Says whether commands can be started here, now or after the one that runs.
    pub fn alive(&self) -> bool {
        match &self.0 {
            ShellKind::Terminal(terminal) => terminal.alive(),
            ShellKind::Process(_) => true,
        }
    }

    /// The process of the shell, or of the last command where each has its own (0 before the first).
    pub fn pid(&self) -> u32 {
        match &self.0 {
            ShellKind::Terminal(terminal) => terminal.pid(),
            ShellKind::Process(children) => children.pid(),
        }
    }

    /// Closes the shell; nothing of it lives when this resolves.
    pub async fn close(self, how: Close) {
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
