//! Commands that clients run without the model: `session.shell.exec` and commands that a user
//! types. They have no terminal and no shell id, and they end with the session.

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
use crate::process::{Exit, Io, Lifetime, OutputPipe, OwnedProcess, Signal, Spawn};
use crate::terminal::{Backend, CloseMode, CommandRun, Shell};

/// How many client commands may run at once in one session.
const MAX_RUNNING: usize = 64;

/// How long output is read after a command has ended. A process that it left behind may hold the
/// pipe open for ever.
const PIPE_GRACE: Duration = Duration::from_millis(500);

/// How long a command may take to end after its time limit.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// How long a command may take to end after a signal of the client.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);

/// How long a cancelled command may take to start.
const START_GRACE: Duration = Duration::from_secs(10);

/// The read buffer, in bytes.
const PIECE: usize = 16 * 1024;

/// The running client commands by process id or request id.
#[derive(Default)]
pub(super) struct ClientExecTable {
    table: Mutex<HashMap<String, Arc<ClientExec>>>,
}

impl ClientExecTable {
    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientExec>>> {
        self.table.lock()
    }
}

/// A client command that is about to start.
#[derive(Clone, Default)]
pub struct ClientExecStart {
    /// Stops the command right after its start.
    cancelled: CancellationToken,
    /// The command has started, or will not start any more.
    settled: CancellationToken,
}

/// A client command.
pub enum ClientExec {
    /// The id is reserved and the command is about to start.
    Starting(ClientExecStart),
    /// The output is sent to the client as it arrives.
    Streamed(OwnedProcess),
    /// The output is collected.
    Collected {
        run: CommandRun,
        shell: Mutex<Option<Shell>>,
    },
}

/// What a signal did to a client command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOutcome {
    /// The command and all that it started have ended.
    Gone,
    /// It was sent, but processes of the command live on.
    Alive,
    NotRunning,
}

/// How a client command ended: an exit code, 128 plus a signal, or -1 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientExecEnd {
    pub exit_code: i32,
}

