//! The messages between the daemon, the holder and the keepers, as bytes.
//!
//! The daemon orders a command from the holder with one packet: the kind of keeper, and as
//! descriptors the keeper's end of a socket, a file with the order, and the command's ends of its
//! pipes. The daemon and the keeper then communicate over that socket.

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
use crate::sandbox::NetworkAccess;

/// The maximum number of descriptors in an order: socket, order file, three pipes, and the scratch
/// folder of a sandbox.
const DESCRIPTORS: usize = 6;

/// Whether a keeper outlives the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperKind {
    /// Kills its command when the daemon ends.
    Attached,
    /// Stays until its command ends.
    Detached,
}

/// Sends an order; fails with `WouldBlock` while the socket buffer is full.
pub(super) fn send_order(
    holder: impl AsFd,
    kind: KeeperKind,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let byte = [match kind {
        KeeperKind::Attached => b'a',
        KeeperKind::Detached => b'd',
    }];
    rustix::net::sendmsg(
        holder,
        &[IoSlice::new(&byte)],
        &mut ancillary,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )?;
    Ok(())
}

/// Receives the next order; `None` means that the daemon is gone.
pub(super) fn receive_order(daemon: impl AsFd) -> io::Result<Option<(KeeperKind, Vec<OwnedFd>)>> {
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
        [b'd'] => KeeperKind::Detached,
        _ => KeeperKind::Attached,
    };
    Ok(Some((kind, descriptors)))
}

/// Where the standard descriptors of a command come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StdioSource {
    /// The one sent descriptor is output and error.
    One,
    /// The sent descriptors are input, output and error.
    Three,
    /// The keeper opens this terminal; the one sent descriptor is the socket to the daemon.
    Terminal(PathBuf),
}

/// The command that a keeper has to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeeperOrder {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    /// As `name=value`.
    pub(super) env: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) stdio: StdioSource,
    /// The command runs in a sandbox with this network. The last descriptor is its scratch folder.
    pub(super) sandbox: Option<NetworkAccess>,
    /// The command's file in the ledger.
    pub(super) ledger: PathBuf,
    /// The contents of that file as JSON, without pids.
    pub(super) entry: String,
}

impl KeeperOrder {
    /// Writes the order to a file in memory, as fields that end in zero bytes. A field cannot
    /// contain a zero byte.
    pub(super) fn write(&self) -> io::Result<OwnedFd> {
        let (stdio, tty) = match &self.stdio {
            StdioSource::One => ("one", OsStr::new("")),
            StdioSource::Three => ("three", OsStr::new("")),
            StdioSource::Terminal(tty) => ("terminal", tty.as_os_str()),
        };
        let count = self.args.len().to_string();
        let network = self.sandbox.map_or("free", NetworkAccess::name);
        let head = [
            OsStr::new(stdio),
            tty,
            OsStr::new(network),
            self.program.as_os_str(),
            self.cwd.as_os_str(),
            self.ledger.as_os_str(),
            OsStr::new(&self.entry),
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
        let stdio = fields.next()?;
        let tty = fields.next()?;
        let stdio = match stdio.to_str()? {
            "one" => StdioSource::One,
            "three" => StdioSource::Three,
            "terminal" => StdioSource::Terminal(tty.into()),
            _ => return None,
        };
        let network = fields.next()?;
        let sandbox = match network.to_str()? {
            "free" => None,
            name => Some(NetworkAccess::named(name)?),
        };
        let program = fields.next()?.into();
        let cwd = fields.next()?.into();
        let ledger = fields.next()?.into();
        let entry = fields.next()?.into_string().ok()?;
        let count: usize = fields.next()?.to_str()?.parse().ok()?;
        let args: Vec<OsString> = fields.by_ref().take(count).collect();
        Some(Self {
            program,
            args,
            env: fields.collect(),
            cwd,
            stdio,
            sandbox,
            ledger,
            entry,
        })
    }
}

/// The step at which a command failed to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartStage {
    Keeper,
    Folder,
    Terminal,
    Program,
    Sandbox,
}

/// A message from a keeper to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperReport {
    Started {
        pid: i32,
        keeper: i32,
    },
    Failed {
        stage: StartStage,
        errno: i32,
    },
    /// The command runs, but its ledger file could not be written.
    LedgerFailed {
        errno: i32,
    },
    Exited(Exit),
    /// All processes of the command are gone; the keeper exits.
    Empty,
}

/// The size of every report in bytes.
const REPORT: usize = 9;

impl KeeperReport {
    pub(super) fn send(self, daemon: impl AsFd) {
        let (kind, one, other) = match self {
            Self::Started { pid, keeper } => (0, pid, keeper),
            Self::Failed { stage, errno } => (1, stage as i32, errno),
            Self::LedgerFailed { errno } => (2, errno, 0),
            Self::Exited(Exit::Code(code)) => (3, code, 0),
            Self::Exited(Exit::Signal(signal)) => (4, signal, 0),
            Self::Exited(Exit::Unknown) => (5, 0, 0),
            Self::Empty => (6, 0, 0),
        };
        let mut bytes = vec![kind];
        bytes.extend(one.to_ne_bytes());
        bytes.extend(other.to_ne_bytes());
        // Fails if the daemon is gone, which then needs no report.
        rustix::net::send(daemon, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok();
    }

    /// Receives the next report; `None` means that the keeper is gone.
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
                    1 => StartStage::Folder,
                    2 => StartStage::Terminal,
                    3 => StartStage::Program,
                    4 => StartStage::Sandbox,
                    _ => StartStage::Keeper,
                },
                errno: other,
            },
            2 => Self::LedgerFailed { errno: one },
            3 => Self::Exited(Exit::Code(one)),
            4 => Self::Exited(Exit::Signal(one)),
            5 => Self::Exited(Exit::Unknown),
            6 => Self::Empty,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

/// A message from the daemon to a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeeperRequest {
    /// Send this signal to the command's process group.
    Signal(i32),
    /// Kill all processes of the command.
    Kill,
}

impl KeeperRequest {
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

    /// Receives the next request; `None` means that the daemon is gone.
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
