//! Looks for damage in the whole database, within a bound of time.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use super::error::Failure;
use crate::StoreCheck;

/// How many findings are returned; one damaged page may have thousands.
const MOST_FINDINGS: u32 = 20;
/// How many steps of SQLite come between two looks at the clock.
const STEPS: i32 = 10_000;

/// Compares all pages, tables and indexes with each other.
#[expect(
    clippy::disallowed_methods,
    reason = "SQLite asks for the time while it works"
)]
pub(super) fn run(connection: &mut Connection, within: Duration) -> Result<StoreCheck, Failure> {
    // What is looked at is what is on the disk now, not what was read earlier.
    connection.execute_batch("PRAGMA shrink_memory")?;
    let until = Instant::now() + within;
    connection.progress_handler(STEPS, Some(move || Instant::now() > until))?;
    let found = findings(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match found {
        Ok(damage) => Ok(StoreCheck {
            damage,
            complete: true,
        }),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(StoreCheck::default())
        }
        Err(error) => Err(error.into()),
    }
}

fn findings(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({MOST_FINDINGS})"))?;
    let lines = check.query_map([], |row| row.get::<_, String>(0))?;
    let mut found = lines.collect::<rusqlite::Result<Vec<String>>>()?;
    found.retain(|line| line != "ok");
    Ok(found)
}