impl Shells {
    /// Starts a command whose output is streamed to the client.
    pub async fn exec(
        &self,
        command: &str,
        context: &CommandContext,
    ) -> Result<(ProcessId, Arc<ClientExec>, Option<OutputPipe>), ShellError> {
        self.check_limit()?;
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
            sandbox: context.sandbox.clone(),
        };
        let mut owned = setup
            .processes
            .spawn(spawn)
            .await
            .map_err(ShellError::Spawn)?;
        let output = owned.output.take();
        let id = owned.id.clone();
        let exec = Arc::new(ClientExec::Streamed(owned));
        self.0
            .client_execs
            .table()
            .insert(id.to_string(), exec.clone());
        Ok((id, exec, output))
    }

    /// Sends the output of a streamed command until it ends; returns how it ended.
    pub async fn stream(
        &self,
        id: &ProcessId,
        exec: &ClientExec,
        output: Option<OutputPipe>,
        limit: Option<Duration>,
        send: impl Fn(String) + Send + Sync,
    ) -> ClientExecEnd {
        let ClientExec::Streamed(owned) = exec else {
            return ClientExecEnd { exit_code: -1 };
        };
        let reading = async {
            if let Some(output) = output {
                forward_output(output, &send).await;
            }
        };
        let ending = async {
            let time_is_up = async {
                match limit {
                    Some(limit) => tokio::time::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                exit = owned.exit() => exit,
                () = time_is_up => owned.stop(STOP_GRACE).await,
            }
        };
        tokio::pin!(reading);
        let exit = tokio::select! {
            () = &mut reading => owned.exit().await,
            exit = ending => {
                // Read what is left in the pipe, but do not wait for a process that holds it open.
                tokio::time::timeout(PIPE_GRACE, reading).await.ok();
                exit
            }
        };
        self.0.client_execs.table().remove(id.as_str());
        ClientExecEnd {
            exit_code: match exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => 128 + signal,
                Exit::Unknown => -1,
            },
        }
    }

    /// Reserves an id for a command that a user typed; `None` if a command with this id runs
    /// already.
    pub fn reserve_for_user(&self, key: &str) -> Result<Option<ClientExecReservation>, ShellError> {
        self.check_limit()?;
        let mut table = self.0.client_execs.table();
        if table.contains_key(key) {
            return Ok(None);
        }
        let start = ClientExecStart::default();
        let starting = ClientExec::Starting(start.clone());
        table.insert(key.to_owned(), Arc::new(starting));
        Ok(Some(ClientExecReservation {
            shells: self.clone(),
            key: key.to_owned(),
            start,
        }))
    }

    /// Starts a command that a user typed, under its reserved id.
    pub async fn run_for_user(
        &self,
        reserved: &ClientExecReservation,
        command: &str,
        context: &CommandContext,
    ) -> Result<CommandRun, ShellError> {
        let spec = self.spec(context, Lifetime::Session, command.to_owned());
        let opened = Shell::open(&self.0.setup.processes, Backend::Process, spec).await;
        let mut shell = opened.map_err(ShellError::Open)?;
        let run = shell.start(command).await.map_err(ShellError::Start)?;
        let exec = ClientExec::Collected {
            run: run.clone(),
            shell: Mutex::new(Some(shell)),
        };
        self.0
            .client_execs
            .table()
            .insert(reserved.key.clone(), Arc::new(exec));
        reserved.start.settled.cancel();
        if reserved.start.cancelled.is_cancelled() {
            run.stop().await;
        }
        Ok(run)
    }

    /// Sends a signal to a streamed command and waits for its end. A command that does not end
    /// after SIGTERM is killed with all that it started.
    pub async fn signal_client_exec(&self, key: &str, signal: Signal) -> SignalOutcome {
        let found = self.0.client_execs.table().get(key).cloned();
        // Commands that a user typed have their own cancel request.
        let Some(ClientExec::Streamed(owned)) = found.as_deref() else {
            return SignalOutcome::NotRunning;
        };
        if owned.is_gone() {
            return SignalOutcome::NotRunning;
        }
        match signal {
            Signal::Kill => {
                owned.kill().await;
            }
            Signal::Terminate => {
                owned.stop(SIGNAL_GRACE).await;
            }
            Signal::Hangup | Signal::Interrupt | Signal::Quit => {
                owned.signal_group(signal);
                // A program may go on after these signals.
                tokio::time::timeout(SIGNAL_GRACE, owned.gone()).await.ok();
            }
        }
        if owned.is_gone() {
            SignalOutcome::Gone
        } else {
            SignalOutcome::Alive
        }
    }

    /// Stops a command that a user typed; returns whether it was running. When it returns, the command
    /// and all that it started have ended.
    pub async fn cancel_for_user(&self, key: &str) -> bool {
        let find = || self.0.client_execs.table().get(key).cloned();
        let mut found = find();
        let mut was_starting = false;
        if let Some(ClientExec::Starting(start)) = found.as_deref() {
            start.cancelled.cancel();
            // The command may run already although its start has not been noted yet.
            let settled = start.settled.cancelled();
            tokio::time::timeout(START_GRACE, settled).await.ok();
            was_starting = true;
            found = find();
        }
        match found.as_deref() {
            Some(ClientExec::Collected { run, shell }) => {
                run.stop().await;
                let shell = shell.lock().take();
                if let Some(shell) = shell {
                    // Programs that ignore the signals are killed before the answer.
                    shell.close(CloseMode::Now).await;
                }
                true
            }
            Some(ClientExec::Starting(_) | ClientExec::Streamed(_)) | None => was_starting,
        }
    }

    /// Runs work that outlives its request but not the session.
    pub fn spawn_for_session(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(work);
    }

    fn check_limit(&self) -> Result<(), ShellError> {
        if self.table().ended {
            return Err(ShellError::SessionEnded);
        }
        if self.0.client_execs.table().len() >= MAX_RUNNING {
            return Err(ShellError::TooManyShells { limit: MAX_RUNNING });
        }
        Ok(())
    }

    pub(super) fn close_client_execs(&self) {
        let running = std::mem::take(&mut *self.0.client_execs.table());
        for exec in running.into_values() {
            if let ClientExec::Collected { shell, .. } = &*exec {
                // Dropping a shell closes it.
                shell.lock().take();
            }
        }
    }
}

/// Reserves the id of a client command until dropped.
pub struct ClientExecReservation {
    shells: Shells,
    key: String,
    start: ClientExecStart,
}

impl Drop for ClientExecReservation {
    fn drop(&mut self) {
        self.shells.0.client_execs.table().remove(&self.key);
        self.start.settled.cancel();
    }
}

/// Sends output as it arrives, without splitting UTF-8 characters.
async fn forward_output(mut output: OutputPipe, send: &(impl Fn(String) + Send + Sync)) {
    let mut waiting = Vec::with_capacity(PIECE);
    loop {
        match output.read_buf(&mut waiting).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let whole = match std::str::from_utf8(&waiting) {
            Ok(text) => text.len(),
            // The last character is incomplete: keep its bytes for the next read.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => waiting.len(),
        };
        let rest = waiting.split_off(whole);
        if !waiting.is_empty() {
            send(String::from_utf8_lossy(&waiting).into_owned());
        }
        waiting = rest;
        waiting.reserve(PIECE);
    }
    if !waiting.is_empty() {
        send(String::from_utf8_lossy(&waiting).into_owned());
    }
}
