//! Commands that clients run themselves, past the model: `session.shell.exec` and what people type.
//! They have no terminal, belong to no shell id, and end with the session.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::ProcessId;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::detached::arguments;
use super::error::ShellError;
use super::{CommandContext, Shells};
use crate::process::{Exit, Io, Lifetime, OutputPipe, Owned, Signal, Spawn};
use crate::terminal::{Backend, CommandRun, Shell};

/// How many such commands may run at once in one session.
const MAX_RUNNING: usize = 64;

/// How long the pipe of a command may stay open after its end, because something it left behind
/// still holds it.
const PIPE_GRACE: Duration = Duration::from_millis(500);

/// How long a command may take to end when its time is up.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// How much is passed on at once.
const PIECE: usize = 16 * 1024;

/// The commands that clients run now, by the id they know them by.
#[derive(Default)]
pub(super) struct Running {
    table: Mutex<HashMap<String, Arc<ClientExec>>>,
}

impl Running {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientExec>>> {
        self.table.lock()
    }
}

/// A command of a client.
pub enum ClientExec {
    /// Its id is taken, and it is about to start; who cancels it now stops it as soon as it has.
    Starting(CancellationToken),
    /// Its output goes to the client as it comes.
    Streamed(Owned),
    /// Its output is collected.
    Collected {
        run: CommandRun,
        shell: Mutex<Option<Shell>>,
    },
}

/// How a command of a client ended, as a number that every client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientExecEnd {
    pub exit_code: i32,
}

impl Shells {
    /// Starts a command whose output is passed on piece by piece.
    pub async fn exec(
        &self,
        command: &str,
        context: &CommandContext,
    ) -> Result<(ProcessId, Arc<ClientExec>, Option<OutputPipe>), ShellError> {
        self.check_room()?;
        let setup = &self.0.setup;
        let spawn = Spawn {
            program: PathBuf::from(if cfg!(windows) { "powershell" } else { "bash" }),
            args: arguments(command),
            env: context.env.clone(),
            cwd: context.cwd.clone(),
            io: Io::Merged,
            lifetime: Lifetime::Session,
            session: Some(setup.session.clone()),
            label: command.to_owned(),
        };
        let mut owned = setup
            .processes
            .spawn(spawn)
            .await
            .map_err(ShellError::Spawn)?;
        let output = owned.output.take();
        let id = owned.id.clone();
        let direct = Arc::new(ClientExec::Streamed(owned));
        self.0.direct.table().insert(id.to_string(), direct.clone());
        Ok((id, direct, output))
    }

    /// Passes on what such a command prints until it has ended; says how.
    pub async fn stream(
        &self,
        id: &ProcessId,
        direct: &ClientExec,
        output: Option<OutputPipe>,
        limit: Option<Duration>,
        tell: impl Fn(String) + Send + Sync,
    ) -> ClientExecEnd {
        let ClientExec::Streamed(owned) = direct else {
            return ClientExecEnd { exit_code: -1 };
        };
        let reading = async {
            if let Some(output) = output {
                pass_on(output, &tell).await;
            }
        };
        let ending = async {
            let over = async {
                match limit {
                    Some(limit) => tokio::time::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                exit = owned.exit() => exit,
                () = over => owned.stop(STOP_GRACE).await,
            }
        };
        tokio::pin!(reading);
        let exit = tokio::select! {
            () = &mut reading => owned.exit().await,
            exit = ending => {
                // What is in the pipe still counts; who holds it open does not.
                tokio::time::timeout(PIPE_GRACE, reading).await.ok();
                exit
            }
        };
        self.0.direct.table().remove(id.as_str());
        ClientExecEnd {
            exit_code: match exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => 128 + signal,
                Exit::Unknown => -1,
            },
        }
    }

