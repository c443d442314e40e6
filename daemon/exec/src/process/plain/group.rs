//! Child processes on Unix: process groups, pipes and terminals.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use super::super::{Exit, InputPipe, OutputPipe, Signal};

/// How often a process group is polled; the system does not report its end.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The process group of a command.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Sends a signal to the whole group; does nothing if the group is gone.
    pub(super) fn signal(&self, signal: Signal) {
        let known = rustix::process::Signal::from_named_raw(signal.number());
        if let (Some(leader), Some(signal)) = (self.0, known)
            && let Err(error) = rustix::process::kill_process_group(leader, signal)
        {
            tracing::debug!(%error, "a process group was not signalled");
        }
    }

    /// Waits until the group is empty.
    pub(super) async fn gone(&self, kill: &Notify) {
        let Some(leader) = self.0 else { return };
        while rustix::process::test_kill_process_group(leader).is_ok() {
            tokio::select! {
                () = kill.notified() => self.signal(Signal::Kill),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

pub(super) fn lead(command: &mut Command) {
    command.process_group(0);
}

pub(super) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

pub(super) fn output(reader: PipeReader) -> io::Result<OutputPipe> {
    pipe::Receiver::from_owned_fd(OwnedFd::from(reader))
}

pub(super) fn input(writer: PipeWriter) -> io::Result<InputPipe> {
    pipe::Sender::from_owned_fd(OwnedFd::from(writer))
}

/// Makes a terminal the controlling terminal of the command, and a socket to it.
pub(super) fn terminal(
    command: &mut Command,
    tty: &Path,
    pipes: &mut super::PipeEnds,
) -> io::Result<()> {
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
        .open(tty)?;
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal);
    let (ours, theirs) = super::super::control_socket()?;
    pipes.control = Some(ours);
    crate::sys::own_terminal_on_stdin(command.as_std_mut(), &theirs, super::super::CONTROL)
}

pub(super) fn log(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}
