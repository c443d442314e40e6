//! Detached commands: processes of their own that outlive the daemon, known by their log.

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
use super::error::ShellError;
use super::{CommandOrder, Shells, task_end};
use crate::process::{Exit, Io, Lifetime, Owned, Processes, Spawn};
use crate::terminal::{Body, Saved, Shown};
use loopd_kernel::command::{Command, TaskEnd, TaskStart};
use loopd_kernel::tasks::Task;

/// How long a detached command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// The longest part of a log that is shown whole, and how much of a longer one is.
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
    process: Process,
    ending: watch::Sender<CommandStatus>,
    /// How much of the log was read.
    read: Mutex<u64>,
    stopped: Mutex<bool>,
}

/// The process of a detached command.
#[derive(Debug)]
enum Process {
    Known(Owned),
    /// It ended while no daemon was there; this was written beside its log.
    Gone(Option<Exit>),
}

/// What a log said since it was read last, and whether the command had ended by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogExcerpt {
    pub shown: Shown,
    pub ending: CommandStatus,
}

impl DetachedCommand {
    /// A detached command that the session's log knows.
    pub(super) fn found(
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
            Some(process) => Process::Known(process),
            None => Process::Gone(processes.written_exit(&log)),
        };
        let ending = match task.ending() {
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
            ending: watch::Sender::new(ending),
            read: Mutex::new(0),
            stopped: Mutex::new(false),
        })
    }

    pub fn is_running(&self) -> bool {
        self.ending() == CommandStatus::Running
    }

    pub fn ending(&self) -> CommandStatus {
        *self.ending.borrow()
    }

    /// Waits for the end, at most so long.
    pub async fn pause(&self, limit: Duration, cancel: &CancellationToken) -> WaitOutcome {
        let mut ending = self.ending.subscribe();
        tokio::select! {
            biased;
            // The sender lives as long as `self`: waiting cannot fail.
            _ = ending.wait_for(|ending| *ending != CommandStatus::Running) => WaitOutcome::Ended,
            () = cancel.cancelled() => WaitOutcome::Cancelled,
            () = tokio::time::sleep(limit) => WaitOutcome::OutOfTime,
        }
    }

    /// Stops the command and everything it started.
    pub(super) async fn stop(&self) -> CommandStatus {
        if let (true, Process::Known(process)) = (self.is_running(), &self.process) {
            *self.stopped.lock() = true;
            process.stop(GRACE).await;
            let mut ending = self.ending.subscribe();
            // The sender lives as long as `self`: waiting cannot fail.
            ending.wait_for(|e| *e != CommandStatus::Running).await.ok();
        }
        self.ending()
    }

    /// Waits for the end and says it in the words of the log.
    async fn end(&self) -> TaskEnd {
        let exit = match &self.process {
            Process::Known(process) => process.exit().await,
            Process::Gone(exit) => exit.unwrap_or(Exit::Unknown),
        };
        let stopped = *self.stopped.lock();
        let (ending, end) = match exit {
            _ if stopped => (
                CommandStatus::Stopped,
                TaskEnd::new(TaskOutcome::Cancelled).because("it was stopped"),
            ),
            Exit::Code(code) => (CommandStatus::Exited(code), task_end(Some(code), None)),
            Exit::Signal(signal) => (
                CommandStatus::Killed(signal),
                task_end(
                    Some(128 + signal),
                    Some(format!("it was killed by signal {signal}")),
                ),
            ),
            Exit::Unknown => (
                CommandStatus::Unknown,
                task_end(None, Some("nobody saw how it ended".to_owned())),
            ),
        };
        self.ending.send_replace(ending);
        end
    }

    /// What the log says since it was read last.
    pub async fn unread(&self) -> std::io::Result<LogExcerpt> {
        let ending = self.ending();
        let from = *self.read.lock();
        let (body, to) = read_log(&self.log, from).await?;
        *self.read.lock() = to;
        Ok(LogExcerpt {
            shown: Shown { body, screen: None },
            ending,
        })
    }

    /// The end of the log, without marking anything as read.
    pub async fn tail(&self) -> std::io::Result<String> {
        let size = tokio::fs::metadata(&self.log).await?.len();
        let from = size.saturating_sub(TAIL as u64 * 4);
        let mut file = tokio::fs::File::open(&self.log).await?;
        let bytes = read_at(&mut file, from, size - from).await?;
        Ok(last_chars(&String::from_utf8_lossy(&bytes), TAIL))
    }
}

