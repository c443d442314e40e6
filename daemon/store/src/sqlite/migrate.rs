//! The version of the schema: which database is ours, which is too new, and how an old one is
//! brought up to date.
//!
//! `disk` calls it on every new connection. One step is one transaction, so a kill at any moment
//! leaves the old schema or the new one. Steps are never edited after a release, only added.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::Location;
use super::error::{Failure, OpenError};

/// Marks the file as ours: "loop".
const APPLICATION_ID: i32 = 0x6c6f_6f70;

const RUNNING: &str = env!("CARGO_PKG_VERSION");

/// How a schema changes: step `n` makes schema `n` from the one before.
pub(super) type Steps = &'static [&'static str];

/// The steps to the schema this build works with.
pub(super) const STEPS: Steps = &[
    include_str!("sql/0001_sessions.sql"),
    include_str!("sql/0002_agents.sql"),
];

/// The schema a database has; 0 is an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schema(i32);

impl Schema {
    /// Whether the database holds data that a failed migration could damage.
    pub(super) fn needs_backup(self, steps: Steps) -> bool {
        self.0 > 0 && self.0 < newest(steps)
    }
}

/// Copies a database that no connection has open and whose write-ahead log is empty. A copy under
/// its final name is always complete.
pub(super) fn back_up(path: &Path, schema: Schema) -> io::Result<()> {
    let kept = beside(path, &format!(".v{}.backup", schema.0));
    let partial = beside(path, &format!(".v{}.backup.partial", schema.0));
    let copied = copy_durably(path, &partial, &kept);
    if copied.is_err() {
        // It may not exist, and half a copy is worth nothing; the first failure is the one to tell.
        drop(fs::remove_file(&partial));
    }
    copied?;
    tracing::info!(backup = %kept.display(), "the database was copied before it is migrated");
    Ok(())
}

fn copy_durably(path: &Path, partial: &Path, kept: &Path) -> io::Result<()> {
    fs::copy(path, partial)?;
    OpenOptions::new().write(true).open(partial)?.sync_all()?;
    fs::rename(partial, kept)?;
    #[cfg(unix)]
    if let Some(folder) = kept.parent() {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Reads the version of a database, and refuses one that this build must not change.
pub(super) fn inspect(
    connection: &Connection,
    location: &Location,
    steps: Steps,
) -> Result<Schema, OpenError> {
    let path = location.path();
    let (application_id, found, tables): (i32, i32, i64) = connection
        .query_row(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
             FROM pragma_application_id, pragma_user_version",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(|error| OpenError::new(location, Failure::from(error).of(location)))?;
    let untouched = application_id == 0 && found == 0 && tables == 0;
    if application_id != APPLICATION_ID && !untouched {
        return Err(OpenError::Foreign {
            path: path.to_owned(),
        });
    }
    let supported = newest(steps);
    if found > supported {
        return Err(OpenError::NewerSchema {
            path: path.to_owned(),
            found,
            supported,
            // A far future schema may keep its version elsewhere: the refusal matters more.
            writer: writer(connection).unwrap_or_else(|_| "of unknown version".into()),
            running: RUNNING,
        });
    }
    Ok(Schema(found))
}

/// Brings a database to the schema of the last step.
pub(super) fn migrate(
    connection: &mut Connection,
    schema: Schema,
    steps: Steps,
) -> Result<(), Failure> {
    let Schema(current) = schema;
    for (version, step) in (1..).zip(steps) {
        if version > current {
            apply(connection, version, step)?;
        }
    }
    Ok(())
}

fn newest(steps: Steps) -> i32 {
    i32::try_from(steps.len()).unwrap_or(i32::MAX)
}

/// The version of loopd that made the schema.
fn writer(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row(
        "SELECT value FROM meta WHERE key = 'loopd_version'",
        [],
        |row| row.get(0),
    )
}

fn apply(connection: &mut Connection, version: i32, step: &str) -> Result<(), Failure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    transaction.execute_batch(step)?;
    transaction.execute(
        "INSERT INTO meta (key, value) VALUES ('loopd_version', ?1)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [RUNNING],
    )?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()?;
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
