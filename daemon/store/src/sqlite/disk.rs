//! The one connection that writes: opening it, committing a group, replacing it after a failure.
//!
//! `writer` calls it inside `spawn_blocking`; `read` opens its own connections through it. No write
//! is acknowledged on a handle after a commit on it failed.

mod footprint;

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use loopd_proto::home_paths::{FileId, file_id};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use self::footprint::Footprint;
use super::Location;
use super::change::Change;
use super::erase::{self, Erasure};
use super::error::{Damage, Failure, OpenError, damage};
use super::migrate::{self, Schema, Steps};
use crate::StoreError;

/// The pages of the write-ahead log that are folded back into the database together: 4 MiB.
const CHECKPOINT_PAGES: i64 = 1000;

/// Full synchronisation makes a commit survive a power cut; the write-ahead log is folded back by
/// [`Disk::tidy`] after the writers got their answers, not inside a commit. Temporary
/// data stays in memory, so that a full `/tmp` does no harm. Logs are appended to and read once in
/// order, so that a small page cache serves as well as a large one. What is deleted is overwritten.
const WRITER_SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 4194304;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -512;
    PRAGMA secure_delete = ON;
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
    Failed,
    /// As `Failed`, and bytes that look written may be missing on the disk.
    Doubtful,
}

/// What opening does when there is no database.
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
    /// Whether the write-ahead log may hold what was deleted.
    erasure: Erasure,
    /// The files that the connection writes, once they are known.
    files: Files,
    /// What the database file looks like. It stays open until the connection is closed.
    footprint: Footprint,
}

/// The database and its write-ahead log, as they were when the connection first wrote.
#[derive(Debug, Default)]
struct Files {
    database: Option<FileId>,
    log: Option<FileId>,
}

