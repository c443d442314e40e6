//! The process backend: one bash per command, both outputs on one pipe, no input. A task per
//! command reads its pipe and sees it end; [`Processes`] owns and kills what it started.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::process::{Exit, Io, OutputPipe, OwnedProcess, Processes, Signal, Spawn};

use super::keys::InputError;
use super::reader::{GRACE, Reader, STOP_ANSWER, at};
use super::run::{Ask, Closing, CommandEnd, CommandRun, CommandState};
use super::text::Text;
use super::{Close, CommandStartError, ShellSpec, environment};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// How long output is still read after a command ended, because what it left behind holds the pipe.
const PIPE_GRACE: Duration = Duration::from_millis(500);

/// The shell that is a new process each time.
#[derive(Debug)]
pub(super) struct ProcessShell {
    processes: Processes,
    spec: ShellSpec,
    current: Option<CommandRun>,
    pid: u32,
    tasks: TaskTracker,
    closed: CancellationToken,
    _close_on_drop: DropGuard,
}

impl ProcessShell {
    pub(super) fn new(processes: Processes, spec: ShellSpec) -> Self {
        let closed = CancellationToken::new();
        Self {
            processes,
            spec,
            current: None,
            pid: 0,
            tasks: TaskTracker::new(),
            _close_on_drop: closed.clone().drop_guard(),
            closed,
        }
    }

    pub(super) async fn start(&mut self, command: &str) -> Result<CommandRun, CommandStartError> {
        let busy = |run: &CommandRun| !matches!(run.state(), CommandState::Ended(_));
        if self.current.as_ref().is_some_and(busy) {
            return Err(CommandStartError::Busy);
        }
        let mut owned = self
            .processes
            .spawn(Spawn {
                program: PathBuf::from("bash"),
                args: ["--noprofile", "--norc", "-c", command]
                    .map(Into::into)
                    .to_vec(),
                env: environment::quiet(&self.spec.env, "dumb"),
                cwd: self.spec.cwd.clone(),
                io: Io::Merged,
                lifetime: self.spec.lifetime.clone(),
                session: Some(self.spec.session.clone()),
                label: self.spec.label.clone(),
            })
            .await?;
        let (ask, asks) = mpsc::channel(8);
        let run = CommandRun::new(Text::new(), ask);
        self.pid = owned.pid;
        self.current = Some(run.clone());
        let child = Child {
            pipe: owned.output.take(),
            owned,
            reader: Reader::new(run.clone(), &self.spec),
            asks,
        };
        let closed = self.closed.clone();
        self.tasks.spawn(child.serve(closed));
        Ok(run)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) async fn close(self, how: Close) {
        if how == Close::Gently
            && let Some(run) = &self.current
        {
            run.stop().await;
        } else {
            self.closed.cancel();
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// One command and who reads it.
struct Child {
    owned: OwnedProcess,
    pipe: Option<OutputPipe>,
    reader: Reader,
    asks: mpsc::Receiver<Ask>,
}

/// Why reading ended.
enum Over {
    Exited(Exit),
    Stopped(oneshot::Sender<()>),
    Closed,
}

impl Child {
    async fn serve(mut self, closed: CancellationToken) {
        let _closing = Closing(self.reader.run.clone());
        match self.until_over(&closed).await {
            Over::Exited(exit) => {
                self.drain(PIPE_GRACE).await;
                if !self.owned.is_gone() {
                    self.reader.run.note_left_behind();
                }
                self.reader.end(ended(exit)).await;
                self.owned.kill_leftovers().await;
            }
            Over::Stopped(answer) => {
                self.owned.signal_group(Signal::Terminate);
                let until = Instant::now() + STOP_ANSWER;
                if timeout(STOP_ANSWER, self.owned.exit()).await.is_ok() {
                    self.drain(until.saturating_duration_since(Instant::now()))
                        .await;
                }
                self.reader.end(CommandEnd::Interrupted).await;
                // Whoever asked may have stopped waiting.
                answer.send(()).ok();
                let mut stop = std::pin::pin!(self.owned.stop(GRACE));
                tokio::select! {
                    _ = &mut stop => {}
                    () = closed.cancelled() => {
                        self.owned.kill().await;
                    }
                }
            }
            Over::Closed => {
                self.reader.end(CommandEnd::Closed).await;
                self.owned.kill().await;
            }
        }
    }

    async fn until_over(&mut self, closed: &CancellationToken) -> Over {
        let mut buffer = vec![0; CHUNK];
        loop {
            let tell_at = self.reader.tell_at();
            tokio::select! {
                exit = self.owned.exit() => return Over::Exited(exit),
                () = closed.cancelled() => return Over::Closed,
                Some(ask) = self.asks.recv() => match ask {
                    // Whoever asked may have stopped waiting.
                    Ask::Send(_, answer) => answer.send(Err(InputError::NoTerminal)).unwrap_or(()),
                    Ask::Stop(answer) => return Over::Stopped(answer),
                },
                count = read(&mut self.pipe, &mut buffer) => self.take(&buffer, count).await,
                () = at(tell_at) => self.reader.tell(),
            }
        }
    }

    /// Reads what is left in the pipe, no longer than this.
    async fn drain(&mut self, within: Duration) {
        let drained = async {
            let mut buffer = vec![0; CHUNK];
            while self.pipe.is_some() {
                let count = read(&mut self.pipe, &mut buffer).await;
                self.take(&buffer, count).await;
            }
        };
        // Running out of time means that somebody else holds the pipe open.
        timeout(within, drained).await.ok();
    }

    async fn take(&mut self, buffer: &[u8], count: io::Result<usize>) {
        match count {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                // Nobody reads what a terminal would answer.
                self.reader.feed(buffer.get(..count).unwrap_or_default());
                self.reader.save().await;
            }
            Err(error) => {
                tracing::warn!(%error, "the output of a command could not be read");
                self.pipe = None;
            }
        }
    }
}

/// Reads from a pipe that is open, and waits for ever on none.
async fn read(pipe: &mut Option<OutputPipe>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

fn ended(exit: Exit) -> CommandEnd {
    match exit {
        Exit::Code(code) => CommandEnd::Exited(code),
        Exit::Signal(signal) => CommandEnd::Killed(signal),
        Exit::Unknown => CommandEnd::Closed,
    }
}
