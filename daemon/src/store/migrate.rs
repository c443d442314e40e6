//! The schema's version: which database is ours, which is too new, and how an old one grows up.
//!
//! `disk` calls it on every new connection. One step is one transaction, so a kill at any moment
//! leaves the old schema or the new one. Steps are never edited after a release, only added.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};

use super::error::Failure;
use super::{Location, StoreError, disk};

/// Marks the file as ours: "loop".
const APPLICATION_ID: i32 = 0x6c6f_6f70;

const RUNNING: &str = env!("CARGO_PKG_VERSION");

/// The steps; the first makes schema 1, the last makes the schema this build works with.
const STEPS: &[&str] = &[include_str!("sql/0001_sessions.sql")];

/// The schema a database has; 0 is an empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schema(i32);

/// Reads whose database this is and refuses what this build must not touch.
pub(super) fn inspect(connection: &Connection, location: &Location) -> Result<Schema, StoreError> {
    inspect_for(connection, location, STEPS)
}

/// Brings the database to the schema this build works with.
pub(super) fn migrate(
    connection: &mut Connection,
    location: &Location,
    schema: Schema,
) -> Result<(), StoreError> {
    migrate_with(connection, location, schema, STEPS)
}

fn inspect_for(
    connection: &Connection,
    location: &Location,
    steps: &[&str],
) -> Result<Schema, StoreError> {
    let path = location.path();
    let (application_id, found, tables): (i32, i32, i64) = connection
        .query_row(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
             FROM pragma_application_id, pragma_user_version",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .map_err(|error| Failure::from(error).of(path))?;
    let untouched = application_id == 0 && found == 0 && tables == 0;
    if application_id != APPLICATION_ID && !untouched {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            application_id,
        });
    }
    let supported = newest(steps);
    if found > supported {
        return Err(StoreError::NewerSchema {
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

fn migrate_with(
    connection: &mut Connection,
    location: &Location,
    schema: Schema,
    steps: &[&str],
) -> Result<(), StoreError> {
    let Schema(current) = schema;
    if current == newest(steps) {
        return Ok(());
    }
    if let (Location::File(path), true) = (location, current > 0) {
        let kept = back_up(connection, path, current)?;
        tracing::info!(backup = %kept.display(), from = current, to = newest(steps), "migrating the database");
    }
    for (version, step) in (1..).zip(steps) {
        if version > current {
            apply(connection, version, step).map_err(|failure| failure.of(location.path()))?;
        }
    }
    Ok(())
}

fn newest(steps: &[&str]) -> i32 {
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

/// Keeps a copy of the database as it was; a copy under its final name is always complete.
fn back_up(connection: &Connection, path: &Path, version: i32) -> Result<PathBuf, StoreError> {
    let kept = beside(path, &format!(".v{version}.backup"));
    let partial = beside(path, &format!(".v{version}.backup.partial"));
    let on_disk = |error| StoreError::from_io(&partial, error);
    // Left over from a kill in the middle; SQLite refuses to write into a file with content.
    if partial.try_exists().map_err(on_disk)? {
        fs::remove_file(&partial).map_err(on_disk)?;
    }
    disk::create_private(&partial)?;
    connection
        // As bytes, because a path need not be UTF-8.
        .execute(
            "VACUUM INTO CAST(?1 AS TEXT)",
            [partial.as_os_str().as_encoded_bytes()],
        )
        .map_err(|error| Failure::from(error).of(&partial))?;
    OpenOptions::new()
        .write(true)
        .open(&partial)
        .and_then(|copy| copy.sync_all())
        .and_then(|()| fs::rename(&partial, &kept))
        .map_err(on_disk)?;
    #[cfg(unix)]
    if let Some(folder) = kept.parent() {
        fs::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(on_disk)?;
    }
    Ok(kept)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