impl Files {
    /// Returns whether the files still have their names. What is written into a file without a name
    /// is lost when the connection is closed.
    fn are_in_place(&mut self, location: &Location) -> bool {
        let Location::File(path) = location else {
            return true;
        };
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        let same = |known: &mut Option<FileId>, path: &Path| {
            let found = file_id(path);
            let expected = known.or(found);
            *known = expected;
            found.is_some() && found == expected
        };
        same(&mut self.database, path) && same(&mut self.log, Path::new(&log))
    }
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
    pub(super) fn open(location: Location, steps: Steps) -> Result<Self, OpenError> {
        let connection = connect(&location, Missing::Create, steps)?;
        if let Location::File(path) = &location {
            erase::clear_old_pages(&connection, path)
                .map_err(|failure| OpenError::new(&location, failure.of(&location)))?;
        }
        let footprint = Footprint::of(&location);
        let footprint = footprint
            .map_err(|error| OpenError::new(&location, Failure::from(error).of(&location)))?;
        Ok(Self {
            connection: Some(connection),
            footprint,
            files: Files {
                database: match &location {
                    Location::File(path) => file_id(path),
                    Location::Memory => None,
                },
                log: None,
            },
            location,
            steps,
            trust: Trust::Sound,
            erasure: Erasure::Done,
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
        if self.location != Location::Memory && changes.iter().any(|change| change.deletes()) {
            self.erasure = Erasure::Due;
        }
        Group { answers, handle }
    }

    fn attempt(&mut self, changes: &[&Change]) -> Result<Vec<Result<u64, StoreError>>, StoreError> {
        let connection = self.connection.as_mut().ok_or(StoreError::Closed)?;
        // Set before the commit, so that a panic in it leaves a handle that is replaced.
        self.trust = Trust::Doubtful;
        let outcome = commit(connection, changes, &self.location)
            .map_err(|failure| failure.of(&self.location))
            .and_then(|answers| {
                if !self.files.are_in_place(&self.location) {
                    return Err(Failure::Replaced.of(&self.location));
                }
                let intact = self.footprint.check(&self.location);
                intact.map_err(|failure| failure.of(&self.location))?;
                Ok(answers)
            });
        self.trust = match outcome.as_ref().map_err(damage) {
            Ok(_) | Err(Damage::Write | Damage::Group) => Trust::Sound,
            Err(Damage::Handle) => Trust::Failed,
            Err(Damage::Disk) => Trust::Doubtful,
        };
        outcome
    }

    /// Folds a grown write-ahead log back into the database, and empties it after a deletion.
    /// Returns whether a deletion has to be tidied up once more, because a reader uses the log.
    pub(super) fn tidy(&mut self) -> Erasure {
        let Some(connection) = self.connection.as_ref() else {
            return Erasure::Done;
        };
        if self.trust != Trust::Sound {
            // The next commit replaces the handle and tidies up again.
            return Erasure::Done;
        }
        let is_due = match self.erasure {
            Erasure::Due => Ok(true),
            Erasure::Done => has_grown(connection),
        };
        if matches!(is_due, Ok(false)) {
            return Erasure::Done;
        }
        if self.footprint.check(&self.location).is_err() {
            // The next commit tells; until then nothing is built upon what is damaged.
            return Erasure::Done;
        }
        let folded = is_due.and_then(|_| match self.erasure {
            Erasure::Due => erase::empty_log(connection),
            Erasure::Done => checkpoint(connection, "PASSIVE").map(|_| Erasure::Done),
        });
        // Pages that are free no longer belong to the file.
        self.footprint.note();
        if let Ok(erasure) = folded {
            self.erasure = erasure;
        }
        if let Err(failure) = folded {
            let error = failure.of(&self.location);
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the write-ahead log could not be folded back; it grows until it can"
            );
            if damage(&error) == Damage::Disk {
                self.trust = Trust::Doubtful;
            }
        }
        self.erasure
    }

    /// Folds the whole write-ahead log back and closes; everything acknowledged is durable already.
    pub(super) fn close(&mut self) -> Result<(), StoreError> {
        let (regained, intact) = if self.files.are_in_place(&self.location) {
            let regained = self.regain().map(|_| ());
            (regained, self.footprint.check(&self.location))
        } else {
            // A deleted write-ahead log can still be folded back by the handle that has it open.
            (Ok(()), Ok(()))
        };
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        if let Err(failure) = intact {
            // What is left of both files is kept as it is.
            let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let kept = connection.set_db_config(keep, true);
            kept.map_err(|error| Failure::from(error).of(&self.location))?;
            return Err(failure.of(&self.location));
        }
        regained?;
        checkpoint(&connection, "TRUNCATE").map_err(|failure| failure.of(&self.location))?;
        connection
            .close()
            .map_err(|(_, error)| Failure::from(error).of(&self.location))
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
        if !self.files.are_in_place(&self.location) {
            // A new handle would write beside what the old one has stored.
            return Err(Failure::Replaced.of(&self.location));
        }
        // The failed handle stays open until the new one has joined it: together they keep SQLite's
        // index of the log, which does not know the frames of the failed commit. Closed first, a
        // recovery would read those frames and take them for committed.
        let fresh = connect(&self.location, Missing::Refuse, self.steps)
            .map_err(|error| error.after_start(&self.location))?;
        if self.trust == Trust::Doubtful {
            // After a failed fsync the kernel may call lost pages clean. So nothing is built upon
            // the old log: all of it is written and synchronised anew, into the database.
            fold_all(&fresh).map_err(|failure| failure.of(&self.location))?;
        }
        self.connection = Some(fresh);
        self.files.log = None;
        self.footprint.note();
        self.trust = Trust::Sound;
        tracing::info!(path = %self.location.path().display(), "the database was opened anew after a failure");
        Ok(Handle::Replaced)
    }
}

/// Opens a second connection, for reading only.
pub(super) fn connect_reader(location: &Location) -> Result<Connection, StoreError> {
    let name = |error| Failure::from(error).of(location);
    check_not_empty(location).map_err(|failure| failure.of(location))?;
    let connection = open(location, Missing::Refuse).map_err(name)?;
    connection.execute_batch(READER_SETTINGS).map_err(name)?;
    Ok(connection)
}

fn connect(location: &Location, missing: Missing, steps: Steps) -> Result<Connection, OpenError> {
    let refuse = |failure: Failure| OpenError::new(location, failure.of(location));
    let name = |error: rusqlite::Error| refuse(error.into());
    if let (Location::File(path), Missing::Create) = (location, missing) {
        check_not_emptied(path).map_err(refuse)?;
        create_private(path).map_err(|error| refuse(error.into()))?;
    }
    if missing == Missing::Refuse {
        check_not_empty(location).map_err(refuse)?;
    }
    let mut connection = open(location, missing).map_err(name)?;
    // SQLite falls back to reading by itself, and fails later with less to say.
    if connection.is_readonly("main").map_err(name)? {
        return Err(refuse(Failure::ReadOnly));
    }
    // Before any setting: a database that is not ours must stay as it is.
    let schema = migrate::inspect(&connection, location, steps)?;
    if let (Location::File(path), true) = (location, schema.needs_backup(steps)) {
        connection = copy_aside(connection, location, path, schema).map_err(refuse)?;
    }
    if let Location::File(path) = location {
        let mode: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(name)?;
        if mode != "wal" {
            return Err(OpenError::UnsafeFilesystem { path: path.clone() });
        }
    }
    connection.execute_batch(WRITER_SETTINGS).map_err(name)?;
    migrate::migrate(&mut connection, schema, steps).map_err(refuse)?;
    if let (Location::File(path), Missing::Create) = (location, missing)
        && let Err(error) = create_private(&mark_of(path))
    {
        tracing::warn!(%error, "an emptied database will not be told from a new one");
    }
    Ok(connection)
}

/// The file beside a database which says that the database was in use. An empty database beside it was
/// emptied.
fn mark_of(path: &Path) -> PathBuf {
    let mut mark = path.as_os_str().to_owned();
    mark.push("-made");
    mark.into()
}

/// Fails if a database that was in use is empty now. SQLite would take it for a new one, and delete
/// its write-ahead log.
fn check_not_empty(location: &Location) -> Result<(), Failure> {
    match location {
        Location::File(path) if std::fs::metadata(path)?.len() == 0 => {
            Err(Failure::Unreadable("the file is empty".to_owned()))
        }
        Location::File(_) | Location::Memory => Ok(()),
    }
}

/// Fails if a database is empty that was in use, or that has a write-ahead log: that was not the store.
fn check_not_emptied(path: &Path) -> Result<(), Failure> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let length = |path: &Path| path.metadata().map(|found| found.len()).ok();
    let has_log = length(Path::new(&log)).is_some_and(|length| length > 0);
    if length(path) == Some(0) && has_log {
        let what = "the file is empty, but its write-ahead log is not";
        return Err(Failure::Unreadable(what.to_owned()));
    }
    if length(path) == Some(0) && mark_of(path).exists() {
        let what = "the file is empty, although it was in use; put back a copy of it, or delete it to begin \
                    without the sessions that it had";
        return Err(Failure::Unreadable(what.to_owned()));
    }
    Ok(())
}

