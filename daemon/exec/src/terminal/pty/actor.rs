//! The task that owns a shell on a terminal. It passes commands to bash, reads their output, types
//! input, detects that they wait for input, and stops them. All its waits are in one `select!`.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::process::{self, Activity, Exit, OwnedProcess};
use crate::terminal::keys::{InputError, TypedInput};
use crate::terminal::run::{
    CloseOnDrop, CommandEnd, CommandRun, CommandState, RunRequest, WaitingFor,
};
use crate::terminal::sink::{GRACE, OutputSink, sleep_until_some};
use crate::terminal::text::CommandText;
use crate::terminal::{CommandStartError, ShellSpec};

use super::channel::{ChannelEvent, ShellChannel, random_word};
use super::device::{DeviceRead, PtyDevice};
use super::markers::{MarkerScanner, TerminalPiece};
use super::stopping::{StopStep, Stopping};
use super::waiting;

const CHUNK: usize = 64 * 1024;

/// How long a program must be silent before the first check whether it waits for input, and the
/// time between later checks.
const SILENT: Duration = Duration::from_millis(700);
const CHECK_AGAIN: Duration = Duration::from_secs(1);

/// The time between a check that found it waiting and the check that confirms it.
const CONFIRM_AFTER: Duration = Duration::from_millis(200);

/// How long bash may take to begin a command.
const BEGIN_WITHIN: Duration = Duration::from_secs(5);

/// How long output is read after bash has ended, if other processes hold the terminal.
const DRAIN: Duration = Duration::from_millis(50);

/// A command to start.
#[derive(Debug)]
pub(super) struct StartRequest {
    pub(super) command: String,
    pub(super) answer: oneshot::Sender<Result<CommandRun, CommandStartError>>,
}

/// The channels between the task and its handle.
#[derive(Debug)]
pub(super) struct ActorChannels {
    pub(super) starts: mpsc::Receiver<StartRequest>,
    pub(super) ready: oneshot::Sender<()>,
    pub(super) ended: watch::Sender<Option<CommandEnd>>,
    pub(super) closed: CancellationToken,
    pub(super) gently: CancellationToken,
}

/// What bash is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellStage {
    Opening,
    Idle,
    /// A command is on its way to bash.
    Starting {
        until: Instant,
        /// Bash is done already, but its marker for the beginning was not read yet.
        done: bool,
    },
    Running,
    /// Bash is done, but another program is in the foreground of the terminal.
    Returning {
        since: Instant,
        check_at: Instant,
    },
    /// Bash is done and was asked for the status.
    Ending {
        until: Instant,
        answer: EndAnswer,
    },
}

impl ShellStage {
    /// Whether the output belongs to the command.
    fn has_command(self) -> bool {
        match self {
            Self::Opening | Self::Idle | Self::Starting { .. } => false,
            Self::Running | Self::Returning { .. } | Self::Ending { .. } => true,
        }
    }
}

/// What bash has answered to the nonce. The marker comes from the terminal and the status from the
/// socket, in either order; the command has ended when both are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndAnswer {
    Nothing,
    Marker,
    Status(i32),
}

/// The state of the task.
#[derive(Debug)]
pub(super) struct PtyActor {
    pub(super) device: PtyDevice,
    pub(super) markers: MarkerScanner,
    /// The word of the next marker.
    pub(super) word: String,
    /// The last command, and the word that came with it.
    pub(super) command: String,
    pub(super) command_word: String,
    pub(super) channel: ShellChannel,
    pub(super) owned: OwnedProcess,
    spec: ShellSpec,
    pub(super) stage: ShellStage,
    current: Option<CurrentCommand>,
    pub(super) stopping: Option<Stopping>,
    /// A command that waits until the stopped command before it has ended.
    pub(super) queued: Option<StartRequest>,
    hung_up: bool,
}

/// The running command, unless it was reported as ended.
#[derive(Debug)]
struct CurrentCommand {
    sink: OutputSink,
    requests: mpsc::Receiver<RunRequest>,
    check_at: Option<Instant>,
    /// What the last check found.
    found: Option<WaitingFor>,
    _closing: CloseOnDrop,
}

/// Why the task ends.
#[derive(Debug, Clone, Copy)]
enum ShellEnd {
    Exited(Exit),
    Closed,
    Gently,
}

