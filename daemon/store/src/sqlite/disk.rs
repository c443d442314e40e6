//! The one connection that writes: opening it, committing a group, replacing it after a failure.
//!
//! `writer` calls it inside `spawn_blocking`; `read` opens its own connections through it. It
//! never acknowledges on a handle whose commit failed.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::change::Change;
use super::migrate::{self, Schema, Steps};
use crate::error::{Blame, Failure};
use crate::{Location, StoreError};

/// The pages of the write-ahead log that are folded back into the database together: 4 MiB.
const CHECKPOINT_PAGES: i64 = 1000;

/// Full synchronisation makes a commit survive a power cut; the write-ahead log is folded back by
/// [`Disk::tidy`] after the writers got their answers, not inside somebody's commit. Temporary
/// data stays in memory, so that a full `/tmp` hurts nobody. Logs are appended to and read once in
/// order, so that a small page cache serves as well as a large one.
const WRITER_SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 4194304;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -512;
";

const READER_SETTINGS: &str = "
    PRAGMA query_only = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -512;
";

/// Whether the handle may be written through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Sound,
    /// A commit failed: the handle must be replaced first.
    Spent,
    /// As `Spent`, and bytes that look written may be missing on the disk.
    Doubtful,
}

/// Whether opening may bring a database into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Refuse,
}

/// The writing side of a database.
#[derive(Debug)]
pub(super) struct Disk {
    location: Location,
    steps: Steps,
    /// `None` once closed.
    connection: Option<Connection>,
    trust: Trust,
}

/// How a group ended.
#[derive(Debug)]
pub(super) struct Group {
    /// One answer for each change, in order.
    pub(super) answers: Vec<Result<u64, StoreError>>,
    pub(super) handle: Handle,
}

/// Which handle a group was committed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handle {
    Kept,
    Replaced,
}

impl Disk {
    /// Opens the database, creating or migrating it when needed.
    pub(super) fn open(location: Location, steps: Steps) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Some(connect(&location, Missing::Create, steps)?),
            location,
            steps,
            trust: Trust::Sound,
        })
    }

    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// The connection, for the reads of a database that only this connection can see.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        self.connection.as_mut().ok_or(StoreError::Closed)
    }

    /// Commits all changes in one transaction; one that is refused does not stop the others.
    pub(super) fn commit(&mut self, changes: &[&Change]) -> Group {
        let mut handle = Handle::Kept;
        let outcome = self.regain().and_then(|regained| {
            handle = regained;
            self.attempt(changes)
        });
        let answers = outcome.unwrap_or_else(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                writes = changes.len(),
                "a group of writes failed"
            );
            changes.iter().map(|_| Err(error.clone())).collect()
        });
        Group { answers, handle }
    }

    fn attempt(&mut self, changes: &[&Change]) -> Result<Vec<Result<u64, StoreError>>, StoreError> {
        let path = self.location.path();
        let connection = self.connection.as_mut().ok_or(StoreError::Closed)?;
        // Until proven otherwise, so that a panic below leaves a handle nobody trusts.
        self.trust = Trust::Doubtful;
        let outcome = commit(connection, changes, path).map_err(|failure| failure.of(path));
        self.trust = match outcome.as_ref().map_err(StoreError::blame) {
            Ok(_) | Err(Blame::Write | Blame::Group) => Trust::Sound,
            Err(Blame::Handle) => Trust::Spent,
            Err(Blame::Disk) => Trust::Doubtful,
        };
        outcome
    }

    /// Folds a grown write-ahead log back into the database.
    pub(super) fn tidy(&mut self) {
        let Some(connection) = self.connection.as_ref() else {
            return;
        };
        if self.trust != Trust::Sound {
            return;
        }
        let folded = checkpoint(connection, "NOOP").and_then(|log| {
            if log.pages - log.folded < CHECKPOINT_PAGES {
                return Ok(());
            }
            checkpoint(connection, "PASSIVE").map(|_| ())
        });
        if let Err(failure) = folded {
            let error = failure.of(self.location.path());
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the write-ahead log could not be folded back; it grows until it can"
            );
            if error.blame() == Blame::Disk {
                self.trust = Trust::Doubtful;
            }
        }
    }

    /// Folds the whole write-ahead log back and closes; everything acknowledged is durable already.
    pub(super) fn close(&mut self) -> Result<(), StoreError> {
        let regained = self.regain();
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        regained?;
        let path = self.location.path();
        checkpoint(&connection, "TRUNCATE").map_err(|failure| failure.of(path))?;
        connection
            .close()
            .map_err(|(_, error)| Failure::from(error).of(path))
    }

    /// Replaces a handle that failed.
    fn regain(&mut self) -> Result<Handle, StoreError> {
        if self.trust == Trust::Sound {
            return Ok(Handle::Kept);
        }
        if self.location == Location::Memory {
            // Nothing was to be synchronised, and a new handle would be an empty database.
            self.trust = Trust::Sound;
            return Ok(Handle::Kept);
        }
        // The failed handle stays open until the new one has joined it: together they keep SQLite's
        // index of the log, which does not know the frames of the failed commit. Closed first, a
        // recovery would read those frames and take them for committed.
        let fresh = connect(&self.location, Missing::Refuse, self.steps)?;
        if self.trust == Trust::Doubtful {
            // After a failed fsync the kernel may call lost pages clean. So nothing is built upon
            // the old log: all of it is written and synchronised anew, into the database.
            let path = self.location.path();
            let log = checkpoint(&fresh, "TRUNCATE").map_err(|failure| failure.of(path))?;
            if log.in_use {
                return Err(Failure::from(in_use()).of(path));
            }
        }
        self.connection = Some(fresh);
        self.trust = Trust::Sound;
        tracing::info!(path = %self.location.path().display(), "the database was opened anew after a failure");
        Ok(Handle::Replaced)
    }
}

