//! The database of one session for SQL that its model writes, with the todo list in two tables.
//!
//! The file is a cache as far as the list is concerned: the session's log has the list, and every
//! run first makes the tables equal to it. Other tables are only here. A run is one transaction, and
//! it stays open until the caller says that the changed list is in the log.

mod bounded;
mod guard;
mod pattern;
mod statement;
mod tables;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::todo::TodoList;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::time::Instant;

use bounded::Over;
pub use statement::{SqlValue, StatementEffect, StatementResult};

/// The name of the file in the session's folder.
pub const FILE_NAME: &str = "session.db";
/// The name of a file that could not be read, after it was moved aside.
const DAMAGED: &str = "session.damaged.db";

/// How long one call may take.
const LONGEST_RUN: Duration = Duration::from_secs(2);
/// How long a call waits for an earlier one that was given up and still ends.
const LONGEST_WAIT: Duration = Duration::from_secs(4);
/// After how many steps of SQLite the time is looked at.
const STEPS_BETWEEN_CHECKS: i32 = 1000;
/// The largest database, in pages of 4096 bytes: 16 MiB.
const MOST_PAGES: u32 = 4096;
/// The most memory that SQLite may take in this process. Sorting keeps its rows in memory.
const MOST_MEMORY: i64 = 512 * 1024 * 1024;
/// The longest text, blob, row and call, in bytes. It also bounds the time of the functions that are not
/// in `bounded`: they are not interrupted.
const LONGEST_VALUE: i32 = 256 * 1024;

/// The limits on single statements.
const LIMITS: [(Limit, i32); 10] = [
    (Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, LONGEST_VALUE),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
    (Limit::SQLITE_LIMIT_VDBE_OP, 100_000),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Why SQL was not carried out. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    #[error("{0}")]
    NotAllowed(String),
    #[error("statement {number} failed: {message}")]
    Failed { number: usize, message: String },
    #[error("there is no statement in the query")]
    Empty,
    #[error("a query has at most {limit} statements; split it")]
    TooManyStatements { limit: usize },
    #[error("the query took longer than {} seconds and was stopped; ask for less", LONGEST_RUN.as_secs())]
    TooSlow,
    #[error("the query needed too much memory and was stopped; ask for less")]
    TooMuchMemory,
    #[error("the database may have at most {} MiB; delete rows that are not needed", MOST_PAGES / 256)]
    TooLarge,
    #[error("the query was stopped with its turn")]
    Stopped,
    #[error("{0}")]
    BadValue(String),
    #[error("the database of the session cannot be used: {0}")]
    Unusable(String),
}

/// What a run did. It counts once [`TodoDatabase::keep`] has succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct SqlRun {
    /// One result for each statement.
    pub results: Vec<StatementResult>,
    /// The todo list, if it was changed.
    pub changed: Option<TodoList>,
}

/// Whether the file was there, or had to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    Sound,
    /// The file could not be read. It was moved aside, and its other tables are not there any more.
    MadeAnew,
    /// The file was removed, replaced or cut short while it was open.
    Gone,
}

/// The open database.
#[derive(Debug)]
pub struct TodoDatabase {
    connection: Connection,
    path: PathBuf,
    file: Option<FileId>,
}

/// The reason for which a statement was refused.
type Refusals = Arc<Mutex<Option<String>>>;

impl TodoDatabase {
    /// Opens the database in the folder of a session, which is made if it is not there. It may block.
    pub fn open(folder: &Path) -> Result<(Self, Opened), SqlError> {
        let prepared =
            prepare_folder(folder).map_err(|error| SqlError::Unusable(error.to_string()));
        let (path, made_anew) = prepared?;
        let opened = if made_anew {
            Opened::MadeAnew
        } else {
            Opened::Sound
        };
        match connect(&path) {
            Ok(connection) => Ok((Self::of(connection, path), opened)),
            Err(error) if is_damage(&error) => {
                move_aside(&path).map_err(|error| SqlError::Unusable(error.to_string()))?;
                let connection = connect(&path).map_err(|error| unusable(&error))?;
                Ok((Self::of(connection, path), Opened::MadeAnew))
            }
            Err(error) => Err(unusable(&error)),
        }
    }

    fn of(connection: Connection, path: PathBuf) -> Self {
        let file = FileId::of(&path);
        Self {
            connection,
            path,
            file,
        }
    }

    /// Whether the file that is open is still the one in the folder. SQLite goes on with a file that
    /// was removed, and takes one that was emptied for a new one. It may block.
    pub fn is_in_place(&self) -> bool {
        self.file.is_some() && FileId::of(&self.path) == self.file && begins_as_database(&self.path)
    }