impl PtyActor {
    pub(super) fn new(
        device: PtyDevice,
        channel: ShellChannel,
        owned: OwnedProcess,
        spec: ShellSpec,
    ) -> Self {
        let word = random_word();
        Self {
            device,
            markers: MarkerScanner::new(&word),
            word,
            command: String::new(),
            command_word: String::new(),
            channel,
            owned,
            spec,
            stage: ShellStage::Opening,
            current: None,
            stopping: None,
            queued: None,
            hung_up: false,
        }
    }

    pub(super) async fn serve(mut self, mut channels: ActorChannels) {
        let mut ready = Some(channels.ready);
        let mut buffer = vec![0; CHUNK];
        let end = self
            .run_until_end(
                &mut channels.starts,
                &mut ready,
                &channels.closed,
                &channels.gently,
                &mut buffer,
            )
            .await
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a terminal failed");
                ShellEnd::Closed
            });
        let end = self.finish(end).await;
        channels.ended.send_replace(Some(end));
    }

    async fn run_until_end(
        &mut self,
        starts: &mut mpsc::Receiver<StartRequest>,
        ready: &mut Option<oneshot::Sender<()>>,
        closed: &CancellationToken,
        gently: &CancellationToken,
        buffer: &mut [u8],
    ) -> io::Result<ShellEnd> {
        loop {
            let deadline = self.deadline();
            let Self {
                device,
                channel,
                owned,
                current,
                hung_up,
                ..
            } = self;
            tokio::select! {
                exit = owned.exit() => return Ok(ShellEnd::Exited(exit)),
                () = closed.cancelled() => return Ok(ShellEnd::Closed),
                () = gently.cancelled() => return Ok(ShellEnd::Gently),
                Some(start) = starts.recv() => {
                    self.owned.relabel(&start.command);
                    self.start(start);
                }
                Some(request) = next_request(current) => self.handle_request(request),
                event = channel.exchange() => match event? {
                    ChannelEvent::ShellDone { word } => {
                        self.shell_done(&word);
                        if let Some(ready) = ready.take() {
                            // Fails if the caller no longer waits.
                            ready.send(()).ok();
                        }
                    }
                    ChannelEvent::Status { nonce, status } => {
                        self.status_said(&nonce, status).await;
                    }
                    ChannelEvent::Sent | ChannelEvent::Ended => {}
                },
                read = device_io(device, buffer, *hung_up) => match read? {
                    Some(DeviceRead::Bytes(count)) => {
                        self.take(buffer.get(..count).unwrap_or_default()).await;
                    }
                    Some(DeviceRead::HungUp) => self.hung_up = true,
                    None => {}
                },
                () = sleep_until_some(deadline) => self.on_deadline().await,
            }
        }
    }

    /// Handles bytes from the terminal.
    async fn take(&mut self, bytes: &[u8]) {
        let mut done = None;
        let mut answers = Vec::new();
        let mut got_output = false;
        let mut ended_early = false;
        let (stage, current) = (&mut self.stage, &self.current);
        self.markers.scan(bytes, |piece| match (piece, *stage) {
            (TerminalPiece::Output(output), stage) if stage.has_command() => {
                if let Some(current) = current {
                    answers.extend(current.sink.feed(output));
                    got_output = true;
                }
            }
            (TerminalPiece::Begin, ShellStage::Starting { done, .. }) => {
                ended_early = done;
                *stage = ShellStage::Running;
            }
            (TerminalPiece::Done, ShellStage::Ending { until, answer }) => match answer {
                EndAnswer::Status(status) => {
                    done = Some(status);
                    *stage = ShellStage::Idle;
                }
                EndAnswer::Nothing | EndAnswer::Marker => {
                    let answer = EndAnswer::Marker;
                    *stage = ShellStage::Ending { until, answer };
                }
            },
            // Drop the output of background jobs between commands, and markers that were not asked
            // for.
            (TerminalPiece::Output(_) | TerminalPiece::Begin | TerminalPiece::Done, _) => {}
        });
        if got_output && let Some(current) = &mut self.current {
            current.sink.save().await;
            current.got_output();
        }
        if !answers.is_empty() && self.device.type_in(&answers).is_err() {
            tracing::debug!("a program queries the terminal and does not read the replies");
        }
        if ended_early {
            self.ask_for_status(Instant::now());
        }
        if let Some(status) = done {
            self.command_ended(status).await;
        }
    }

    pub(super) async fn end_current(&mut self, end: CommandEnd) {
        if let Some(mut current) = self.current.take() {
            current.sink.end(end).await;
            // Dropping it also drops unanswered requests, whose callers then see the end.
            drop(current);
        }
    }

    pub(super) fn start(&mut self, start: StartRequest) {
        if start.answer.is_closed() {
            return;
        }
        match self.stage {
            ShellStage::Idle => {}
            stage if stage.has_command() && self.current.is_none() && self.queued.is_none() => {
                self.queued = Some(start);
                return;
            }
            ShellStage::Opening
            | ShellStage::Starting { .. }
            | ShellStage::Running
            | ShellStage::Returning { .. }
            | ShellStage::Ending { .. } => {
                // Fails if the caller no longer waits.
                start.answer.send(Err(CommandStartError::Busy)).ok();
                return;
            }
        }
        if let Err(error) = self.device.reset() {
            tracing::warn!(%error, "a terminal could not be put in order");
        }
        let (sender, requests) = mpsc::channel(8);
        let run = CommandRun::new(CommandText::new(), sender);
        self.word = random_word();
        self.markers.expect(&self.word);
        self.channel.send_command(&self.word, &start.command);
        self.command_word.clone_from(&self.word);
        self.command.clone_from(&start.command);
        self.owned.set_activity(Activity::Busy);
        self.stage = ShellStage::Starting {
            until: Instant::now() + BEGIN_WITHIN,
            done: false,
        };
        self.current = Some(CurrentCommand {
            sink: OutputSink::new(run.clone(), &self.spec),
            requests,
            check_at: Some(Instant::now() + SILENT),
            found: None,
            _closing: CloseOnDrop(run.clone()),
        });
        // If the caller no longer waits, the command runs until it is stopped or the shell is
        // closed.
        start.answer.send(Ok(run)).ok();
    }

    fn handle_request(&mut self, request: RunRequest) {
        match request {
            RunRequest::Send(input, answer) => {
                // Fails if the caller no longer waits.
                answer.send(self.type_in(&input)).ok();
            }
            RunRequest::Stop(answer) => {
                if let Some(stopping) = &mut self.stopping {
                    stopping.also(answer);
                } else {
                    self.stopping = Some(Stopping::begin(Instant::now(), answer));
                    self.interrupt();
                }
            }
        }
    }

    fn type_in(&mut self, input: &TypedInput) -> Result<(), InputError> {
        let Some(current) = &mut self.current else {
            return Err(InputError::Ended);
        };
        let keys = current.sink.run.text().cursor_keys();
        let typed = self.device.type_in(&input.encode(keys));
        typed.map_err(|()| InputError::NotRead)?;
        current.sink.run.set_state(CommandState::Running);
        current.check_at = Some(Instant::now() + SILENT);
        current.found = None;
        Ok(())
    }

    /// Interrupts the foreground program and the rest of the command in bash.
    fn interrupt(&self) {
        self.device.signal_foreground(Signal::INT);
        self.signal_shell();
    }

    /// Makes bash drop the rest of the command after the foreground program has ended.
    fn signal_shell(&self) {
        let shell = i32::try_from(self.owned.pid).ok().and_then(Pid::from_raw);
        if let Some(shell) = shell
            && self.device.foreground() != Some(shell)
            && let Err(error) = rustix::process::kill_process(shell, Signal::INT)
        {
            tracing::debug!(%error, "a shell that is stopped is gone already");
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let starting = match self.stage {
            ShellStage::Starting { until, .. } | ShellStage::Ending { until, .. } => Some(until),
            ShellStage::Returning { check_at, .. } => Some(check_at),
            ShellStage::Opening | ShellStage::Idle | ShellStage::Running => None,
        };
        let current = self.current.as_ref();
        let notify_at = current.and_then(|current| current.sink.notify_at());
        let check_at = current.and_then(|current| current.check_at);
        let stop_at = self.stopping.as_ref().map(Stopping::next);
        [starting, notify_at, check_at, stop_at]
            .into_iter()
            .flatten()
            .min()
    }

    async fn on_deadline(&mut self) {
        let now = Instant::now();
        match self.stage {
            ShellStage::Starting { until, .. } | ShellStage::Ending { until, .. }
                if until <= now =>
            {
                tracing::error!("a shell does not answer and is killed");
                self.owned.kill().await;
                return;
            }
            ShellStage::Returning { since, check_at } if check_at <= now => {
                self.ask_for_status(since);
            }
            ShellStage::Opening
            | ShellStage::Idle
            | ShellStage::Starting { .. }
            | ShellStage::Running
            | ShellStage::Returning { .. }
            | ShellStage::Ending { .. } => {}
        }
        if let Some(current) = &mut self.current {
            if current.sink.notify_at().is_some_and(|at| at <= now) {
                current.sink.notify();
            }
            if current.check_at.is_some_and(|at| at <= now) {
                let found = waiting::find_waiting(
                    self.device.descriptor(),
                    self.device.tty(),
                    self.owned.pid,
                );
                current.checked(found, now);
            }
        }
        let step = self
            .stopping
            .as_mut()
            .and_then(|stopping| stopping.step(now));
        match step {
            None => {}
            Some(StopStep::Answer) => {
                self.end_current(CommandEnd::Interrupted).await;
                if let Some(stopping) = &mut self.stopping {
                    stopping.answer_all();
                }
            }
            Some(StopStep::Terminate) => {
                self.device.signal_foreground(Signal::TERM);
                self.signal_shell();
            }
            Some(StopStep::Kill) => {
                self.device.signal_foreground(Signal::KILL);
                self.signal_shell();
            }
            Some(StopStep::Close) => {
                self.owned.kill().await;
            }
        }
    }

    /// Ends the command and the shell; returns how the shell ended.
    async fn finish(&mut self, why: ShellEnd) -> CommandEnd {
        let end = match why {
            ShellEnd::Exited(exit) => {
                self.drain().await;
                match exit {
                    Exit::Code(code) => CommandEnd::Exited(code),
                    Exit::Signal(signal) => CommandEnd::Killed(signal),
                    Exit::Unknown => CommandEnd::Closed,
                }
            }
            ShellEnd::Closed | ShellEnd::Gently => CommandEnd::Closed,
        };
        let stopping = self.stopping.take();
        let run_end = match &stopping {
            Some(_) => CommandEnd::Interrupted,
            // The status is that of the shell: the command never began.
            None if matches!(self.stage, ShellStage::Starting { .. }) => CommandEnd::Closed,
            None => end,
        };
        if let ShellEnd::Gently = why {
            self.device.signal_foreground(Signal::INT);
            self.owned.signal_group(process::Signal::Hangup);
            // Processes that ignore the signals are killed below.
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

    /// Reads the remaining output after bash has ended.
    async fn drain(&mut self) {
        let mut buffer = vec![0; CHUNK];
        while !self.hung_up {
            match timeout(DRAIN, self.device.read(&mut buffer)).await {
                Ok(Ok(DeviceRead::Bytes(count))) => {
                    self.take(buffer.get(..count).unwrap_or_default()).await;
                }
                Ok(Ok(DeviceRead::HungUp) | Err(_)) | Err(_) => break,
            }
        }
        let held = self.markers.finish();
        if let Some(current) = &mut self.current {
            current.sink.feed(&held);
        }
    }
}

impl CurrentCommand {
    /// Handles new output: the program does not wait for input any more.
    fn got_output(&mut self) {
        self.check_at = Some(Instant::now() + SILENT);
        self.found = None;
        // A full-screen program may draw while it waits for input.
        if let CommandState::Waiting(WaitingFor::Line | WaitingFor::Password) =
            self.sink.run.state()
        {
            self.sink.run.set_state(CommandState::Running);
        }
    }

    /// Handles the result of a check; two equal results in a row confirm it.
    fn checked(&mut self, found: Option<WaitingFor>, now: Instant) {
        let certain = found.is_some() && self.found == found;
        self.check_at = match (found, certain) {
            (Some(_), true) => None,
            (Some(_), false) => Some(now + CONFIRM_AFTER),
            (None, _) => Some(now + CHECK_AGAIN),
        };
        self.found = found;
        if let Some(found) = found.filter(|_| certain) {
            self.sink.run.set_state(CommandState::Waiting(found));
        }
    }
}

/// The next request for the running command.
async fn next_request(current: &mut Option<CurrentCommand>) -> Option<RunRequest> {
    match current {
        Some(current) => current.requests.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads output or writes typed input; `None` means that input was written.
async fn device_io(
    device: &mut PtyDevice,
    buffer: &mut [u8],
    hung_up: bool,
) -> io::Result<Option<DeviceRead>> {
    if hung_up {
        return std::future::pending().await;
    }
    if device.has_outgoing() {
        return device.read_or_write(buffer).await;
    }
    device.read(buffer).await.map(Some)
}
