//! Detached commands: processes that outlive the daemon and write their output to a log file.

use parking_lot::Mutex;
use std::io::SeekFrom;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::task::{ShellAttachment, ShellWork, TaskOutcome, TaskWork};
use loopd_proto::id::{ShellId, TaskId};
use loopd_proto::time::Timestamp;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::command::{CommandStatus, WaitOutcome};
use super::error::{CloseReason, ShellError};
use super::{CommandOrder, Shells, stopped_end, task_end};
use crate::process::{Exit, Io, Lifetime, OwnedProcess, Processes, Spawn, read_exit};
use crate::terminal::{CommandOutput, OutputBody, SavedOutput};
use loopd_kernel::command::{Command, TaskEnd, TaskStart};
use loopd_kernel::tasks::Task;

/// How long a detached command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Up to `WHOLE` unread bytes of a log are shown in full; of more, `HEAD` and `TAIL` characters.
const WHOLE: u64 = 51_200;
const HEAD: usize = 500;
const TAIL: usize = 2_000;

/// A detached command.
#[derive(Debug)]
pub struct DetachedCommand {
    pub id: ShellId,
    pub command: String,
    pub description: String,
    pub log: PathBuf,
    pub started_at: Timestamp,
    pub pid: Option<u32>,
    process: DetachedProcess,
    status: watch::Sender<CommandStatus>,
    /// How many bytes of the log were read.
    read: Mutex<u64>,
    stopped: Mutex<Option<CloseReason>>,
}

/// The process of a detached command.
#[derive(Debug)]
enum DetachedProcess {
    Known(OwnedProcess),
    /// It ended while no daemon was running. The keeper wrote its exit to a file beside the log.
    Ended(Option<Exit>),
}

/// The unread part of a log, and the status of the command before that part was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogExcerpt {
    pub shown: CommandOutput,
    pub status: CommandStatus,
}

impl DetachedCommand {
    /// Restores a detached command from its task in the session's log.
    pub(super) fn restored(
        task: &Task,
        shell: &ShellWork,
        log: &str,
        processes: &Processes,
    ) -> Arc<Self> {
        let log = PathBuf::from(log);
        let entry = processes
            .list()
            .into_iter()
            .find(|entry| entry.log.as_deref() == Some(log.as_path()));
        let process = match entry.and_then(|entry| processes.adopted(&entry.id)) {
            Some(process) => DetachedProcess::Known(process),
            None => DetachedProcess::Ended(read_exit(&log)),
        };
        let status = match task.ending() {
            None => CommandStatus::Running,
            Some(ending) if ending.outcome == TaskOutcome::Cancelled => CommandStatus::Stopped,
            Some(ending) => ending
                .exit_code
                .map_or(CommandStatus::Unknown, CommandStatus::Exited),
        };
        Arc::new(Self {
            id: shell.shell_id.clone(),
            command: shell.command.clone(),
            description: task.description.clone(),
            log,
            started_at: task.started_at,
            pid: shell.pid,
            process,
            status: watch::Sender::new(status),
            read: Mutex::new(0),
            stopped: Mutex::default(),
        })
    }

    pub fn is_running(&self) -> bool {
        self.status() == CommandStatus::Running
    }

    pub fn status(&self) -> CommandStatus {
        *self.status.borrow()
    }

    /// Waits for the end of the command, at most for `limit`.
    pub async fn wait(&self, limit: Duration, cancel: &CancellationToken) -> WaitOutcome {
        let mut status = self.status.subscribe();
        tokio::select! {
            biased;
            // The sender lives as long as `self`: waiting cannot fail.
            _ = status.wait_for(|status| *status != CommandStatus::Running) => WaitOutcome::Ended,
            () = cancel.cancelled() => WaitOutcome::Cancelled,
            () = tokio::time::sleep(limit) => WaitOutcome::OutOfTime,
        }
    }

    /// Stops the command and everything it started.
    pub(super) async fn stop(&self, reason: CloseReason) -> CommandStatus {
        if let (true, DetachedProcess::Known(process)) = (self.is_running(), &self.process) {
            *self.stopped.lock() = Some(reason);
            process.stop(GRACE).await;
            let mut status = self.status.subscribe();
            // The sender lives as long as `self`: waiting cannot fail.
            status
                .wait_for(|status| *status != CommandStatus::Running)
                .await
                .ok();
        }
        self.status()
    }

