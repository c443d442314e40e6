//! Checks the database of the home: that its files begin as they should, and, by the daemon that uses
//! it, that nothing in it is damaged.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use loopd_sdk::proto::home_paths::DATABASE;

use super::Finding;
use crate::app::App;
use crate::terminal::sanitize;

/// How every database begins.
const DATABASE_START: &[u8] = b"SQLite format 3\0";

/// How every write-ahead log begins, but for a last bit.
const LOG_START: &[u8] = &[0x37, 0x7f, 0x06];

/// How many findings about damage are shown.
const SHOWN: usize = 3;

/// Checks the database as far as that is possible.
pub(super) async fn check(app: &App, home: &Path) -> Finding {
    let database = home.join(DATABASE);
    let before = beginnings(home);
    if !matches!(before, Finding::Ok(_)) || !database.exists() {
        return before;
    }
    let shown = database.display();
    // That no daemon can be asked is another finding.
    let Ok(client) = app.connect().await else {
        return Finding::Warn(format!(
            "{shown} was not looked through: no daemon could be asked"
        ));
    };
    let checked = client.check_database().await;
    client.close().await;
    match checked {
        Err(error) => Finding::Fail(format!("{shown}: {}", sanitize(&error.to_string()))),
        Ok(found) if !found.damage.is_empty() => {
            let lines: Vec<String> = found.damage.iter().map(|it| sanitize(it)).collect();
            let more = match lines.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let lines: Vec<&str> = lines.iter().take(SHOWN).map(|it| it.trim()).collect();
            Finding::Fail(format!(
                "{shown} is damaged ({}{more}); stop the daemon and restore it from a backup, or move it away",
                lines.join("; ").replace('\n', " ")
            ))
        }
        Ok(found) if !found.complete => Finding::Warn(format!(
            "{shown}: no damage was found in half a minute, in which it was not looked through"
        )),
        Ok(_) => Finding::Ok(format!("{shown} is not damaged")),
    }
}

/// Checks how the database and its write-ahead log begin.
fn beginnings(home: &Path) -> Finding {
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
        let told = || format!("{:?}", beginnings(home.path()));
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
