//! The terminal backend: one bash on a pseudo terminal, which runs one command after another. This
//! file is the handle; `actor.rs` is the task that owns the shell. `hook.rs` is the code that runs
//! in bash, `channel.rs` is the socket to it, `markers.rs` finds its markers in the output,
//! `ending.rs` ends a command, `device.rs` is the terminal, and `waiting.rs` detects programs that
//! wait for input.

mod actor;
mod channel;
mod device;
mod ending;
mod hook;
mod markers;
mod stopping;
mod waiting;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::process::{Io, Processes, Spawn};

use super::run::{CommandEnd, CommandRun};
use super::{CloseMode, CommandStartError, ShellOpenError, ShellSpec, environment};
use actor::{PtyActor, StartRequest};
use channel::ShellChannel;
use device::PtyDevice;

/// How long bash may take to start.
const READY_WITHIN: Duration = Duration::from_secs(10);

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
        let mut device = PtyDevice::open().map_err(ShellOpenError::Terminal)?;
        let mut env = environment::quiet(&spec.env, "xterm-256color");
        env.insert("PROMPT_COMMAND".to_owned(), hook::prompt_command());
        env.insert(
            "BASH_SILENCE_DEPRECATION_WARNING".to_owned(),
            "1".to_owned(),
        );
        let mut owned = processes
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
                sandbox: spec.sandbox.clone(),
            })
            .await?;
        device.close_other_end();
        let pid = owned.pid;
        let channel = owned
            .control
            .take()
            .map(|socket| ShellChannel::new(socket, pid));
        let no_socket = || ShellOpenError::Terminal(io::Error::other("bash has no socket to us"));
        let channel = channel.ok_or_else(no_socket)?;
        let (starts, start) = mpsc::channel(1);
        let (ready, is_ready) = oneshot::channel();
        let (ended_sender, ended) = watch::channel(None);
        let closed = CancellationToken::new();
        let gently = CancellationToken::new();
        let actor = PtyActor::new(device, channel, owned, spec);
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
