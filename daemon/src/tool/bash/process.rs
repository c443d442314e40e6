//! Runs one command as a child with its own process group and never outlives its bounds: whatever
//! the command does, the group is gone and the future is done when its time is up.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, MissedTickBehavior};

use super::capture::Capture;
use super::partial::Partial;
use crate::tool::{ToolContext, texts};

const CHUNK: usize = 16 * 1024;

/// How often a group that should be gone is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// How long a command may run.
    pub(super) limit: Duration,
    /// How long a command that was asked to end may take, and again after it was killed.
    pub(super) kill_after: Duration,
    /// How long output is still read, and background processes may end, after the command ended.
    pub(super) pipe_grace: Duration,
    /// How often partial output is sent.
    pub(super) partial_every: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Exited(i32),
    Killed(i32),
    Interrupted,
    OutOfTime,
    /// Even the kernel could not end it in time.
    NotStopped,
}

/// A command that ended and what it said.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) capture: Capture,
    /// What the model should know besides.
    pub(super) note: Option<&'static str>,
}

/// Why no command ran.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error("The command was not run: the working directory {0} does not exist.")]
    Folder(String),
    #[error("The command was not run: bash could not be started: {0}.")]
    Shell(#[source] io::Error),
    #[error("The command was not run: no pipe for its output could be made: {0}.")]
    Pipe(#[source] io::Error),
}

/// Runs a command to its end, in the directory and with exactly the environment of the context.
pub(super) async fn run(
    command: &str,
    context: &ToolContext,
    timing: Timing,
) -> Result<Finished, NotStarted> {
    let (child, group, pipe) = start(command, context).await?;
    let mut running = Running {
        child,
        group,
        output: Output {
            pipe: Some(pipe),
            buffer: vec![0; CHUNK],
            capture: Capture::new(context.scratch.clone()),
            partial: Partial::new(context.partial.clone()),
        },
        timing,
    };
    let (status, why) = running.until_exit(context).await;
    let note = running.settle(why).await;
    running.group.forget();
    running.output.partial.finish();
    Ok(Finished {
        end: match (status, why) {
            (None, _) => End::NotStopped,
            (Some(_), Some(Stop::Cancelled)) => End::Interrupted,
            (Some(_), Some(Stop::OutOfTime)) => End::OutOfTime,
            (Some(status), None) => match (status.code(), status.signal()) {
                (Some(code), _) => End::Exited(code),
                (None, signal) => End::Killed(signal.unwrap_or_default()),
            },
        },
        capture: running.output.capture,
        note,
    })
}

async fn start(
    command: &str,
    context: &ToolContext,
) -> Result<(Child, Group, Receiver), NotStarted> {
    let (reader, writer) = io::pipe().map_err(NotStarted::Pipe)?;
    let pipe = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(NotStarted::Pipe)?;
    // One pipe for both keeps the order in which the command wrote.
    let errors = writer.try_clone().map_err(NotStarted::Pipe)?;
    let mut shell = Command::new("bash");
    shell
        .args(["--noprofile", "--norc", "-c", command])
        .current_dir(&context.cwd)
        .env_clear()
        .envs(&context.env)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(errors)
        .process_group(0)
        .kill_on_drop(true);
    let child = match shell.spawn() {
        Ok(child) => child,
        Err(_) if !tokio::fs::try_exists(&context.cwd).await.unwrap_or(true) => {
            return Err(NotStarted::Folder(texts::path(&context.cwd)));
        }
        Err(error) => return Err(NotStarted::Shell(error)),
    };
    // Our copies of the write end go, or the pipe would never end.
    drop(shell);
    let group = Group::of(&child);
    Ok((child, group, pipe))
}

/// Why a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Cancelled,
    OutOfTime,
}

/// How far stopping has come.
#[derive(Debug, Clone, Copy)]
enum Stopping {
    No,
    Asked { why: Stop, kill_at: Instant },
    Killed { why: Stop, give_up_at: Instant },
}

impl Stopping {
    fn why(self) -> Option<Stop> {
        match self {
            Self::No => None,
            Self::Asked { why, .. } | Self::Killed { why, .. } => Some(why),
        }
    }
}

