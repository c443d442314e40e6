//! The terminal backend: one bash on a pseudo terminal, which runs one command after another. This
//! file is the handle; `actor.rs` is the task that owns the shell. `hook.rs` is the code that runs
//! in bash, `markers.rs` finds the messages of that code in the output, `device.rs` is the
//! terminal, and `waiting.rs` detects programs that wait for input.

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
use super::{CloseMode, CommandStartError, ShellOpenError, ShellSpec, environment};
use actor::{PtyActor, StartRequest};
use device::PtyDevice;
use markers::MarkerScanner;

/// How long bash may take to start.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Precedes each command in the pipe: a late interrupt may consume a byte; see `hook.rs`.
const PADDING: &[u8] = &[0; 4];

/// A shell on a terminal.
#[derive(Debug)]
pub(super) struct PtyShell {
    pid: u32,
    starts: mpsc::Sender<StartRequest>,
    ended: watch::Receiver<Option<CommandEnd>>,
    tasks: TaskTracker,
    /// `closed` kills the shell; `gently` sends signals first.
    closed: CancellationToken,
    gently: CancellationToken,
    _close_on_drop: DropGuard,
}

impl PtyShell {
    pub(super) async fn open(
        processes: &Processes,
        spec: ShellSpec,
    ) -> Result<Self, ShellOpenError> {
        // Two ids together have enough random bits that a program cannot guess the word.
        let word = format!("{}{}", Ulid::generate(), Ulid::generate());
        let mut device = PtyDevice::open().map_err(ShellOpenError::Terminal)?;
        let commands = CommandPipe::make(&spec, &word)
            .await
            .map_err(ShellOpenError::Terminal)?;
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
        device.close_other_end();
        let pid = owned.pid;
        let (starts, start) = mpsc::channel(1);
        let (ready, is_ready) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(None);
        let closed = CancellationToken::new();
        let gently = CancellationToken::new();
        let actor = PtyActor::new(device, MarkerScanner::new(&word), commands, owned, spec);
        let tasks = TaskTracker::new();
        tasks.spawn(actor.serve(actor::ActorChannels {
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
            Ok(Err(_)) => Err(ShellOpenError::NotReady("it ended".to_owned())),
            Err(_) => Err(ShellOpenError::NotReady("it took too long".to_owned())),
        }
    }

    pub(super) async fn start(&mut self, command: &str) -> Result<CommandRun, CommandStartError> {
        let (answer, answered) = oneshot::channel();
        let start = StartRequest {
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

    pub(super) async fn close(self, how: CloseMode) {
        match how {
            CloseMode::Now => self.closed.cancel(),
            CloseMode::Gently => self.gently.cancel(),
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The named pipe from which bash reads its commands.
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
        // Open for reading and writing, so that neither side blocks until the other opens it.
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

    /// Writes as many waiting bytes as fit; never resolves if there are none.
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
