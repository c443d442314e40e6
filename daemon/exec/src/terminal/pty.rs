//! The terminal backend: one bash on a pseudo terminal, which takes one command after another.
//! `terminal/actor.rs` is the task that owns it; this is the handle of that task. `hook.rs` is what
//! runs in bash, `markers.rs` finds what it says, `device.rs` is the terminal, `waiting.rs` notices
//! programs that wait for input.

mod actor;
mod device;
mod hook;
mod markers;
mod stopping;
mod waiting;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use ulid::Ulid;

use crate::process::{Io, Processes, Spawn};

use super::run::{CommandEnd, CommandRun};
use super::{Close, CommandStartError, OpenError, ShellSpec, environment};
use actor::{Actor, Start};
use device::Device;
use markers::Markers;

/// How long bash may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Stands before each command for interrupts that come too late to spoil; see `hook.rs`.
const PADDING: &[u8] = &[0; 4];

/// A shell on a terminal.
#[derive(Debug)]
pub(super) struct PtyShell {
    pid: u32,
    starts: mpsc::Sender<Start>,
    ended: watch::Receiver<Option<CommandEnd>>,
    tasks: TaskTracker,
    /// Ends the shell: politely first, if it is asked to.
    closed: CancellationToken,
    gently: CancellationToken,
    _close_on_drop: DropGuard,
}

impl PtyShell {
    pub(super) async fn open(processes: &Processes, spec: ShellSpec) -> Result<Self, OpenError> {
        // Two ids have more randomness than anything could guess; their times do no harm.
        let word = format!("{}{}", Ulid::generate(), Ulid::generate());
        let mut device = Device::open().map_err(OpenError::Terminal)?;
        let commands = CommandPipe::make(&spec, &word)
            .await
            .map_err(OpenError::Terminal)?;
        let mut env = environment::quiet(&spec.env, "xterm-256color");
        let hook = hook::prompt_command(&commands.path, &word);
        env.insert("PROMPT_COMMAND".to_owned(), hook);
        env.insert(
            "BASH_SILENCE_DEPRECATION_WARNING".to_owned(),
            "1".to_owned(),
        );
        let owned = processes
            .spawn(Spawn {
                program: PathBuf::from("bash"),
                args: ["--noprofile", "--norc", "--noediting", "-i"]
                    .map(Into::into)
                    .to_vec(),
                env,
                cwd: spec.cwd.clone(),
                io: Io::Terminal {
                    tty: device.tty().to_owned(),
                },
                lifetime: spec.lifetime.clone(),
                session: Some(spec.session.clone()),
                label: spec.label.clone(),
            })
            .await?;
        device.handed_over();
        let pid = owned.pid;
        let (starts, start) = mpsc::channel(1);
        let (ready, is_ready) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(None);
        let closed = CancellationToken::new();
        let gently = CancellationToken::new();
        let actor = Actor::new(device, Markers::new(&word), commands, owned, spec);
        let tasks = TaskTracker::new();
        tasks.spawn(actor.serve(actor::Wires {
            starts: start,
            ready,
            ended: ended_sender,
            closed: closed.clone(),
            gently: gently.clone(),
        }));
        let terminal = Self {
            pid,
            starts,
            ended,
            tasks,
            _close_on_drop: closed.clone().drop_guard(),
            closed,
            gently,
        };
        match timeout(READY_WITHIN, is_ready).await {
            Ok(Ok(())) => Ok(terminal),
            Ok(Err(_)) => Err(OpenError::NotReady("it ended".to_owned())),
            Err(_) => Err(OpenError::NotReady("it took too long".to_owned())),
        }
    }

    pub(super) async fn start(&mut self, command: &str) -> Result<CommandRun, CommandStartError> {
        let (answer, answered) = oneshot::channel();
        let start = Start {
            command: command.to_owned(),
            answer,
        };
        let closed =
            || CommandStartError::Closed(self.ended.borrow().unwrap_or(CommandEnd::Closed));
        self.starts.send(start).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(super) fn alive(&self) -> bool {
        self.ended.borrow().is_none()
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) async fn close(self, how: Close) {
        match how {
            Close::Now => self.closed.cancel(),
            Close::Gently => self.gently.cancel(),
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The named pipe that commands go to bash by.
#[derive(Debug)]
struct CommandPipe {
    path: PathBuf,
    sender: pipe::Sender,
    waiting: Vec<u8>,
}

impl CommandPipe {
    async fn make(spec: &ShellSpec, word: &str) -> io::Result<Self> {
        let mut folder = tokio::fs::DirBuilder::new();
        folder.recursive(true).mode(0o700);
        folder.create(&spec.scratch).await?;
        let path = spec.scratch.join(format!(".commands-{word}"));
        rustix::fs::mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        // Open for both, so that neither side ever waits for the other to open it.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let both: OwnedFd = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self {
            path,
            sender: pipe::Sender::from_owned_fd(both)?,
            waiting: Vec::new(),
        })
    }

    fn push(&mut self, command: &str) {
        let command = if command.is_empty() { ":" } else { command };
        self.waiting.clear();
        self.waiting.extend_from_slice(PADDING);
        self.waiting.extend_from_slice(command.as_bytes());
        self.waiting.push(0);
    }

    /// Sends what waits as far as it fits; waits for ever if there is nothing.
    async fn write(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            std::future::pending::<()>().await;
        }
        self.sender.writable().await?;
        match self.sender.try_write(&self.waiting) {
            Ok(written) => {
                self.waiting.drain(..written.min(self.waiting.len()));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for CommandPipe {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "the pipe of a shell was gone already");
        }
    }
}
