//! The daemon's end of a pseudo terminal: bytes in and out without a thread, and the few questions
//! the kernel answers about it. Only the terminal backend holds one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use portable_pty::{PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{InputModes, OptionalActions, QueueSelector, Termios};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, Ready};

use crate::sys;
use crate::terminal::lines::{HEIGHT, WIDTH};

/// How much typed text may wait for a program to read it.
const MAX_OUTGOING: usize = 64 * 1024;

/// A terminal without a screen.
#[derive(Debug)]
pub(super) struct Device {
    master: AsyncFd<OwnedFd>,
    /// Open until the shell has opened it as well: a terminal that had a user and has none is
    /// hung up.
    other_end: Option<OwnedFd>,
    tty: PathBuf,
    /// The modes a command starts with.
    sane: Termios,
    outgoing: Vec<u8>,
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    Bytes(usize),
    /// Nobody has the other end open any more.
    HungUp,
}

impl Device {
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
        let mut sane = rustix::termios::tcgetattr(&master)?;
        sane.input_modes |= InputModes::IUTF8;
        rustix::termios::tcsetattr(&master, OptionalActions::Now, &sane)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Self {
            master: sys::watch_descriptor(master)?,
            other_end: Some(other_end),
            tty,
            sane,
            outgoing: Vec::new(),
        })
    }

    /// The shell has the other end open now.
    pub(super) fn handed_over(&mut self) {
        self.other_end = None;
    }

    pub(super) fn tty(&self) -> &Path {
        &self.tty
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.master.get_ref().as_fd()
    }

    /// Waits for bytes and takes as many as there are room for.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<Read> {
        let mut filled = 0;
        loop {
            let mut ready = self.master.readable().await?;
            // The kernel hands out a page at a time, so several reads make one.
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
                return Ok(Read::Bytes(filled));
            }
        }
    }

    /// Queues what is typed; refused when a program reads nothing of what waits already.
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

    /// Reads what comes or sends what is typed, whichever is possible first; nothing means sent.
    pub(super) async fn read_or_write(&mut self, buffer: &mut [u8]) -> io::Result<Option<Read>> {
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

    /// Makes the terminal as it was at first, whatever the last program left of it.
    pub(super) fn reset(&mut self) -> io::Result<()> {
        self.outgoing.clear();
        rustix::termios::tcsetattr(&self.master, OptionalActions::Now, &self.sane)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let tty = rustix::fs::open(&self.tty, flags, Mode::empty())?;
        // What was typed to the last program and not read is not meant for the next.
        rustix::termios::tcflush(&tty, QueueSelector::IFlush)?;
        Ok(())
    }

    /// The process group in front.
    pub(super) fn front(&self) -> Option<Pid> {
        rustix::termios::tcgetpgrp(&self.master).ok()
    }

    /// Sends a signal to the process group in front.
    pub(super) fn signal_front(&self, signal: Signal) {
        if let Some(front) = self.front()
            && let Err(error) = kill_process_group(front, signal)
        {
            tracing::debug!(%error, "the program in front is gone already");
        }
    }
}

/// What a read on a terminal says whose other end is closed.
const EIO: i32 = Errno::IO.raw_os_error();

fn hung_up(filled: usize) -> Read {
    match filled {
        0 => Read::HungUp,
        filled => Read::Bytes(filled),
    }
}
