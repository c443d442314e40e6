//! Keeps deleted content from staying readable on the disk.
//!
//! SQLite overwrites what it deletes (`secure_delete`). That leaves two places: the write-ahead log,
//! whose older pages hold what was there before, and the free pages of a database that was written
//! before deletions were overwritten. `disk` calls this module.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::disk::{checkpoint, fold_all};
use super::error::Failure;

/// How long a statement waits for another program. The driver sets this for a new connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest database that is rewritten when it is opened; a larger one would delay the start.
const LARGEST_REWRITE: i64 = 256 * 1024 * 1024;

/// The key in `meta` that says that no free page holds old content.
const CLEARED: &str = "free_pages_cleared";

/// Whether deleted content is still to be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erasure {
    Done,
    Due,
}

/// Empties the write-ahead log. A log that a reader uses is left for later: waiting for the reader
/// would hold up the writers.
pub(super) fn empty_log(connection: &Connection) -> Result<Erasure, Failure> {
    connection.busy_timeout(Duration::ZERO)?;
    let log = checkpoint(connection, "TRUNCATE");
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(if log?.in_use {
        Erasure::Due
    } else {
        Erasure::Done
    })
}

/// Rewrites a database once if it has free pages from before deletions were overwritten. The
/// database is usable without that, so that only a warning tells if it cannot be done.
pub(super) fn clear_old_pages(connection: &Connection, path: &Path) -> Result<(), Failure> {
    let (cleared, free, bytes): (bool, i64, i64) = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM meta WHERE key = ?1), freelist_count, page_count * page_size
         FROM pragma_freelist_count, pragma_page_count, pragma_page_size",
        [CLEARED],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    if cleared {
        return Ok(());
    }
    if free > 0 {
        if bytes > LARGEST_REWRITE {
            tracing::warn!(
                path = %path.display(), bytes,
                "sessions deleted by an earlier version may still be readable in the database; stop the daemon and run `VACUUM` on it"
            );
            return Ok(());
        }
        let rewritten = connection
            .execute_batch("VACUUM")
            .map_err(Failure::from)
            .and_then(|()| fold_all(connection));
        if let Err(failure) = rewritten {
            tracing::warn!(
                path = %path.display(), ?failure,
                "sessions deleted by an earlier version may still be readable in the database; the next start tries again to clear it"
            );
            return Ok(());
        }
    }
    connection.execute("INSERT INTO meta (key, value) VALUES (?1, '1')", [CLEARED])?;
    Ok(())
}