struct Running {
    child: Child,
    group: Group,
    output: Output,
    timing: Timing,
}

impl Running {
    /// Waits for the shell itself; no status means that it could not be ended.
    async fn until_exit(&mut self, context: &ToolContext) -> (Option<ExitStatus>, Option<Stop>) {
        let out_of_time = Instant::now() + self.timing.limit;
        let mut stopping = Stopping::No;
        let mut tick = tokio::time::interval(self.timing.partial_every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next_step = match stopping {
                Stopping::No => out_of_time,
                Stopping::Asked { kill_at, .. } => kill_at,
                Stopping::Killed { give_up_at, .. } => give_up_at,
            };
            tokio::select! {
                status = self.child.wait() => match status {
                    Ok(status) => return (Some(status), stopping.why()),
                    Err(error) => {
                        tracing::error!(%error, "a shell's exit status could not be read");
                        return (None, stopping.why());
                    }
                },
                count = self.output.wait() => self.output.take(count).await,
                _ = tick.tick() => self.output.partial.flush(),
                () = context.cancel.cancelled(), if matches!(stopping, Stopping::No) => {
                    stopping = self.ask_to_end(Stop::Cancelled);
                }
                () = tokio::time::sleep_until(next_step) => match stopping {
                    Stopping::No => stopping = self.ask_to_end(Stop::OutOfTime),
                    Stopping::Asked { why, .. } => {
                        self.group.signal(Signal::KILL);
                        let give_up_at = Instant::now() + self.timing.kill_after;
                        stopping = Stopping::Killed { why, give_up_at };
                    }
                    Stopping::Killed { why, .. } => return (None, Some(why)),
                },
            }
        }
    }

    fn ask_to_end(&self, why: Stop) -> Stopping {
        self.group.signal(Signal::TERM);
        Stopping::Asked {
            why,
            kill_at: Instant::now() + self.timing.kill_after,
        }
    }

    /// Reads what is left and ends what the shell left behind.
    async fn settle(&mut self, why: Option<Stop>) -> Option<&'static str> {
        if why.is_some() {
            self.group.signal(Signal::KILL);
        }
        self.drain().await;
        if !self.group.exists() {
            return None;
        }
        self.group.signal(Signal::KILL);
        self.drain().await;
        why.is_none().then_some(texts::LEFT_BEHIND)
    }

    /// Reads until nothing can come any more, for a short time at most.
    async fn drain(&mut self) {
        let deadline = Instant::now() + self.timing.pipe_grace;
        while (self.output.is_open() || self.group.exists()) && Instant::now() < deadline {
            tokio::select! {
                count = self.output.wait() => self.output.take(count).await,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

/// Where the output comes from and where it goes.
struct Output {
    pipe: Option<Receiver>,
    buffer: Vec<u8>,
    capture: Capture,
    partial: Partial,
}

impl Output {
    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next piece, for ever once the pipe is closed; may be dropped at any time.
    async fn wait(&mut self) -> io::Result<usize> {
        match &mut self.pipe {
            Some(pipe) => pipe.read(&mut self.buffer).await,
            None => std::future::pending().await,
        }
    }

    /// Takes the piece that `wait` found; has to run to its end.
    async fn take(&mut self, count: io::Result<usize>) {
        match count {
            Ok(count) if count > 0 => {
                let bytes = self.buffer.get(..count).unwrap_or_default();
                self.partial.push(bytes);
                self.capture.push(bytes).await;
            }
            Ok(_) => self.pipe = None,
            Err(error) => {
                tracing::warn!(%error, "the output of a command could not be read on");
                self.pipe = None;
            }
        }
    }
}

/// The process group of a command, killed when it is dropped early.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Sends a signal to all of it; a group that is gone needs none.
    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0
            && let Err(error) = rustix::process::kill_process_group(leader, signal)
        {
            tracing::debug!(%error, "a process group was not signalled");
        }
    }

    /// Says whether any process of it lives. The number is not given to others within the short
    /// time that this is asked after the leader ended.
    fn exists(&self) -> bool {
        self.0
            .is_some_and(|leader| rustix::process::test_kill_process_group(leader).is_ok())
    }

    /// Lets go without a signal.
    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
