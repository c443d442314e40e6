//! Checks that the database of the home still begins as a database does. The daemon may be using it,
//! so nothing more is read: it tells of damage further in when it comes to it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loopd_sdk::proto::home_paths::DATABASE;

use super::Finding;

/// How every database begins.
const DATABASE_START: &[u8] = b"SQLite format 3\0";

/// How every write-ahead log begins, but for a last bit.
const LOG_START: &[u8] = &[0x37, 0x7f, 0x06];

/// Checks the database and its write-ahead log.
pub(super) fn check(home: &Path) -> Finding {
    let database = home.join(DATABASE);
    let mut log = database.clone().into_os_string();
    log.push("-wal");
    let log = PathBuf::from(log);
    let shown = database.display();
    match start(&database, DATABASE_START.len()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::Ok(format!("{shown} (made when it is needed)"));
        }
        Err(error) => {
            return Finding::Fail(format!("{shown}: {error}; make it readable"));
        }
        Ok(found) if found != DATABASE_START => return damaged(&database),
        Ok(_) => {}
    }
    match start(&log, LOG_START.len()) {
        Ok(found) if !found.is_empty() && found != LOG_START => damaged(&log),
        Ok(_) | Err(_) => Finding::Ok(shown.to_string()),
    }
}

fn damaged(file: &Path) -> Finding {
    Finding::Fail(format!(
        "{} was overwritten or cut by something else; stop the daemon and restore the database from a backup, or move it away",
        file.display()
    ))
}

/// Returns the first bytes of a file, as many as it has.
fn start(path: &Path, length: usize) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    File::open(path)?.take(limit).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_no_database_is_told_with_its_file() {
        let home = tempfile::tempdir().unwrap();
        let told = || format!("{:?}", check(home.path()));
        assert!(told().starts_with("Ok"), "{}", told());
        let database = home.path().join(DATABASE);
        let log = home.path().join(format!("{DATABASE}-wal"));
        for (start, mark) in [
            (&b""[..], "Fail"),
            (b"junk", "Fail"),
            (b"SQLite format 3\0 and more", "Ok"),
        ] {
            std::fs::write(&database, start).unwrap();
            assert!(told().starts_with(mark), "{start:?}: {}", told());
        }
        for (start, mark) in [
            (&b"junk"[..], "Fail"),
            (&[0x37, 0x7f, 0x06, 0x83], "Ok"),
            (b"", "Ok"),
        ] {
            std::fs::write(&log, start).unwrap();
            assert!(told().starts_with(mark), "{start:?}: {}", told());
        }
    }
}
