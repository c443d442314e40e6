//! What the daemon, the holder and the keepers say to each other, as bytes.
//!
//! The daemon orders a command from the holder with one packet: its kind, and as descriptors the
//! keeper's end of a socket, a file with the order, and the command's ends of its pipes. From then on
//! daemon and keeper talk over that socket.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::{Exit, Signal};

/// The most descriptors of one order: socket, order, three pipes.
const DESCRIPTORS: usize = 5;

/// What kind of keeper is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Dies with the daemon.
    Attached,
    /// Stays.
    Detached,
}

/// Sends an order; would-block means that the holder is behind.
pub(super) fn send_order(
    holder: impl AsFd,
    kind: Kind,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let byte = [match kind {
        Kind::Attached => b'a',
        Kind::Detached => b'd',
    }];
    rustix::net::sendmsg(
        holder,
        &[IoSlice::new(&byte)],
        &mut ancillary,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )?;
    Ok(())
}

/// Takes the next order; nothing means that the daemon is gone.
pub(super) fn receive_order(daemon: impl AsFd) -> io::Result<Option<(Kind, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = rustix::net::recvmsg(
        daemon,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let kind = match byte {
        [b'd'] => Kind::Detached,
        _ => Kind::Attached,
    };
    Ok(Some((kind, descriptors)))
}

/// Where a command's descriptors come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wiring {
    /// The one that was sent takes both outputs.
    One,
    /// Input, output and errors were sent.
    Three,
    /// This terminal is opened.
    Terminal(PathBuf),
}

/// A command as the keeper gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// As `name=value`.
    pub(super) env: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) wiring: Wiring,
    /// The command's file in the ledger, and its contents without pids.
    pub(super) ledger: PathBuf,
    pub(super) line: String,
}

impl Order {
    /// Writes the order to a file in memory, as fields that end in zero bytes; no field of a command
    /// can contain one.
    pub(super) fn write(&self) -> io::Result<OwnedFd> {
        let (wiring, tty) = match &self.wiring {
            Wiring::One => ("one", OsStr::new("")),
            Wiring::Three => ("three", OsStr::new("")),
            Wiring::Terminal(tty) => ("terminal", tty.as_os_str()),
        };
        let count = self.args.len().to_string();
        let head = [
            OsStr::new(wiring),
            tty,
            self.program.as_os_str(),
            self.cwd.as_os_str(),
            self.ledger.as_os_str(),
            OsStr::new(&self.line),
            OsStr::new(&count),
        ];
        let rest = self.args.iter().chain(&self.env).map(OsString::as_os_str);
        let mut bytes = Vec::new();
        for field in head.into_iter().chain(rest) {
            if field.as_bytes().contains(&0) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            bytes.extend_from_slice(field.as_bytes());
            bytes.push(0);
        }
        let memory = rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(memory);
        file.write_all(&bytes)?;
        Ok(file.into())
    }

    pub(super) fn read(file: OwnedFd) -> Option<Self> {
        let mut file = std::fs::File::from(file);
        let mut bytes = Vec::new();
        file.rewind().ok()?;
        file.read_to_end(&mut bytes).ok()?;
        bytes.pop_if(|last| *last == 0)?;
        let mut fields = bytes
            .split(|byte| *byte == 0)
            .map(|field| OsString::from_vec(field.to_vec()));
        let wiring = fields.next()?;
        let tty = fields.next()?;
        let wiring = match wiring.to_str()? {
            "one" => Wiring::One,
            "three" => Wiring::Three,
            "terminal" => Wiring::Terminal(tty.into()),
            _ => return None,
        };
        let program = fields.next()?.into();
        let cwd = fields.next()?.into();
        let ledger = fields.next()?.into();
        let line = fields.next()?.into_string().ok()?;
        let count: usize = fields.next()?.to_str()?.parse().ok()?;
        let args: Vec<OsString> = fields.by_ref().take(count).collect();
        Some(Self {
            program,
            args,
            env: fields.collect(),
            cwd,
            wiring,
            ledger,
            line,
        })
    }
}

/// At which step a command failed to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Keeper,
    Folder,
    Terminal,
    Program,
}

/// What a keeper tells the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    Started {
        pid: i32,
        keeper: i32,
    },
    Failed {
        stage: Stage,
        errno: i32,
    },
    /// The command could not be noted in the ledger; it runs all the same.
    Unlisted {
        errno: i32,
    },
    Exited(Exit),
    /// Nothing of the command lives; the keeper leaves.
    Empty,
}

/// Every report has this many bytes.
const REPORT: usize = 9;

impl Report {
    pub(super) fn send(self, daemon: impl AsFd) {
        let (kind, one, other) = match self {
            Self::Started { pid, keeper } => (0, pid, keeper),
            Self::Failed { stage, errno } => (1, stage as i32, errno),
            Self::Unlisted { errno } => (2, errno, 0),
            Self::Exited(Exit::Code(code)) => (3, code, 0),
            Self::Exited(Exit::Signal(signal)) => (4, signal, 0),
            Self::Exited(Exit::Unknown) => (5, 0, 0),
            Self::Empty => (6, 0, 0),
        };
        let mut bytes = vec![kind];
        bytes.extend(one.to_ne_bytes());
        bytes.extend(other.to_ne_bytes());
        // A daemon that is gone needs no report.
        rustix::net::send(daemon, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok();
    }

    /// Takes the next report; nothing means that the keeper is gone.
    pub(super) fn receive(keeper: impl AsFd) -> io::Result<Option<Self>> {
        let mut bytes = [0; REPORT];
        let (received, _) = rustix::net::recv(keeper, &mut bytes, RecvFlags::DONTWAIT)?;
        if received == 0 {
            return Ok(None);
        }
        let number = |at: usize| {
            let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            four.map_or(0, |four| i32::from_ne_bytes(*four))
        };
        let [kind, ..] = bytes;
        let (one, other) = (number(1), number(5));
        Ok(Some(match kind {
            0 => Self::Started {
                pid: one,
                keeper: other,
            },
            1 => Self::Failed {
                stage: match one {
                    1 => Stage::Folder,
                    2 => Stage::Terminal,
                    3 => Stage::Program,
                    _ => Stage::Keeper,
                },
                errno: other,
            },
            2 => Self::Unlisted { errno: one },
            3 => Self::Exited(Exit::Code(one)),
            4 => Self::Exited(Exit::Signal(one)),
            5 => Self::Exited(Exit::Unknown),
            6 => Self::Empty,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

/// What the daemon tells a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// This signal for the command's group.
    Signal(i32),
    /// The end of everything.
    Kill,
}

impl Wish {
    pub(super) fn signal(signal: Signal) -> Self {
        Self::Signal(signal.number())
    }

    pub(super) fn send(self, keeper: impl AsFd) -> io::Result<()> {
        let byte = match self {
            Self::Kill => 0,
            Self::Signal(number) => u8::try_from(number).unwrap_or_default(),
        };
        rustix::net::send(keeper, &[byte], SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Takes the next wish; nothing means that the daemon is gone.
    pub(super) fn receive(daemon: impl AsFd) -> io::Result<Option<Self>> {
        let mut byte = [0];
        let (received, _) = rustix::net::recv(daemon, &mut byte, RecvFlags::DONTWAIT)?;
        Ok(match (received, byte) {
            (0, _) => None,
            (_, [0]) => Some(Self::Kill),
            (_, [number]) => Some(Self::Signal(number.into())),
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
