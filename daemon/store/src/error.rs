//! Why the store could not do something, and what each failure of SQLite means for its caller.
//!
//! `disk` asks [`StoreError::blame`] how much of a group an error spoils; nothing here acts on it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::id::{Seq, SessionId};
use rusqlite::ErrorCode;
use thiserror::Error;

/// The failure underneath; shared, because one failed commit answers every batch of its group.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why the store refused or failed.
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
    #[error("the database refused this write")]
    Rejected {
        #[source]
        source: Cause,
    },
    #[error("no space is left for {}; free some and try again, no restart is needed", path.display())]
    Full {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("the disk failed under {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error(
        "{} cannot be written; make it and its folder writable for this user, or choose another home",
        path.display()
    )]
    ReadOnly {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("{} is locked by another program; close that program and try again", path.display())]
    Busy {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error(
        "{} is no database, or it or the disk under it is damaged; restore it from a backup or move it away",
        path.display()
    )]
    Corrupt {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("{} cannot be opened; check that its folder exists and belongs to this user", path.display())]
    Unopenable {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error(
        "the filesystem of {} cannot hold a write-ahead log (it gave {mode}); put the home on a local disk",
        path.display()
    )]
    NoWriteAheadLog { path: PathBuf, mode: String },
    #[error(
        "{} belongs to another program (application id {application_id:#010x}); choose another home or move it away",
        path.display()
    )]
    Foreign { path: PathBuf, application_id: i32 },
    #[error(
        "{} has schema {found}, made by loopd {writer}, but this is loopd {running}, which knows schemas up to \
         {supported}; start a loopd as new as the one that made it, or choose another home",
        path.display()
    )]
    NewerSchema {
        path: PathBuf,
        found: i32,
        supported: i32,
        writer: String,
        running: &'static str,
    },
    #[error("the database {} failed", path.display())]
    Database {
        path: PathBuf,
        #[source]
        source: Cause,
    },
    #[error("the store is closed")]
    Closed,
    #[error("the store ended before it could answer; load the session again")]
    Lost,
}

/// How much of a group of writes an error spoils.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blame {
    /// Only the write that met it.
    Write,
    /// Every write of the group; the handle is as good as before.
    Group,
    /// Every write of the group, and the handle must be replaced.
    Handle,
    /// As `Handle`, and what the handle wrote may not have reached the disk.
    Disk,
}

impl StoreError {
    /// Tells that a failed write may come to light after a crash, so that the log must be loaded
    /// before anything is appended to it.
    pub fn leaves_doubt(&self) -> bool {
        matches!(self, Self::Lost) || matches!(self.blame(), Blame::Handle | Blame::Disk)
    }

    pub(super) fn blame(&self) -> Blame {
        match self {
            Self::Conflict { .. }
            | Self::Gap { .. }
            | Self::NoSession { .. }
            | Self::SessionExists { .. }
            | Self::LogTooLong { .. }
            | Self::Overloaded { .. }
            | Self::TooLarge { .. }
            | Self::Rejected { .. } => Blame::Write,
            Self::Busy { .. } | Self::Closed | Self::Lost => Blame::Group,
            Self::Full { .. }
            | Self::ReadOnly { .. }
            | Self::Corrupt { .. }
            | Self::Unopenable { .. }
            | Self::NoWriteAheadLog { .. }
            | Self::Foreign { .. }
            | Self::NewerSchema { .. } => Blame::Handle,
            Self::Io { .. } | Self::Database { .. } => Blame::Disk,
        }
    }

    pub(super) fn from_io(path: &Path, error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        let path = path.to_owned();
        let kind = error.kind();
        let source: Cause = Arc::new(error);
        match kind {
            Kind::StorageFull | Kind::QuotaExceeded => Self::Full { path, source },
            Kind::ReadOnlyFilesystem | Kind::PermissionDenied => Self::ReadOnly { path, source },
            Kind::NotFound | Kind::NotADirectory | Kind::IsADirectory => {
                Self::Unopenable { path, source }
            }
            _ => Self::Io { path, source },
        }
    }

    fn from_sqlite(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let code = error.sqlite_error_code();
        let unreadable = matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
        );
        let source: Cause = Arc::new(error);
        match code {
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::SystemIoFailure) => Self::Io { path, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, source }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Corrupt { path, source }
            }
            Some(ErrorCode::CannotOpen) => Self::Unopenable { path, source },
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) => {
                Self::Rejected { source }
            }
            None if unreadable => Self::Corrupt { path, source },
            _ => Self::Database { path, source },
        }
    }
}

/// A failure before it is known which database it belongs to.
#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(rusqlite::Error),
    Refused(StoreError),
    /// Stored bytes that no loopd wrote.
    Unreadable(Cause),
}

impl Failure {
    pub(super) fn of(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => StoreError::from_sqlite(path, error),
            Self::Refused(error) => error,
            Self::Unreadable(source) => StoreError::Corrupt {
                path: path.to_owned(),
                source,
            },
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}