impl Shells {
    /// Starts a command that outlives the daemon; it is in the session's log before it runs.
    pub async fn detach(&self, order: CommandOrder) -> Result<Arc<DetachedCommand>, ShellError> {
        let setup = &self.0.setup;
        let started_at = self.0.clock.now();
        let id = self.reserve_detached(&order)?;
        let name = format!("detached-{}-{}.log", file_part(&id), started_at.0);
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
                self.tell(Command::TasksDelivered(vec![task.clone()])).await;
                let end = task_end(None, Some(error.to_string()));
                self.tell(Command::TaskEnded { id: task, end }).await;
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
            process: Process::Known(process),
            ending: watch::Sender::new(CommandStatus::Running),
            read: Mutex::new(0),
            stopped: Mutex::new(false),
        });
        self.table().detached.insert(id, command.clone());
        self.tell(Command::TaskProcess { id: task, pid }).await;
        self.watch_detached(command.clone());
        Ok(command)
    }

    /// A name for a detached command: the one it asks for, unless that is taken.
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

    async fn spawn_detached(&self, order: &CommandOrder, log: &Path) -> Result<Owned, ShellError> {
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
        };
        let spawned = setup.processes.spawn(spawn).await;
        spawned.map_err(ShellError::Spawn)
    }

    /// Tells the session when a detached command ends.
    pub(super) fn watch_detached(&self, command: Arc<DetachedCommand>) {
        let shells = self.clone();
        self.0.tasks.spawn(async move {
            let end = command.end().await;
            let id = TaskId::new(command.id.as_str());
            shells.tell(Command::TaskEnded { id, end }).await;
        });
    }
}

/// How the shell is told to run a command and leave the user's start-up files alone.
pub(super) fn arguments(command: &str) -> Vec<std::ffi::OsString> {
    let flags: &[&str] = if cfg!(windows) {
        &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
    } else {
        &["--norc", "--noprofile", "-c"]
    };
    let flags = flags.iter().map(Into::into);
    flags.chain([command.into()]).collect()
}

/// A shell's name as a part of a file name.
fn file_part(id: &ShellId) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    id.as_str().chars().take(32).map(safe).collect()
}

/// Reads a log from a place on; says what to show and where to go on.
async fn read_log(log: &Path, from: u64) -> std::io::Result<(Body, u64)> {
    let mut file = match tokio::fs::File::open(log).await {
        Ok(file) => file,
        // Nothing was written yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((Body::Whole(String::new()), from));
        }
        Err(error) => return Err(error),
    };
    let size = file.metadata().await?.len();
    // A log that got shorter was written anew.
    let from = if from > size { 0 } else { from };
    let unread = size - from;
    if unread <= WHOLE {
        let bytes = read_at(&mut file, from, unread).await?;
        let to = from + bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Ok((Body::Whole(text), to));
    }
    let head = read_at(&mut file, from, HEAD as u64 * 4).await?;
    let tail_bytes = TAIL as u64 * 4;
    let tail = read_at(&mut file, size - tail_bytes, tail_bytes).await?;
    let body = Body::Preview {
        head: String::from_utf8_lossy(&head).chars().take(HEAD).collect(),
        tail: last_chars(&String::from_utf8_lossy(&tail), TAIL),
        bytes: unread,
        saved: Saved::File {
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