    /// Makes the tables equal to the list and runs the statements of a query on them. `stopped` says
    /// whether nobody waits for the result any more. The transaction stays open after a success.
    pub fn run(
        &mut self,
        list: &TodoList,
        query: &str,
        stopped: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<SqlRun, SqlError> {
        self.undo();
        // SQLite reads up to there and takes the rest for nothing.
        if query.contains('\0') {
            return Err(SqlError::NotAllowed(
                "the query has a NUL character; leave it out".to_owned(),
            ));
        }
        let run = self.attempt(list, query, stopped);
        if run.is_err() {
            self.undo();
        }
        run
    }

    fn attempt(
        &mut self,
        list: &TodoList,
        query: &str,
        stopped: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<SqlRun, SqlError> {
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        begun.map_err(|error| unusable(&error))?;
        tables::bring_up(&self.connection, list).map_err(|error| unusable(&error))?;
        let refusals = Refusals::default();
        let failed = |error: &rusqlite::Error| unusable(error);
        let told = refusals.clone();
        self.connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                let Err(reason) = guard::judge(&context) else {
                    return Authorization::Allow;
                };
                told.lock().get_or_insert(reason);
                Authorization::Deny
            }))
            .map_err(|error| failed(&error))?;
        let deadline = Instant::now() + LONGEST_RUN;
        let longest = usize::try_from(LONGEST_VALUE).unwrap_or_default();
        let over: Over = Arc::new(move || stopped() || Instant::now() >= deadline);
        bounded::register(&self.connection, longest, &over).map_err(|error| failed(&error))?;
        let is_over = over.clone();
        self.connection
            .progress_handler(STEPS_BETWEEN_CHECKS, Some(move || is_over()))
            .map_err(|error| failed(&error))?;
        let ran = statement::run_all(&self.connection, query);
        self.lift_guard().map_err(|error| failed(&error))?;
        let results = ran.map_err(|failure| explain(failure, &refusals, deadline, &over))?;
        let now = tables::read_checked(&self.connection)?;
        Ok(SqlRun {
            results,
            changed: (now != *list).then_some(now),
        })
    }

    /// Lets our own statements through again.
    fn lift_guard(&mut self) -> rusqlite::Result<()> {
        self.connection
            .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
        self.connection.progress_handler(0, None::<fn() -> bool>)
    }

    /// Makes the changes of the last run last.
    pub fn keep(&mut self) -> Result<(), SqlError> {
        let kept = self.connection.execute_batch("COMMIT");
        kept.map_err(|error| {
            self.undo();
            unusable(&error)
        })
    }

    /// Takes the changes of the last run back.
    pub fn undo(&mut self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction of a session's database could not be rolled back");
        }
    }
}

/// Makes the folder and returns the path of the file without links. A file that is not an ordinary
/// one with a single name is moved aside, and the flag says so.
fn prepare_folder(folder: &Path) -> io::Result<(PathBuf, bool)> {
    std::fs::create_dir_all(folder)?;
    let path = folder.canonicalize()?.join(FILE_NAME);
    match std::fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((path, false)),
        Err(error) => Err(error),
        Ok(found) if found.is_file() && has_one_name(&found) => Ok((path, false)),
        Ok(_) => {
            move_aside(&path)?;
            Ok((path, true))
        }
    }
}

#[cfg(unix)]
fn has_one_name(found: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(found) == 1
}

#[cfg(not(unix))]
fn has_one_name(_found: &std::fs::Metadata) -> bool {
    true
}

/// Which file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::symlink_metadata(path).ok()?;
        (found.is_file() && found.nlink() == 1).then(|| Self(found.dev(), found.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::symlink_metadata(path).ok()?;
        found.is_file().then_some(Self(0, 0))
    }
}

/// What a database of SQLite begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

fn begins_as_database(path: &Path) -> bool {
    let mut begin = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == MAGIC
}

/// Gives the file another name; what a link points to is not touched.
fn move_aside(path: &Path) -> io::Result<()> {
    let aside = path.with_file_name(DAMAGED);
    tracing::warn!(file = %path.display(), aside = %aside.display(), "a session's database cannot be used and is moved aside");
    std::fs::rename(path, aside)?;
    // What a journal says about the old file must not be done to the new one.
    for suffix in ["-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes the file if it is missing, and lets only this user read it. SQLite says why it cannot be used.
#[cfg(unix)]
fn keep_private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let no_links = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    if let Ok(file) = options.mode(0o600).custom_flags(no_links).open(path) {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))
            .ok();
    }
}

#[cfg(not(unix))]
fn keep_private(_path: &Path) {}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    keep_private(path);
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LONGEST_WAIT)?;
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    ] {
        connection.set_db_config(config, value)?;
    }
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch(&format!(
        "PRAGMA hard_heap_limit = {MOST_MEMORY};
         PRAGMA max_page_count = {MOST_PAGES};
         PRAGMA journal_mode = DELETE;
         PRAGMA synchronous = NORMAL;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -512;"
    ))?;
    tables::create(&connection)?;
    Ok(connection)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    ) || matches!(error, rusqlite::Error::SqlInputError { .. })
}

fn unusable(error: &rusqlite::Error) -> SqlError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => SqlError::TooLarge,
        _ => SqlError::Unusable(statement::message(error)),
    }
}

/// Says why a statement failed.
fn explain(
    failure: statement::Failure,
    refusals: &Refusals,
    deadline: Instant,
    over: &Over,
) -> SqlError {
    let (number, error) = match failure {
        statement::Failure::Own(error) => return error,
        statement::Failure::Sqlite { number, error } => (number, error),
    };
    if let Some(reason) = refusals.lock().take() {
        return SqlError::NotAllowed(reason);
    }
    // A function of ours that gives up fails as any other does.
    if over() && Instant::now() < deadline {
        return SqlError::Stopped;
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted | ErrorCode::Unknown)
            if Instant::now() >= deadline =>
        {
            SqlError::TooSlow
        }
        Some(ErrorCode::OperationInterrupted) => SqlError::Stopped,
        Some(ErrorCode::OutOfMemory) => SqlError::TooMuchMemory,
        Some(ErrorCode::DiskFull) => SqlError::TooLarge,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            SqlError::Unusable(statement::message(&error))
        }
        _ => SqlError::Failed {
            number,
            message: statement::message(&error),
        },
    }
}
