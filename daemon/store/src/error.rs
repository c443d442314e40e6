//! Why a store refused or failed, in words that fit any backend.

use std::fmt::Display;
use std::sync::Arc;

use loopd_proto::id::{Seq, SessionId};
use thiserror::Error;

/// What failed underneath, as text for the log. It is shared, because one failed commit answers
/// every write of its group.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Cause(Arc<str>);

impl Cause {
    pub fn new(what: impl Display) -> Self {
        Self(what.to_string().into())
    }
}

/// Why the store refused or failed.
///
/// `place` is where the backend keeps its data, in words that a person understands.
#[derive(Debug, Clone, Error)]
pub enum StoreError {
    #[error(
        "the log of session {session} ends at {}, not at {} as the writer believed; load the session again",
        found.0, expected.0
    )]
    Conflict {
        session: SessionId,
        expected: Seq,
        found: Seq,
    },
    #[error("event {} was given where event {} of session {session} belongs", found.0, expected.0)]
    Gap {
        session: SessionId,
        expected: Seq,
        found: Seq,
    },
    #[error("there is no session {session}")]
    NoSession { session: SessionId },
    #[error("session {session} exists already")]
    SessionExists { session: SessionId },
    #[error("session {session} cannot hold event {}: a log has at most 4294967295 events", seq.0)]
    LogTooLong { session: SessionId, seq: Seq },
    #[error(
        "too much waits to be stored ({waiting} writes, {bytes} bytes); try again when some of it is done"
    )]
    Overloaded { waiting: usize, bytes: usize },
    #[error("one write of {bytes} bytes is more than the {limit} bytes the store takes at once")]
    TooLarge { bytes: usize, limit: usize },
    #[error(
        "the store refused this write; a value in it is too large or breaks a rule of the store"
    )]
    Rejected {
        #[source]
        cause: Cause,
    },
    #[error("no space is left for {place}; free some, no restart is needed")]
    Full {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error("the disk failed under {place}; check the disk and what the system reports about it")]
    DiskFailed {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error(
        "{place} cannot be written; make the folder and its files writable for this user, or choose another home"
    )]
    ReadOnly {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error("{place} is locked by another program; close that program")]
    Busy {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error("{place} or the disk under it is damaged; restore it from a backup or move it away")]
    Corrupt {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error(
        "the database {file} or its write-ahead log was deleted, moved or replaced while it was in use; nothing more can be stored in it, put it back or start the daemon again"
    )]
    Replaced { file: String },
    #[error("{place} cannot be opened; check that its folder exists and belongs to this user")]
    Unavailable {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error(
        "{place} failed; start the daemon again, and report what its log says if that does not help"
    )]
    Failed {
        place: String,
        #[source]
        cause: Cause,
    },
    #[error("the store is closed")]
    Closed,
    #[error("the store ended before it could answer; load the session again")]
    Lost,
}

impl StoreError {
    /// Returns whether what can still be read may be lost all the same: the files that it was written
    /// to have no name any more, or are damaged.
    pub fn loses_what_is_read(&self) -> bool {
        matches!(
            self,
            Self::Replaced { .. } | Self::Corrupt { .. } | Self::Closed
        )
    }

    /// Returns whether the same write may work later, without being changed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Overloaded { .. }
            | Self::Full { .. }
            | Self::DiskFailed { .. }
            | Self::ReadOnly { .. }
            | Self::Busy { .. }
            | Self::Corrupt { .. }
            | Self::Replaced { .. }
            | Self::Unavailable { .. }
            | Self::Failed { .. }
            | Self::Lost => true,
            Self::Conflict { .. }
            | Self::Gap { .. }
            | Self::NoSession { .. }
            | Self::SessionExists { .. }
            | Self::LogTooLong { .. }
            | Self::TooLarge { .. }
            | Self::Rejected { .. }
            | Self::Closed => false,
        }
    }
}
