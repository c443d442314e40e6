//! What each failure of SQLite and of its files means in the words of the store.
//!
//! No type, text or companion file of SQLite gets past this module. Callers ask [`damage`] how much
//! of a group of writes an error spoils.

use std::error::Error as _;
use std::io;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use thiserror::Error;

use super::{Location, lock_holder};
use crate::{Cause, StoreError};

/// Why a database could not be opened. It names the file, because a person has to deal with it.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{error} (the file is {})", path.display())]
    Unusable {
        path: PathBuf,
        error: StoreError,
        #[source]
        cause: Option<Cause>,
    },
    #[error(
        "the filesystem of {} cannot keep what is written safe; put the home on a local disk",
        path.display()
    )]
    UnsafeFilesystem { path: PathBuf },
    #[error("{} belongs to another program; choose another home or move it away", path.display())]
    Foreign { path: PathBuf },
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
}

impl OpenError {
    pub(super) fn new(location: &Location, error: StoreError) -> Self {
        Self::Unusable {
            path: location.path().to_owned(),
            cause: error.source().map(Cause::new),
            error,
        }
    }

    /// What it means for a store that was open before.
    pub(super) fn after_start(self, location: &Location) -> StoreError {
        match self {
            Self::Unusable { error, .. } => error,
            Self::UnsafeFilesystem { .. } | Self::Foreign { .. } | Self::NewerSchema { .. } => {
                StoreError::Unavailable {
                    place: location.place(),
                    cause: Cause::new("another file has taken the place of the database"),
                }
            }
        }
    }
}

/// How much of a group of writes an error spoils.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    /// Only the write that met it.
    Write,
    /// Every write of the group; the handle is as good as before.
    Group,
    /// Every write of the group, and the handle must be replaced.
    Handle,
    /// As `Handle`, and what the handle wrote may not have reached the disk.
    Disk,
}

pub(super) fn damage(error: &StoreError) -> Damage {
    match error {
        StoreError::Conflict { .. }
        | StoreError::Gap { .. }
        | StoreError::NoSession { .. }
        | StoreError::SessionExists { .. }
        | StoreError::LogTooLong { .. }
        | StoreError::Overloaded { .. }
        | StoreError::TooLarge { .. }
        | StoreError::Rejected { .. } => Damage::Write,
        StoreError::Busy { .. } | StoreError::Closed | StoreError::Lost => Damage::Group,
        StoreError::Full { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Replaced { .. }
        | StoreError::Unavailable { .. } => Damage::Handle,
        StoreError::DiskFailed { .. } | StoreError::Failed { .. } => Damage::Disk,
    }
}

/// A failure before it is known which database it belongs to.
#[derive(Debug)]
pub(super) enum Failure {
    Sqlite(rusqlite::Error),
    File(io::Error),
    Refused(StoreError),
    /// Another connection uses the database.
    InUse,
    /// The database could be opened for reading only.
    ReadOnly,
    /// The file of the database was deleted, moved or replaced under the open store.
    Replaced,
    /// Stored data that no loopd wrote.
    Unreadable(String),
}

impl Failure {
    pub(super) fn of(self, location: &Location) -> StoreError {
        let place = location.place();
        let error = match self {
            Self::Sqlite(error) => from_sqlite(place, error),
            Self::File(error) => from_io(place, error),
            Self::Refused(error) => error,
            Self::InUse => StoreError::Busy {
                place,
                cause: Cause::new("another connection kept the write-ahead log in use"),
            },
            Self::ReadOnly => StoreError::ReadOnly {
                place,
                cause: Cause::new("the database could be opened for reading only"),
            },
            Self::Replaced => StoreError::Replaced {
                file: location.path().display().to_string(),
            },
            Self::Unreadable(what) => StoreError::Corrupt {
                place,
                cause: Cause::new(what),
            },
        };
        match error {
            // A person has to deal with the file.
            StoreError::Corrupt { cause, .. } => StoreError::Corrupt {
                place: format!("the database {}", location.path().display()),
                cause,
            },
            // A person has to find the program.
            StoreError::Busy { place, cause } => StoreError::Busy {
                place: match lock_holder::of(location.path()) {
                    Some(holder) => format!("{place} (see {holder})"),
                    None => place,
                },
                cause,
            },
            other => other,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

fn from_io(place: String, error: io::Error) -> StoreError {
    use io::ErrorKind as Kind;
    let cause = Cause::new(&error);
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => StoreError::Full { place, cause },
        Kind::ReadOnlyFilesystem | Kind::PermissionDenied => StoreError::ReadOnly { place, cause },
        Kind::NotFound | Kind::NotADirectory | Kind::IsADirectory => {
            StoreError::Unavailable { place, cause }
        }
        _ => StoreError::DiskFailed { place, cause },
    }
}

fn from_sqlite(place: String, error: rusqlite::Error) -> StoreError {
    let unreadable = matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    );
    let cause = describe(&error);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { place, cause },
        Some(ErrorCode::SystemIoFailure) => StoreError::DiskFailed { place, cause },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly { place, cause }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Busy { place, cause }
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { place, cause }
        }
        Some(ErrorCode::CannotOpen) => StoreError::Unavailable { place, cause },
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) => {
            StoreError::Rejected { cause }
        }
        None if unreadable => StoreError::Corrupt { place, cause },
        // The statements are ours, so the database is not what it was.
        Some(ErrorCode::Unknown) if lacks_a_table(&error) => StoreError::Corrupt { place, cause },
        _ => {
            // The store has no words for it, so whoever reads the log gets those of SQLite.
            tracing::error!(%error, "the database failed in an unexpected way");
            StoreError::Failed { place, cause }
        }
    }
}

/// Whether a statement names a table or column that the database does not have. SQLite has no code
/// for it.
fn lacks_a_table(error: &rusqlite::Error) -> bool {
    let text = error.to_string();
    ["no such table", "no such column"]
        .iter()
        .any(|missing| text.contains(missing))
}

/// The number and the general meaning of a failure: the full text names files, tables and SQL.
fn describe(error: &rusqlite::Error) -> Cause {
    match error.sqlite_error() {
        Some(failure) => Cause::new(format_args!(
            "database error {}: {}",
            failure.extended_code,
            rusqlite::ffi::code_to_str(failure.extended_code)
        )),
        None => Cause::new("the database holds a value of an unexpected form"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
