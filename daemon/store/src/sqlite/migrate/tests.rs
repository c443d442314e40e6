//! Old, new and half-migrated databases.

use super::*;
use crate::contract::batch;
use crate::sqlite::change::Change;
use crate::sqlite::disk::Disk;

/// The steps of a later build.
const LATER: Steps = &[
    include_str!("../sql/0001_sessions.sql"),
    include_str!("../sql/0002_agents.sql"),
    "ALTER TABLE session ADD COLUMN colour TEXT; CREATE TABLE later (x INTEGER) STRICT;",
];

/// The same with a mistake at the end.
const BROKEN: Steps = &[
    include_str!("../sql/0001_sessions.sql"),
    include_str!("../sql/0002_agents.sql"),
    "ALTER TABLE session ADD COLUMN colour TEXT; CREATE TABLE later (x INTEGER) STRICT;
     INSERT INTO nowhere VALUES (1);",
];

/// A database of today's schema with three events in it.
fn database() -> (tempfile::TempDir, Location) {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("loopd.db"));
    let mut disk = open(&location, STEPS).unwrap();
    for answer in disk.commit(&[&Change::Append(batch("one", 0, 3))]).answers {
        answer.unwrap();
    }
    disk.close().unwrap();
    (folder, location)
}

/// Opens as a build with these steps would.
fn open(location: &Location, steps: Steps) -> Result<Disk, OpenError> {
    Disk::open(location.clone(), steps)
}

fn count(path: &Path, query: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(query, [], |row| row.get(0)).unwrap()
}

const VERSION: &str = "SELECT user_version FROM pragma_user_version";
const EVENTS: &str = "SELECT count(*) FROM event";

fn names(folder: &tempfile::TempDir) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn an_older_database_keeps_its_rows_and_a_backup() {
    let (folder, location) = database();
    open(&location, LATER).unwrap().close().unwrap();
    let path = location.path();
    let old = newest(STEPS);
    assert_eq!(count(path, VERSION), i64::from(old) + 1);
    assert_eq!(count(path, EVENTS), 3);
    assert_eq!(
        count(path, "SELECT count(*) FROM session WHERE colour IS NULL"),
        1
    );

    let kept = beside(path, &format!(".v{old}.backup"));
    assert_eq!(count(&kept, VERSION), i64::from(old));
    assert_eq!(count(&kept, EVENTS), 3);
    assert_eq!(
        names(&folder),
        ["loopd.db", "loopd.db-made", "loopd.db.v2.backup"]
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&kept).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_step_that_fails_leaves_the_old_schema_and_can_be_tried_again() {
    let (folder, location) = database();
    let path = location.path();
    // A kill in the middle of an earlier attempt left half a backup.
    fs::write(beside(path, ".v2.backup.partial"), "half").unwrap();
    open(&location, BROKEN).unwrap_err();
    assert_eq!(count(path, VERSION), i64::from(newest(STEPS)));
    assert_eq!(
        count(
            path,
            "SELECT count(*) FROM sqlite_schema WHERE name = 'later'"
        ),
        0
    );
    assert_eq!(count(path, EVENTS), 3);

    open(&location, LATER).unwrap().close().unwrap();
    assert_eq!(count(path, VERSION), i64::from(newest(LATER)));
    assert_eq!(count(path, EVENTS), 3);
    assert_eq!(
        names(&folder),
        ["loopd.db", "loopd.db-made", "loopd.db.v2.backup"]
    );
}

#[test]
fn a_newer_database_is_refused_naming_both_versions_and_left_alone() {
    let (_folder, location) = database();
    let path = location.path();
    let set =
        "PRAGMA user_version = 41; UPDATE meta SET value = '9.8.7' WHERE key = 'loopd_version'";
    Connection::open(path).unwrap().execute_batch(set).unwrap();
    let before = fs::read(path).unwrap();
    let error = open(&location, STEPS).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{} has schema 41, made by loopd 9.8.7, but this is loopd {RUNNING}, which knows schemas up to 2; \
             start a loopd as new as the one that made it, or choose another home",
            path.display()
        )
    );
    assert_eq!(fs::read(path).unwrap(), before);
}

#[test]
fn a_database_of_today_is_opened_without_writing() {
    let (folder, location) = database();
    let before = fs::read(location.path()).unwrap();
    open(&location, STEPS).unwrap().close().unwrap();
    assert_eq!(fs::read(location.path()).unwrap(), before);
    assert_eq!(names(&folder), ["loopd.db", "loopd.db-made"]);
}

#[test]
fn a_start_that_was_killed_before_the_first_step_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL")
        .unwrap();
    drop(connection);
    open(&Location::File(path.clone()), STEPS).unwrap();
    assert_eq!(count(&path, VERSION), i64::from(newest(STEPS)));
}

#[test]
fn the_backup_has_what_was_only_in_the_write_ahead_log() {
    let (folder, location) = database();
    let mut disk = open(&location, STEPS).unwrap();
    for answer in disk.commit(&[&Change::Append(batch("one", 3, 2))]).answers {
        answer.unwrap();
    }
    // The files as a kill at this moment leaves them.
    let killed = tempfile::tempdir().unwrap();
    for name in ["loopd.db", "loopd.db-wal"] {
        fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
    }
    let path = killed.path().join("loopd.db");
    open(&Location::File(path.clone()), LATER).unwrap();
    assert_eq!(count(&path, EVENTS), 5);
    assert_eq!(count(&beside(&path, ".v2.backup"), EVENTS), 5);
}
