//! The task that owns a shell on a terminal: hands it commands, reads what they write, types to
//! them, notices that they wait, and stops them. Everything it waits for is in one `select!`.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::process::{self, Exit, OwnedProcess};
use crate::terminal::keys::{Input, InputError};
use crate::terminal::reader::{GRACE, Reader, at};
use crate::terminal::run::{Ask, Closing, CommandEnd, CommandRun, CommandState, WaitingFor};
use crate::terminal::text::Text;
use crate::terminal::{CommandStartError, ShellSpec};

use super::device::{Device, Read};
use super::markers::{Markers, Piece};
use super::stopping::{Step, Stopping};
use super::{CommandPipe, waiting};

const CHUNK: usize = 64 * 1024;

/// How long a program is silent before it is looked at, and how often again while it stays so.
const SILENT: Duration = Duration::from_millis(700);
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long after a first look that found it waiting the second comes.
const LOOK_TWICE: Duration = Duration::from_millis(200);

/// How long bash may take to take up a command.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);

/// How long output is still read after bash ended, if others hold the terminal.
const DRAIN: Duration = Duration::from_millis(50);

/// A command to start.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) command: String,
    pub(super) answer: oneshot::Sender<Result<CommandRun, CommandStartError>>,
}

/// What connects the task to its handle.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) starts: mpsc::Receiver<Start>,
    pub(super) ready: oneshot::Sender<()>,
    pub(super) ended: watch::Sender<Option<CommandEnd>>,
    pub(super) closed: CancellationToken,
    pub(super) gently: CancellationToken,
}

/// What bash is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Idle,
    /// A command is on its way to bash.
    Starting {
        until: Instant,
    },
    Running,
}

/// The task's state.
#[derive(Debug)]
pub(super) struct Actor {
    device: Device,
    markers: Markers,
    commands: CommandPipe,
    owned: OwnedProcess,
    spec: ShellSpec,
    stage: Stage,
    current: Option<Current>,
    stopping: Option<Stopping>,
    /// A command that waits until the one before it, which was stopped, is gone.
    queued: Option<Start>,
    hung_up: bool,
}

/// The command that runs and has not been given up.
#[derive(Debug)]
struct Current {
    reader: Reader,
    asks: mpsc::Receiver<Ask>,
    look_at: Option<Instant>,
    /// What the first of two looks found.
    found: Option<WaitingFor>,
    _closing: Closing,
}

/// Why the task ends.
#[derive(Debug, Clone, Copy)]
enum Over {
    Exited(Exit),
    Closed,
    Gently,
}

impl Actor {
    pub(super) fn new(
        device: Device,
        markers: Markers,
        commands: CommandPipe,
        owned: OwnedProcess,
        spec: ShellSpec,
    ) -> Self {
        Self {
            device,
            markers,
            commands,
            owned,
            spec,
            stage: Stage::Opening,
            current: None,
            stopping: None,
            queued: None,
            hung_up: false,
        }
    }