    /// Takes an id for a command that a person typed; nothing when one with it runs already.
    pub fn reserve_for_user(&self, key: &str) -> Result<Option<Reserved>, ShellError> {
        self.check_room()?;
        let mut table = self.0.direct.table();
        if table.contains_key(key) {
            return Ok(None);
        }
        let cancelled = CancellationToken::new();
        let starting = ClientExec::Starting(cancelled.clone());
        table.insert(key.to_owned(), Arc::new(starting));
        Ok(Some(Reserved {
            shells: self.clone(),
            key: key.to_owned(),
            cancelled,
        }))
    }

    /// Starts a command that a person typed, under the id that was taken for it.
    pub async fn run_for_user(
        &self,
        reserved: &Reserved,
        command: &str,
        context: &CommandContext,
    ) -> Result<CommandRun, ShellError> {
        let spec = self.spec(context, Lifetime::Session, command.to_owned());
        let opened = Shell::open(&self.0.setup.processes, Backend::Process, spec).await;
        let mut shell = opened.map_err(ShellError::Open)?;
        let run = shell.start(command).await.map_err(ShellError::Start)?;
        let direct = ClientExec::Collected {
            run: run.clone(),
            shell: Mutex::new(Some(shell)),
        };
        self.0
            .direct
            .table()
            .insert(reserved.key.clone(), Arc::new(direct));
        if reserved.cancelled.is_cancelled() {
            run.stop().await;
        }
        Ok(run)
    }

    /// Sends a signal to a command of a client; says whether it ran.
    pub async fn signal_direct(&self, key: &str, signal: Signal) -> bool {
        let found = self.0.direct.table().get(key).cloned();
        match found.as_deref() {
            Some(ClientExec::Streamed(owned)) => {
                if owned.is_gone() {
                    return false;
                }
                match signal {
                    Signal::Kill => {
                        owned.kill().await;
                    }
                    Signal::Hangup | Signal::Interrupt | Signal::Quit | Signal::Terminate => {
                        owned.signal_group(signal);
                    }
                }
                true
            }
            // People's commands are cancelled by their own request.
            Some(ClientExec::Collected { .. } | ClientExec::Starting(_)) | None => false,
        }
    }

    /// Stops a command that a person typed; says whether it ran.
    pub async fn cancel_for_user(&self, key: &str) -> bool {
        let found = self.0.direct.table().get(key).cloned();
        match found.as_deref() {
            Some(ClientExec::Collected { run, .. }) => run.stop().await,
            Some(ClientExec::Starting(cancelled)) => cancelled.cancel(),
            Some(ClientExec::Streamed(_)) | None => return false,
        }
        true
    }

    /// Runs work that outlives the request which asked for it, but not the session.
    pub fn keep_working(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(work);
    }

    fn check_room(&self) -> Result<(), ShellError> {
        if self.table().ended {
            return Err(ShellError::SessionEnded);
        }
        if self.0.direct.table().len() >= MAX_RUNNING {
            return Err(ShellError::TooManyShells { limit: MAX_RUNNING });
        }
        Ok(())
    }

    pub(super) fn drop_direct(&self) {
        let running = std::mem::take(&mut *self.0.direct.table());
        for direct in running.into_values() {
            if let ClientExec::Collected { shell, .. } = &*direct {
                // Dropping a shell closes it.
                shell.lock().take();
            }
        }
    }
}

/// An id that is taken for as long as this lives.
pub struct Reserved {
    shells: Shells,
    key: String,
    cancelled: CancellationToken,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.shells.0.direct.table().remove(&self.key);
    }
}

/// Passes on whole characters as they come.
async fn pass_on(mut output: OutputPipe, tell: &(impl Fn(String) + Send + Sync)) {
    let mut waiting = Vec::with_capacity(PIECE);
    loop {
        match output.read_buf(&mut waiting).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let whole = match std::str::from_utf8(&waiting) {
            Ok(text) => text.len(),
            // Only a character that is cut off is worth waiting for.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => waiting.len(),
        };
        let rest = waiting.split_off(whole);
        if !waiting.is_empty() {
            tell(String::from_utf8_lossy(&waiting).into_owned());
        }
        waiting = rest;
        waiting.reserve(PIECE);
    }
    if !waiting.is_empty() {
        tell(String::from_utf8_lossy(&waiting).into_owned());
    }
}
