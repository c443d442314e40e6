//! The kinds of failures, and that none of them shows SQLite to those outside.

use std::error::Error;

use rusqlite::ffi;

use super::*;

/// The text of an error and of everything underneath it.
fn whole_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}

fn location() -> Location {
    Location::File("/home/someone/.loopd/loopd.db".into())
}

#[test]
fn every_failure_of_sqlite_has_its_kind_and_keeps_its_words_inside() {
    let kinds = [
        (ffi::SQLITE_FULL, "Full", Damage::Handle),
        (ffi::SQLITE_IOERR, "DiskFailed", Damage::Disk),
        (ffi::SQLITE_IOERR_FSYNC, "DiskFailed", Damage::Disk),
        (ffi::SQLITE_READONLY, "ReadOnly", Damage::Handle),
        (ffi::SQLITE_PERM, "ReadOnly", Damage::Handle),
        (ffi::SQLITE_BUSY, "Busy", Damage::Group),
        (ffi::SQLITE_LOCKED, "Busy", Damage::Group),
        (ffi::SQLITE_CORRUPT, "Corrupt", Damage::Handle),
        (ffi::SQLITE_NOTADB, "Corrupt", Damage::Handle),
        (ffi::SQLITE_CANTOPEN, "Unavailable", Damage::Handle),
        (ffi::SQLITE_CONSTRAINT, "Rejected", Damage::Write),
        (ffi::SQLITE_TOOBIG, "Rejected", Damage::Write),
        (ffi::SQLITE_NOMEM, "Failed", Damage::Disk),
        (ffi::SQLITE_INTERNAL, "Failed", Damage::Disk),
        // The text below says that a table is missing.
        (ffi::SQLITE_ERROR, "Corrupt", Damage::Handle),
    ];
    for (code, kind, spoils) in kinds {
        let detail = "no such table: session in /home/someone/.loopd/loopd.db-wal";
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(detail.into()));
        let error = Failure::from(failure).of(&location());
        let shown = format!("{error:?}: {}", whole_text(&error));
        assert!(shown.starts_with(&format!("{kind} {{")), "{code}: {shown}");
        assert_eq!(damage(&error), spoils, "{code}");
        for word in [
            "rusqlite",
            "SqliteFailure",
            "SQLITE",
            "loopd.db-wal",
            "no such table",
        ] {
            assert!(!shown.contains(word), "{code} shows {word}: {shown}");
        }
        assert!(shown.contains(&format!("database error {code}")), "{shown}");
    }
}

#[test]
fn an_error_after_the_start_names_the_folder_and_one_at_the_start_the_file() {
    let full = || Failure::File(io::ErrorKind::StorageFull.into()).of(&location());
    assert_eq!(
        full().to_string(),
        "no space is left for the store in /home/someone/.loopd; free some, no restart is needed"
    );
    let error = OpenError::new(&location(), full());
    assert_eq!(
        error.to_string(),
        "no space is left for the store in /home/someone/.loopd; free some, no restart is needed \
         (the file is /home/someone/.loopd/loopd.db)"
    );
    assert_eq!(error.source().unwrap().to_string(), "no storage space");
    let error = OpenError::Foreign {
        path: location().path().to_owned(),
    };
    let error = error.after_start(&location());
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(!whole_text(&error).contains("loopd.db"), "{error}");
}