    pub(super) async fn serve(mut self, mut wires: Wires) {
        let mut ready = Some(wires.ready);
        let mut buffer = vec![0; CHUNK];
        let over = self
            .until_over(
                &mut wires.starts,
                &mut ready,
                &wires.closed,
                &wires.gently,
                &mut buffer,
            )
            .await
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a terminal failed");
                Over::Closed
            });
        let end = self.finish(over).await;
        wires.ended.send_replace(Some(end));
    }

    async fn until_over(
        &mut self,
        starts: &mut mpsc::Receiver<Start>,
        ready: &mut Option<oneshot::Sender<()>>,
        closed: &CancellationToken,
        gently: &CancellationToken,
        buffer: &mut [u8],
    ) -> io::Result<Over> {
        loop {
            let deadline = self.deadline();
            let Self {
                device,
                commands,
                owned,
                current,
                hung_up,
                ..
            } = self;
            tokio::select! {
                exit = owned.exit() => return Ok(Over::Exited(exit)),
                () = closed.cancelled() => return Ok(Over::Closed),
                () = gently.cancelled() => return Ok(Over::Gently),
                Some(start) = starts.recv() => {
                    self.owned.relabel(&start.command);
                    self.start(start);
                }
                Some(ask) = next_ask(current) => self.ask(ask),
                sent = commands.write() => sent?,
                read = device_io(device, buffer, *hung_up) => match read? {
                    Some(Read::Bytes(count)) => {
                        let bytes = buffer.get(..count).unwrap_or_default();
                        if self.take(bytes).await
                            && let Some(ready) = ready.take()
                        {
                            // Whoever opened the shell may have stopped waiting.
                            ready.send(()).ok();
                        }
                    }
                    Some(Read::HungUp) => self.hung_up = true,
                    None => {}
                },
                () = at(deadline) => self.on_time().await,
            }
        }
    }

    /// Takes bytes from the terminal and says whether bash is idle after them.
    async fn take(&mut self, bytes: &[u8]) -> bool {
        let mut done = None;
        let mut answers = Vec::new();
        let mut came = false;
        let (stage, current) = (&mut self.stage, &self.current);
        self.markers.scan(bytes, |piece| match (piece, *stage) {
            (Piece::Output(output), Stage::Running) => {
                if let Some(current) = current {
                    answers.extend(current.reader.feed(output));
                    came = true;
                }
            }
            (Piece::Begin, Stage::Starting { .. }) => *stage = Stage::Running,
            (Piece::Done(status), Stage::Running | Stage::Opening) => {
                done = Some(status);
                *stage = Stage::Idle;
            }
            // What background jobs write between commands belongs to none, and what bash says a
            // second time was heard.
            (Piece::Output(_), Stage::Opening | Stage::Idle | Stage::Starting { .. })
            | (Piece::Begin, Stage::Opening | Stage::Idle | Stage::Running)
            | (Piece::Done(_), Stage::Idle | Stage::Starting { .. }) => {}
        });
        if came && let Some(current) = &mut self.current {
            current.reader.save().await;
            current.came();
        }
        if !answers.is_empty() && self.device.type_in(&answers).is_err() {
            tracing::debug!("a program asks the terminal and does not read the answers");
        }
        if let Some(status) = done {
            let stopping = self.stopping.take();
            let end = match &stopping {
                Some(_) => CommandEnd::Interrupted,
                None => CommandEnd::Exited(status),
            };
            self.end_current(end).await;
            if let Some(stopping) = stopping {
                stopping.answer();
            }
            if let Some(start) = self.queued.take() {
                self.start(start);
            }
        }
        self.stage == Stage::Idle
    }

    async fn end_current(&mut self, end: CommandEnd) {
        if let Some(mut current) = self.current.take() {
            current.reader.end(end).await;
            // A question that came too late for an answer is dropped, which answers it.
            drop(current);
        }
    }

    fn start(&mut self, start: Start) {
        if start.answer.is_closed() {
            return;
        }
        match self.stage {
            Stage::Idle => {}
            Stage::Running if self.current.is_none() && self.queued.is_none() => {
                self.queued = Some(start);
                return;
            }
            Stage::Opening | Stage::Starting { .. } | Stage::Running => {
                // Whoever asked may have stopped waiting.
                start.answer.send(Err(CommandStartError::Busy)).ok();
                return;
            }
        }
        if let Err(error) = self.device.reset() {
            tracing::warn!(%error, "a terminal could not be put in order");
        }
        let (ask, asks) = mpsc::channel(8);
        let run = CommandRun::new(Text::new(), ask);
        self.commands.push(&start.command);
        self.stage = Stage::Starting {
            until: Instant::now() + BEGIN_WITHIN,
        };
        self.current = Some(Current {
            reader: Reader::new(run.clone(), &self.spec),
            asks,
            look_at: Some(Instant::now() + SILENT),
            found: None,
            _closing: Closing(run.clone()),
        });
        // A command whose caller has gone runs on until the shell is closed or it is stopped.
        start.answer.send(Ok(run)).ok();
    }

    fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Send(input, answer) => {
                // Whoever asked may have stopped waiting.
                answer.send(self.type_in(&input)).ok();
            }
            Ask::Stop(answer) => {
                if let Some(stopping) = &mut self.stopping {
                    stopping.also(answer);
                } else {
                    self.stopping = Some(Stopping::begin(Instant::now(), answer));
                    self.interrupt();
                }
            }
        }
    }

    fn type_in(&mut self, input: &Input) -> Result<(), InputError> {
        let Some(current) = &mut self.current else {
            return Err(InputError::Ended);
        };
        let keys = current.reader.run.text().cursor_keys();
        let typed = self.device.type_in(&input.encode(keys));
        typed.map_err(|()| InputError::NotRead)?;
        current.reader.run.set_state(CommandState::Running);
        current.look_at = Some(Instant::now() + SILENT);
        current.found = None;
        Ok(())
    }

    /// Interrupts the program in front and what bash does after it.
    fn interrupt(&self) {
        self.device.signal_front(Signal::INT);
        self.signal_shell();
    }

    /// Makes bash give up the rest of the command when the program in front has ended.
    fn signal_shell(&self) {
        let shell = i32::try_from(self.owned.pid).ok().and_then(Pid::from_raw);
        if let Some(shell) = shell
            && self.device.front() != Some(shell)
            && let Err(error) = rustix::process::kill_process(shell, Signal::INT)
        {
            tracing::debug!(%error, "a shell that is stopped is gone already");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let starting = match self.stage {
            Stage::Starting { until } => Some(until),
            Stage::Opening | Stage::Idle | Stage::Running => None,
        };
        let current = self.current.as_ref();
        let tell_at = current.and_then(|current| current.reader.tell_at());
        let look_at = current.and_then(|current| current.look_at);
        let stop_at = self.stopping.as_ref().map(Stopping::next);
        [starting, tell_at, look_at, stop_at]
            .into_iter()
            .flatten()
            .min()
    }

    async fn on_time(&mut self) {
        let now = Instant::now();
        if matches!(self.stage, Stage::Starting { until } if until <= now) {
            tracing::error!("a shell does not take its command");
            self.owned.kill().await;
            return;
        }
        if let Some(current) = &mut self.current {
            if current.reader.tell_at().is_some_and(|tell| tell <= now) {
                current.reader.tell();
            }
            if current.look_at.is_some_and(|look| look <= now) {
                let found =
                    waiting::look(self.device.descriptor(), self.device.tty(), self.owned.pid);
                current.looked(found, now);
            }
        }
        let step = self
            .stopping
            .as_mut()
            .and_then(|stopping| stopping.step(now));
        match step {
            None => {}
            Some(Step::Answer) => {
                self.end_current(CommandEnd::Interrupted).await;
                if let Some(stopping) = &mut self.stopping {
                    stopping.answer_all();
                }
            }
            Some(Step::Terminate) => {
                self.device.signal_front(Signal::TERM);
                self.signal_shell();
            }
            Some(Step::Kill) => {
                self.device.signal_front(Signal::KILL);
                self.signal_shell();
            }
            Some(Step::Close) => {
                self.owned.kill().await;
            }
        }
    }

    /// Ends the command and the shell, and says how the shell ended.
    async fn finish(&mut self, over: Over) -> CommandEnd {
        let end = match over {
            Over::Exited(exit) => {
                self.drain().await;
                match exit {
                    Exit::Code(code) => CommandEnd::Exited(code),
                    Exit::Signal(signal) => CommandEnd::Killed(signal),
                    Exit::Unknown => CommandEnd::Closed,
                }
            }
            Over::Closed | Over::Gently => CommandEnd::Closed,
        };
        let stopping = self.stopping.take();
        let run_end = match &stopping {
            Some(_) => CommandEnd::Interrupted,
            None => end,
        };
        if let Over::Gently = over {
            self.device.signal_front(Signal::INT);
            self.owned.signal_group(process::Signal::Hangup);
            // What does not listen is killed below.
            timeout(GRACE, self.owned.gone()).await.ok();
            self.drain().await;
        }
        self.end_current(run_end).await;
        if let Some(stopping) = stopping {
            stopping.answer();
        }
        self.owned.kill().await;
        end
    }

    /// Reads what is left when bash has ended.
    async fn drain(&mut self) {
        let mut buffer = vec![0; CHUNK];
        while !self.hung_up {
            match timeout(DRAIN, self.device.read(&mut buffer)).await {
                Ok(Ok(Read::Bytes(count))) => {
                    self.take(buffer.get(..count).unwrap_or_default()).await;
                }
                Ok(Ok(Read::HungUp) | Err(_)) | Err(_) => break,
            }
        }
        let held = self.markers.finish();
        if let Some(current) = &mut self.current {
            current.reader.feed(&held);
        }
    }
}

