//! The process backend: one bash per command, no input, output and error on one pipe. One task per
//! command reads the pipe and waits for the end; [`Processes`] owns and kills the processes.

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
use super::run::{CloseOnDrop, CommandEnd, CommandRun, CommandState, RunRequest};
use super::sink::{GRACE, OutputSink, STOP_ANSWER, sleep_until_some};
use super::text::CommandText;
use super::{CloseMode, CommandStartError, ShellSpec, environment};

/// The read buffer, in bytes.
const CHUNK: usize = 64 * 1024;

/// How long output is read after a command has ended. A process that it left behind may hold the
/// pipe open.
const PIPE_GRACE: Duration = Duration::from_millis(500);

/// A shell that runs each command in a new process.
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
                sandbox: self.spec.sandbox.clone(),
            })
            .await?;
        let (sender, requests) = mpsc::channel(8);
        let run = CommandRun::new(CommandText::new(), sender);
        self.pid = owned.pid;
        self.current = Some(run.clone());
        let running = RunningProcess {
            pipe: owned.output.take(),
            owned,
            sink: OutputSink::new(run.clone(), &self.spec),
            requests,
        };
        let closed = self.closed.clone();
        self.tasks.spawn(running.serve(closed));
        Ok(run)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    pub(super) async fn close(self, how: CloseMode) {
        if how == CloseMode::Gently
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

/// One running command and the receiver of its output.
struct RunningProcess {
    owned: OwnedProcess,
    pipe: Option<OutputPipe>,
    sink: OutputSink,
    requests: mpsc::Receiver<RunRequest>,
}

/// Why the task stopped reading.
enum ReadEnd {
    Exited(Exit),
    Stopped(oneshot::Sender<()>),
    Closed,
}

impl RunningProcess {
    async fn serve(mut self, closed: CancellationToken) {
        let _closing = CloseOnDrop(self.sink.run.clone());
        match self.read_until_end(&closed).await {
            ReadEnd::Exited(exit) => {
                self.drain(PIPE_GRACE).await;
                if !self.owned.is_gone() {
                    self.sink.run.note_left_behind();
                }
                self.sink.end(ended(exit)).await;
                self.owned.kill_leftovers().await;
            }
            ReadEnd::Stopped(answer) => {
                self.owned.signal_group(Signal::Terminate);
                let until = Instant::now() + STOP_ANSWER;
                if timeout(STOP_ANSWER, self.owned.exit()).await.is_ok() {
                    self.drain(until.saturating_duration_since(Instant::now()))
                        .await;
                }
                self.sink.end(CommandEnd::Interrupted).await;
                // Fails if the caller no longer waits.
                answer.send(()).ok();
                let mut stop = std::pin::pin!(self.owned.stop(GRACE));
                tokio::select! {
                    _ = &mut stop => {}
                    () = closed.cancelled() => {
                        self.owned.kill().await;
                    }
                }
            }
            ReadEnd::Closed => {
                self.sink.end(CommandEnd::Closed).await;
                self.owned.kill().await;
            }
        }
    }

    async fn read_until_end(&mut self, closed: &CancellationToken) -> ReadEnd {
        let mut buffer = vec![0; CHUNK];
        loop {
            let notify_at = self.sink.notify_at();
            tokio::select! {
                exit = self.owned.exit() => return ReadEnd::Exited(exit),
                () = closed.cancelled() => return ReadEnd::Closed,
                Some(request) = self.requests.recv() => match request {
                    // Fails if the caller no longer waits.
                    RunRequest::Send(_, answer) => answer.send(Err(InputError::NoTerminal)).unwrap_or(()),
                    RunRequest::Stop(answer) => return ReadEnd::Stopped(answer),
                },
                count = read(&mut self.pipe, &mut buffer) => self.take(&buffer, count).await,
                () = sleep_until_some(notify_at) => self.sink.notify(),
            }
        }
    }

    /// Reads the rest of the pipe, at most for `within`.
    async fn drain(&mut self, within: Duration) {
        let drained = async {
            let mut buffer = vec![0; CHUNK];
            while self.pipe.is_some() {
                let count = read(&mut self.pipe, &mut buffer).await;
                self.take(&buffer, count).await;
            }
        };
        // A timeout means that another process holds the pipe open.
        timeout(within, drained).await.ok();
    }

    async fn take(&mut self, buffer: &[u8], count: io::Result<usize>) {
        match count {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                // There is no terminal, so replies are dropped.
                self.sink.feed(buffer.get(..count).unwrap_or_default());
                self.sink.save().await;
            }
            Err(error) => {
                tracing::warn!(%error, "the output of a command could not be read");
                self.pipe = None;
            }
        }
    }
}

/// Reads from an open pipe; never resolves without one.
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