    /// Waits for the end of the command and returns it as the session's log stores it.
    async fn end(&self) -> TaskEnd {
        let exit = match &self.process {
            DetachedProcess::Known(process) => process.exit().await,
            DetachedProcess::Ended(exit) => exit.unwrap_or(Exit::Unknown),
        };
        let stopped = *self.stopped.lock();
        let (status, end) = match (stopped, exit) {
            (Some(reason), _) => (CommandStatus::Stopped, stopped_end(reason)),
            (None, Exit::Code(code)) => (CommandStatus::Exited(code), task_end(Some(code), None)),
            (None, Exit::Signal(signal)) => (
                CommandStatus::Killed(signal),
                task_end(
                    Some(128 + signal),
                    Some(format!("it was killed by signal {signal}")),
                ),
            ),
            (None, Exit::Unknown) => (
                CommandStatus::Unknown,
                task_end(None, Some("nobody saw how it ended".to_owned())),
            ),
        };
        self.status.send_replace(status);
        end
    }

    /// Reads the unread part of the log and marks it as read.
    pub async fn unread(&self) -> std::io::Result<LogExcerpt> {
        let status = self.status();
        let from = *self.read.lock();
        let (body, to) = read_log(&self.log, from).await?;
        *self.read.lock() = to;
        Ok(LogExcerpt {
            shown: CommandOutput { body, screen: None },
            status,
        })
    }

    /// Reads the end of the log without marking it as read.
    pub async fn tail(&self) -> std::io::Result<String> {
        let size = tokio::fs::metadata(&self.log).await?.len();
        let from = size.saturating_sub(TAIL as u64 * 4);
        let mut file = tokio::fs::File::open(&self.log).await?;
        let bytes = read_at(&mut file, from, size - from).await?;
        Ok(last_chars(&String::from_utf8_lossy(&bytes), TAIL))
    }
}

impl Shells {
    /// Starts a command that outlives the daemon; the session's log records it before it runs.
    pub async fn detach(&self, order: CommandOrder) -> Result<Arc<DetachedCommand>, ShellError> {
        if order.context.sandbox.is_some() {
            return Err(ShellError::DetachedSandbox);
        }
        let setup = &self.0.setup;
        let started_at = self.0.clock.now();
        let id = self.reserve_detached(&order)?;
        let name = format!("detached-{}-{}.log", file_name_part(&id), started_at.0);
        let log = setup.scratch.join(name);
        let task = TaskId::new(id.as_str());
        let start = TaskStart {
            id: task.clone(),
            call: order.call.clone(),
            description: order.description.clone(),
            started_at: Some(started_at),
            work: TaskWork::Shell(ShellWork {
                shell_id: id.clone(),
                command: order.command.clone(),
                attachment: ShellAttachment::Detached,
                pid: None,
                log_path: Some(log.to_string_lossy().into_owned()),
                agent: None,
            }),
        };
        let stored = setup
            .log
            .record(Command::TaskStarted(Box::new(start)))
            .await;
        stored.map_err(ShellError::NotStored)?;
        let spawned = self.spawn_detached(&order, &log).await;
        let process = match spawned {
            Ok(process) => process,
            Err(error) => {
                self.record(Command::TasksDelivered(vec![task.clone()]))
                    .await;
                let end = task_end(None, Some(error.to_string()));
                self.record(Command::TaskEnded { id: task, end }).await;
                return Err(error);
            }
        };
        let pid = process.pid;
        let command = Arc::new(DetachedCommand {
            id: id.clone(),
            command: order.command,
            description: order.description,
            log,
            started_at,
            pid: Some(pid),
            process: DetachedProcess::Known(process),
            status: watch::Sender::new(CommandStatus::Running),
            read: Mutex::new(0),
            stopped: Mutex::default(),
        });
        self.table().detached.insert(id, command.clone());
        self.record(Command::TaskProcess { id: task, pid }).await;
        self.watch_detached(command.clone());
        Ok(command)
    }