impl Current {
    /// Notes that output came: the program was not waiting, or no longer is.
    fn came(&mut self) {
        self.look_at = Some(Instant::now() + SILENT);
        self.found = None;
        // A full-screen program may draw while it waits for keys.
        if let CommandState::Waiting(WaitingFor::Line | WaitingFor::Password) =
            self.reader.run.state()
        {
            self.reader.run.set_state(CommandState::Running);
        }
    }

    /// Takes what a look at the program found; two in a row make it certain.
    fn looked(&mut self, found: Option<WaitingFor>, now: Instant) {
        let certain = found.is_some() && self.found == found;
        self.look_at = match (found, certain) {
            (Some(_), true) => None,
            (Some(_), false) => Some(now + LOOK_TWICE),
            (None, _) => Some(now + LOOK_AGAIN),
        };
        self.found = found;
        if let Some(found) = found.filter(|_| certain) {
            self.reader.run.set_state(CommandState::Waiting(found));
        }
    }
}

/// The next question about the command that runs.
async fn next_ask(current: &mut Option<Current>) -> Option<Ask> {
    match current {
        Some(current) => current.asks.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads what comes and types what waits; nothing means that something was typed.
async fn device_io(
    device: &mut Device,
    buffer: &mut [u8],
    hung_up: bool,
) -> io::Result<Option<Read>> {
    if hung_up {
        return std::future::pending().await;
    }
    if device.has_outgoing() {
        return device.read_or_write(buffer).await;
    }
    device.read(buffer).await.map(Some)
}
