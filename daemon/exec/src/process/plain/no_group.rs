//! Child processes on systems without process groups.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter};
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::process::ExitStatus;

use tokio::process::{Child, Command};
use tokio::sync::Notify;

use super::super::{Exit, InputPipe, OutputPipe, Signal};

/// Stands for a process group; the watcher kills only the command itself.
#[derive(Debug)]
pub(super) struct Group;

impl Group {
    pub(super) fn of(_child: &Child) -> Self {
        Self
    }

    pub(super) fn signal(&self, _signal: Signal) {}

    pub(super) async fn gone(&self, _kill: &Notify) {}
}

pub(super) fn lead(_command: &mut Command) {}

pub(super) fn exit(status: ExitStatus) -> Exit {
    status.code().map_or(Exit::Unknown, Exit::Code)
}

pub(super) fn output(reader: PipeReader) -> io::Result<OutputPipe> {
    Ok(File::from(OwnedHandle::from(reader)).into())
}

pub(super) fn input(writer: PipeWriter) -> io::Result<InputPipe> {
    Ok(File::from(OwnedHandle::from(writer)).into())
}

pub(super) fn terminal(
    _command: &mut Command,
    _tty: &Path,
    _pipes: &mut super::PipeEnds,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}
