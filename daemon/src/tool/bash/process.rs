//! Runs one command and never outlives its bounds: whatever the command does, it and all it started
//! are gone and the future is done when its time is up.

use std::io;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::{Instant, MissedTickBehavior};

use super::capture::Capture;
use super::partial::Partial;
use crate::process::{Exit, Io, Lifetime, OutputPipe, Owned, Signal, Spawn, SpawnError};
use crate::tool::{ToolContext, texts};

const CHUNK: usize = 16 * 1024;

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
    #[error("The command was not run: {0}.")]
    Process(#[from] SpawnError),
    #[error("The command was not run: it has no pipe for its output.")]
    NoPipe,
}

/// Runs a command to its end, in the directory and with exactly the environment of the context.
pub(super) async fn run(
    command: &str,
    context: &ToolContext,
    timing: Timing,
) -> Result<Finished, NotStarted> {
    let (owned, pipe) = start(command, context).await?;
    let mut running = Running {
        owned,
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
    running.output.partial.finish();
    Ok(Finished {
        end: match (status, why) {
            (None, _) | (Some(Exit::Unknown), None) => End::NotStopped,
            (Some(_), Some(Stop::Cancelled)) => End::Interrupted,
            (Some(_), Some(Stop::OutOfTime)) => End::OutOfTime,
            (Some(Exit::Code(code)), None) => End::Exited(code),
            (Some(Exit::Signal(signal)), None) => End::Killed(signal),
        },
        capture: running.output.capture,
        note,
    })
}

async fn start(command: &str, context: &ToolContext) -> Result<(Owned, OutputPipe), NotStarted> {
    let spawn = Spawn {
        program: "bash".into(),
        args: ["--noprofile", "--norc", "-c", command]
            .map(Into::into)
            .to_vec(),
        env: context.env.clone(),
        cwd: context.cwd.clone(),
        io: Io::Merged,
        lifetime: Lifetime::Turn,
        session: Some(context.session.clone()),
        label: command.to_owned(),
    };
    let mut owned = context.processes.spawn(spawn).await?;
    let pipe = owned.output.take();
    Ok((owned, pipe.ok_or(NotStarted::NoPipe)?))
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
    owned: Owned,
    output: Output,
    timing: Timing,
}

impl Running {
    /// Waits for the shell itself; no status means that it could not be ended.
    async fn until_exit(&mut self, context: &ToolContext) -> (Option<Exit>, Option<Stop>) {
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
                exit = self.owned.exit() => return (Some(exit), stopping.why()),
                count = self.output.wait() => self.output.take(count).await,
                _ = tick.tick() => self.output.partial.flush(),
                () = context.cancel.cancelled(), if matches!(stopping, Stopping::No) => {
                    stopping = self.ask_to_end(Stop::Cancelled);
                }
                () = tokio::time::sleep_until(next_step) => match stopping {
                    Stopping::No => stopping = self.ask_to_end(Stop::OutOfTime),
                    Stopping::Asked { why, .. } => {
                        self.owned.kill_now();
                        let give_up_at = Instant::now() + self.timing.kill_after;
                        stopping = Stopping::Killed { why, give_up_at };
                    }
                    Stopping::Killed { why, .. } => return (None, Some(why)),
                },
            }
        }
    }

    fn ask_to_end(&self, why: Stop) -> Stopping {
        self.owned.signal_group(Signal::Terminate);
        Stopping::Asked {
            why,
            kill_at: Instant::now() + self.timing.kill_after,
        }
    }

    /// Reads what is left and ends what the shell left behind.
    async fn settle(&mut self, why: Option<Stop>) -> Option<&'static str> {
        if why.is_some() {
            self.owned.kill_now();
        }
        self.drain().await;
        if self.owned.is_gone() {
            return None;
        }
        self.owned.kill_now();
        self.drain().await;
        why.is_none().then_some(texts::LEFT_BEHIND)
    }

    /// Reads until nothing can come any more, for a short time at most.
    async fn drain(&mut self) {
        let deadline = Instant::now() + self.timing.pipe_grace;
        while self.output.is_open() || !self.owned.is_gone() {
            tokio::select! {
                count = self.output.wait() => self.output.take(count).await,
                () = self.owned.gone(), if !self.owned.is_gone() => {}
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
    }
}

/// Where the output comes from and where it goes.
struct Output {
    pipe: Option<OutputPipe>,
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