    /// Returns the shell id for a detached command: the requested one if free, or a new one.
    fn reserve_detached(&self, order: &CommandOrder) -> Result<ShellId, ShellError> {
        let mut table = self.table();
        if table.ended {
            return Err(ShellError::SessionEnded);
        }
        let Some(id) = &order.shell else {
            return Ok(table.next_name());
        };
        if table
            .detached
            .get(id)
            .is_some_and(|command| command.is_running())
        {
            return Err(ShellError::Detached(id.clone()));
        }
        if let Some(slot) = table.slots.get(id) {
            let command = slot.command().map(|command| command.command.clone());
            return Err(ShellError::StillBusy {
                id: id.clone(),
                command: command.unwrap_or_default(),
            });
        }
        table.closed.forget(id);
        Ok(id.clone())
    }

    async fn spawn_detached(
        &self,
        order: &CommandOrder,
        log: &Path,
    ) -> Result<OwnedProcess, ShellError> {
        let setup = &self.0.setup;
        let mut folder = tokio::fs::DirBuilder::new();
        folder.recursive(true);
        #[cfg(unix)]
        folder.mode(0o700);
        if let Err(error) = folder.create(&setup.scratch).await {
            tracing::warn!(session = %setup.session, %error, "the folder for logs could not be made");
        }
        let spawn = Spawn {
            program: PathBuf::from(if cfg!(windows) { "powershell" } else { "bash" }),
            args: arguments(&order.command),
            env: order.context.env.clone(),
            cwd: order.context.cwd.clone(),
            io: Io::Log,
            lifetime: Lifetime::Detached {
                log: log.to_path_buf(),
            },
            session: Some(setup.session.clone()),
            label: order.command.clone(),
            sandbox: order.context.sandbox.clone(),
        };
        let spawned = setup.processes.spawn(spawn).await;
        spawned.map_err(ShellError::Spawn)
    }

    /// Records the end of a detached command when it comes.
    pub(super) fn watch_detached(&self, command: Arc<DetachedCommand>) {
        let shells = self.clone();
        self.0.tasks.spawn(async move {
            let end = command.end().await;
            let id = TaskId::new(command.id.as_str());
            shells.record(Command::TaskEnded { id, end }).await;
        });
    }
}

/// The arguments that make the shell run a command without reading start-up files.
pub(super) fn arguments(command: &str) -> Vec<std::ffi::OsString> {
    let flags: &[&str] = if cfg!(windows) {
        &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
    } else {
        &["--norc", "--noprofile", "-c"]
    };
    let flags = flags.iter().map(Into::into);
    flags.chain([command.into()]).collect()
}

/// A shell id as a part of a file name.
fn file_name_part(id: &ShellId) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    id.as_str().chars().take(32).map(safe).collect()
}

/// Reads a log from an offset; returns what to show and the offset of the next read.
async fn read_log(log: &Path, from: u64) -> std::io::Result<(OutputBody, u64)> {
    let mut file = match tokio::fs::File::open(log).await {
        Ok(file) => file,
        // Nothing was written yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((OutputBody::Whole(String::new()), from));
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata().await?.len();
    // A log that is shorter than before was rewritten.
    let from = if from > size { 0 } else { from };
    let unread = size - from;
    if unread <= WHOLE {
        let bytes = read_at(&mut file, from, unread).await?;
        let to = from + bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Ok((OutputBody::Whole(text), to));
    }
    let head = read_at(&mut file, from, HEAD as u64 * 4).await?;
    let tail_bytes = TAIL as u64 * 4;
    let tail = read_at(&mut file, size - tail_bytes, tail_bytes).await?;
    let body = OutputBody::Preview {
        head: String::from_utf8_lossy(&head).chars().take(HEAD).collect(),
        tail: last_chars(&String::from_utf8_lossy(&tail), TAIL),
        bytes: unread,
        saved: SavedOutput::File {
            path: log.to_path_buf(),
            bytes: size,
        },
    };
    Ok((body, size))
}

async fn read_at(file: &mut tokio::fs::File, from: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from)).await?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn last_chars(text: &str, characters: usize) -> String {
    let start = text.char_indices().rev().nth(characters.saturating_sub(1));
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or(text).to_owned()
}