/// Keeps a copy of the database before it is migrated. The connection is closed meanwhile: reading
/// the file beside it would, on Unix, end the locks that it holds.
fn copy_aside(
    connection: Connection,
    location: &Location,
    path: &Path,
    schema: Schema,
) -> Result<Connection, Failure> {
    fold_all(&connection)?;
    connection.close().map_err(|(_, error)| error)?;
    migrate::back_up(path, schema)?;
    Ok(open(location, Missing::Refuse)?)
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
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn commit(
    connection: &mut Connection,
    changes: &[&Change],
    location: &Location,
) -> Result<Vec<Result<u64, StoreError>>, Failure> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        let savepoint = transaction.savepoint()?;
        match change
            .apply(&savepoint)
            .map_err(|failure| failure.of(location))
        {
            Ok(count) => {
                savepoint.commit()?;
                answers.push(Ok(count));
            }
            Err(error) if damage(&error) == Damage::Write => {
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
pub(super) struct WriteAheadLog {
    /// A reader or another program kept the checkpoint from being complete.
    pub(super) in_use: bool,
    pages: i64,
    /// How many of them are in the database, too.
    folded: i64,
}

pub(super) fn checkpoint(connection: &Connection, mode: &str) -> Result<WriteAheadLog, Failure> {
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

/// Whether so much of the write-ahead log is not in the database that it should be folded back.
fn has_grown(connection: &Connection) -> Result<bool, Failure> {
    let log = checkpoint(connection, "NOOP")?;
    Ok(log.pages - log.folded >= CHECKPOINT_PAGES)
}

/// Folds the whole write-ahead log back, or fails when something else uses it.
pub(super) fn fold_all(connection: &Connection) -> Result<(), Failure> {
    if checkpoint(connection, "TRUNCATE")?.in_use {
        return Err(Failure::InUse);
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
mod tests;