/// Opens a second connection, for reading only.
pub(super) fn connect_reader(location: &Location) -> Result<Connection, StoreError> {
    let name = |error| Failure::from(error).of(location.path());
    let connection = open(location, Missing::Refuse).map_err(name)?;
    connection.execute_batch(READER_SETTINGS).map_err(name)?;
    Ok(connection)
}

fn connect(location: &Location, missing: Missing, steps: Steps) -> Result<Connection, StoreError> {
    if let (Location::File(path), Missing::Create) = (location, missing) {
        create_private(path)?;
    }
    let name = |error| Failure::from(error).of(location.path());
    let mut connection = open(location, missing).map_err(name)?;
    // SQLite falls back to reading by itself, and fails later with less to say.
    if connection.is_readonly("main").map_err(name)? {
        return Err(name(failure(
            rusqlite::ffi::SQLITE_READONLY,
            "it could be opened for reading only",
        )));
    }
    // Before any setting: a database that is not ours must stay as it is.
    let schema = migrate::inspect(&connection, location, steps)?;
    if let (Location::File(path), true) = (location, schema.needs_backup(steps)) {
        connection = copy_aside(connection, path, schema)?;
    }
    if let Location::File(path) = location {
        let mode: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(name)?;
        if mode != "wal" {
            return Err(StoreError::NoWriteAheadLog {
                path: path.clone(),
                mode,
            });
        }
    }
    connection.execute_batch(WRITER_SETTINGS).map_err(name)?;
    migrate::migrate(&mut connection, location, schema, steps)?;
    Ok(connection)
}

/// Keeps a copy of the database before it is migrated. The connection is closed meanwhile: reading
/// the file beside it would, on Unix, end the locks that it holds.
fn copy_aside(
    connection: Connection,
    path: &Path,
    schema: Schema,
) -> Result<Connection, StoreError> {
    let name = |error| Failure::from(error).of(path);
    let log = checkpoint(&connection, "TRUNCATE").map_err(|failure| failure.of(path))?;
    if log.in_use {
        return Err(name(in_use()));
    }
    connection.close().map_err(|(_, error)| name(error))?;
    migrate::back_up(path, schema)?;
    open(&Location::File(path.to_owned()), Missing::Refuse).map_err(name)
}

fn open(location: &Location, missing: Missing) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match (location, missing) {
        (Location::Memory, _) => Connection::open_in_memory(),
        (Location::File(path), Missing::Create) => {
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_CREATE)
        }
        (Location::File(path), Missing::Refuse) => Connection::open_with_flags(path, flags),
    }
}

/// Makes an empty file only its owner can read; SQLite gives its companions the same mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::from_io(path, error)),
    }
}

fn commit(
    connection: &mut Connection,
    changes: &[&Change],
    path: &Path,
) -> Result<Vec<Result<u64, StoreError>>, Failure> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        let savepoint = transaction.savepoint()?;
        match change.apply(&savepoint).map_err(|failure| failure.of(path)) {
            Ok(count) => {
                savepoint.commit()?;
                answers.push(Ok(count));
            }
            Err(error) if error.blame() == Blame::Write => {
                // Without a savepoint's drop, whose failure nobody would see.
                savepoint.finish()?;
                answers.push(Err(error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    transaction.commit()?;
    Ok(answers)
}

/// The state of the write-ahead log after a checkpoint.
struct WriteAheadLog {
    /// A reader or another program kept the checkpoint from being complete.
    in_use: bool,
    pages: i64,
    /// How many of them are in the database, too.
    folded: i64,
}

fn checkpoint(connection: &Connection, mode: &str) -> Result<WriteAheadLog, Failure> {
    let log = connection
        .prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?
        .query_row([], |row| {
            Ok(WriteAheadLog {
                in_use: row.get(0)?,
                pages: row.get(1)?,
                folded: row.get(2)?,
            })
        })?;
    Ok(log)
}

fn in_use() -> rusqlite::Error {
    failure(
        rusqlite::ffi::SQLITE_BUSY,
        "a reader kept the write-ahead log from being folded back",
    )
}

fn failure(code: i32, what: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some(what.into()))
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests;
