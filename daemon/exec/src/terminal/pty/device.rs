//! The daemon's end of a pseudo terminal: asynchronous reads and writes, modes and the foreground
//! process group.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use portable_pty::{PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{Action, InputModes, OptionalActions, QueueSelector, Termios};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

use crate::sys;
use crate::terminal::lines::{HEIGHT, WIDTH};

/// The maximum size of typed input that no program has read, in bytes.
const MAX_OUTGOING: usize = 64 * 1024;

/// A pseudo terminal.
#[derive(Debug)]
pub(super) struct PtyDevice {
    master: AsyncFd<OwnedFd>,
    /// The shell's end, open until the shell has opened it as well. A terminal whose last user
    /// closes it hangs up.
    other_end: Option<OwnedFd>,
    tty: PathBuf,
    /// The terminal modes at the start of a command.
    initial_modes: Termios,
    outgoing: Vec<u8>,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceRead {
    Bytes(usize),
    /// No process has the other end open.
    HungUp,
}

/// The process group in the foreground of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Foreground {
    Shell,
    /// Another group with a living process.
    Other,
    /// A group without processes. Without job control bash does not take the terminal back.
    Nobody,
}

impl PtyDevice {
    pub(super) fn open() -> io::Result<Self> {
        let size = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let pair = native_pty_system()
            .openpty(PtySize {
                rows: size(HEIGHT),
                cols: size(WIDTH),
                pixel_width: 0,
                pixel_height: 0,
            })
            .map_err(io::Error::other)?;
        let tty = pair
            .master
            .tty_name()
            .ok_or_else(|| io::Error::other("the terminal has no name"))?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let other_end = rustix::fs::open(&tty, flags, Mode::empty())?;
        let number = pair
            .master
            .as_raw_fd()
            .ok_or_else(|| io::Error::other("the terminal has no descriptor"))?;
        let master = sys::duplicate_descriptor(pair.master.as_ref(), number)?;
        let mut initial_modes = rustix::termios::tcgetattr(&master)?;
        initial_modes.input_modes |= InputModes::IUTF8;
        rustix::termios::tcsetattr(&master, OptionalActions::Now, &initial_modes)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self {
            master: sys::watch_descriptor(master)?,
            other_end: Some(other_end),
            tty,
            initial_modes,
            outgoing: Vec::new(),
        })
    }

    /// Closes our copy of the other end; call it when the shell has opened its own.
    pub(super) fn close_other_end(&mut self) {
        self.other_end = None;
    }

    pub(super) fn tty(&self) -> &Path {
        &self.tty
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.master.get_ref().as_fd()
    }

    /// Waits for bytes and reads as many as fit into the buffer.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<DeviceRead> {
        let mut filled = 0;
        loop {
            let mut ready = self.master.readable().await?;
            // The kernel returns at most a page per read, so read several times.
            while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
                let read = ready.try_io(|master| Ok(rustix::io::read(master, room)?));
                match read {
                    Ok(Ok(0)) => return Ok(hung_up(filled)),
                    Ok(Ok(count)) => filled += count,
                    Ok(Err(error)) if error.raw_os_error() == Some(EIO) => {
                        return Ok(hung_up(filled));
                    }
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(error)) => return Err(error),
                    Err(_would_block) => break,
                }
            }
            if filled > 0 {
                return Ok(DeviceRead::Bytes(filled));
            }
        }
    }

    /// Queues typed input; fails if too much is waiting to be read.
    pub(super) fn type_in(&mut self, bytes: &[u8]) -> Result<(), ()> {
        if self.outgoing.len() + bytes.len() > MAX_OUTGOING {
            return Err(());
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Reads output or writes typed input, whichever is possible first; `None` means written.
    pub(super) async fn read_or_write(
        &mut self,
        buffer: &mut [u8],
    ) -> io::Result<Option<DeviceRead>> {
        let both = Interest::READABLE | Interest::WRITABLE;
        loop {
            let mut ready = self.master.ready(both).await?;
            if ready.ready().is_writable() {
                match rustix::io::write(ready.get_inner(), &self.outgoing) {
                    Ok(written) => {
                        self.outgoing.drain(..written.min(self.outgoing.len()));
                        return Ok(None);
                    }
                    Err(Errno::AGAIN) => ready.clear_ready_matching(Ready::WRITABLE),
                    Err(error) => return Err(error.into()),
                }
            }
            if ready.ready().is_readable() {
                drop(ready);
                return self.read(buffer).await.map(Some);
            }
        }
    }

    /// Restores the initial modes, which the last program may have changed.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.outgoing.clear();
        rustix::termios::tcsetattr(&self.master, OptionalActions::Now, &self.initial_modes)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let tty = rustix::fs::open(&self.tty, flags, Mode::empty())?;
        // Drop input that the last program did not read; it is not meant for the next one.
        rustix::termios::tcflush(&tty, QueueSelector::IFlush)?;
        Ok(())
    }

    /// Lets output go on that the last program has stopped (`TCOOFF`): the shell could not say how its
    /// command ended.
    pub(super) fn resume_output(&self) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let tty = rustix::fs::open(&self.tty, flags, Mode::empty())?;
        rustix::termios::tcflow(&tty, Action::OOn)?;
        Ok(())
    }

    /// The foreground process group.
    pub(super) fn foreground(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }

    /// Who is in the foreground, as seen from the shell, which leads its own group.
    pub(super) fn foreground_state(&self, shell: u32) -> Foreground {
        match self.foreground() {
            Some(group) if group.as_raw_nonzero().get().cast_unsigned() == shell => {
                Foreground::Shell
            }
            Some(group) if rustix::process::test_kill_process_group(group).is_ok() => {
                Foreground::Other
            }
            Some(_) | None => Foreground::Nobody,
        }
    }

    /// Sends a signal to the foreground process group.
    pub(super) fn signal_foreground(&self, signal: Signal) {
        if let Some(group) = self.foreground()
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(%error, "the foreground program is gone already");
        }
    }
}

/// The error of a read when the other end is closed.
const EIO: i32 = Errno::IO.raw_os_error();

fn hung_up(filled: usize) -> DeviceRead {
    match filled {
        0 => DeviceRead::HungUp,
        filled => DeviceRead::Bytes(filled),
    }
}
