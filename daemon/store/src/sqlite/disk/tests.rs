//! Files that are not ours or cannot be used, a disk that is full, and a handle that lost trust.

use std::fs;

use super::*;
use crate::contract::{batch, event};
use crate::sqlite::migrate::STEPS;
use crate::tests::SmallDisk;
use crate::{SqliteStore, Store};

fn open_error(path: &Path) -> OpenError {
    match Disk::open(Location::File(path.to_owned()), STEPS) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains(&path.display().to_string()), "{text}");
            error
        }
    }
}

fn kind_of(error: OpenError) -> StoreError {
    match error {
        OpenError::Unusable { error, .. } => error,
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_a_database_is_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let text = "not a database, whatever its name says; ".repeat(200);
    fs::write(&path, &text).unwrap();
    let error = kind_of(open_error(&path));
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_database_of_another_program_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    for setup in ["PRAGMA application_id = 7", "CREATE TABLE theirs (x)"] {
        let path = folder.path().join(format!("{}.db", setup.len()));
        Connection::open(&path)
            .unwrap()
            .execute_batch(setup)
            .unwrap();
        let before = fs::read(&path).unwrap();
        let error = open_error(&path);
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_place_that_cannot_hold_a_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = kind_of(open_error(&folder.path().join("missing/loopd.db")));
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    let error = kind_of(open_error(folder.path()));
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}

#[test]
fn a_read_only_home_is_told_before_anything_starts() {
    let Some(disk) = SmallDisk::mount("size=1m") else {
        return;
    };
    disk.make_read_only();
    let error = kind_of(open_error(&disk.path("loopd.db")));
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[test]
fn a_database_that_became_read_only_is_told_at_the_start() {
    let Some(disk) = SmallDisk::mount("size=1m") else {
        return;
    };
    let path = disk.path("loopd.db");
    Disk::open(Location::File(path.clone()), STEPS)
        .unwrap()
        .close()
        .unwrap();
    disk.make_read_only();
    let error = kind_of(open_error(&path));
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
}

#[tokio::test]
async fn a_full_disk_fails_writes_only_and_only_while_it_is_full() {
    let Some(disk) = SmallDisk::mount("size=4m") else {
        return;
    };
    let location = Location::File(disk.path("loopd.db"));
    let store = SqliteStore::open(location.clone()).await.unwrap();
    store.append(batch("one", 0, 10)).await.unwrap();
    // A disk is full when nothing more can be written to it, not when one large write failed.
    let filler = disk.path("filler");
    let mut rest = fs::File::create(&filler).unwrap();
    while io::Write::write(&mut rest, &[0; 4096]).is_ok_and(|written| written > 0) {}

    let large = |after: u64| {
        let mut next = batch("one", after, 1);
        next.events = vec![event(after + 1, &"x".repeat(1 << 20))];
        next
    };
    for _ in 0..3 {
        let error = store.append(large(10)).await.unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        let folder = disk.path("").display().to_string();
        assert!(
            error.to_string().contains(folder.trim_end_matches('/')),
            "{error}"
        );
        let (record, events) = store.load(&"one".into()).await.unwrap().unwrap();
        assert_eq!((record.event_count, events.len()), (10, 10));
    }

    fs::remove_file(&filler).unwrap();
    drop(rest);
    store.append(large(10)).await.unwrap();
    assert!(store.stats().reopened >= 1);
    store.close().await.unwrap();

    let again = SqliteStore::open(location).await.unwrap();
    let (_, events) = again.load(&"one".into()).await.unwrap().unwrap();
    assert_eq!(events.len(), 11);
    again.close().await.unwrap();
}

#[test]
fn a_handle_without_trust_is_replaced_and_the_log_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let mut disk = Disk::open(Location::File(path.clone()), STEPS).unwrap();
    let append = |disk: &mut Disk, after| {
        let change = Change::Append(batch("one", after, 1));
        let Group { answers, handle } = disk.commit(&[&change]);
        assert!(matches!(answers.as_slice(), [Ok(1)]), "{answers:?}");
        handle
    };
    assert_eq!(append(&mut disk, 0), Handle::Kept);
    disk.trust = Trust::Failed;
    assert_eq!(append(&mut disk, 1), Handle::Replaced);
    disk.trust = Trust::Doubtful;
    assert_eq!(append(&mut disk, 2), Handle::Replaced);
    // Only the last commit is in the log: what was there before went into the database.
    let log = checkpoint(disk.connection().unwrap(), "NOOP").unwrap();
    assert!(log.pages < 4 && log.folded == 0, "{} pages", log.pages);
    assert_eq!(append(&mut disk, 3), Handle::Kept);
}

#[test]
fn a_database_that_vanished_is_not_replaced_by_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let mut disk = Disk::open(Location::File(path.clone()), STEPS).unwrap();
    fs::remove_file(&path).unwrap();
    disk.trust = Trust::Failed;
    let change = Change::Append(batch("one", 0, 1));
    let Group { answers, .. } = disk.commit(&[&change]);
    assert!(
        matches!(answers.as_slice(), [Err(StoreError::Replaced { .. })]),
        "{answers:?}"
    );
    assert!(!path.exists());
}

#[test]
fn a_grown_log_is_folded_back_by_tidying() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let mut disk = Disk::open(Location::File(path), STEPS).unwrap();
    let mut next = batch("one", 0, 1);
    next.events = vec![event(1, &"x".repeat(5 << 20))];
    disk.commit(&[&Change::Append(next)]);
    let unfolded = |disk: &mut Disk| {
        let log = checkpoint(disk.connection().unwrap(), "NOOP").unwrap();
        log.pages - log.folded
    };
    assert!(unfolded(&mut disk) > CHECKPOINT_PAGES);
    disk.tidy();
    assert_eq!(unfolded(&mut disk), 0);
}

#[tokio::test]
async fn a_damaged_page_is_damage_and_the_error_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    for session in 0..40 {
        let id = format!("session-{session}");
        store.append(batch(&id, 0, 40)).await.unwrap();
    }
    store.close().await.unwrap();
    // Every page but the first, which has the schema.
    let mut bytes = fs::read(&path).unwrap();
    bytes
        .iter_mut()
        .skip(4 * 4096)
        .for_each(|byte| *byte = 0xA5);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    let mut damaged = 0;
    for session in 0..40 {
        let id = format!("session-{session}").as_str().into();
        match store.load(&id).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                assert!(
                    error.to_string().contains(&path.display().to_string()),
                    "{error}"
                );
                damaged += 1;
            }
            // A session on pages that are whole.
            Ok(Some((_, events))) => assert_eq!(events.len(), 40),
            other => panic!("session {session} is reported as {other:?}"),
        }
    }
    assert!(damaged > 0);
}

#[tokio::test]
async fn nothing_is_acknowledged_into_a_deleted_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    store.append(batch("one", 0, 1)).await.unwrap();
    let aside = folder.path().join("aside.db");
    fs::rename(&path, &aside).unwrap();
    for _ in 0..2 {
        let error = store.append(batch("one", 1, 1)).await.unwrap_err();
        assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
        assert!(error.to_string().contains("loopd.db"), "{error}");
    }
    fs::rename(&aside, &path).unwrap();
    // The event that was refused may be in the log: whoever writes has to load first.
    let (_, events) = store.load(&"one".into()).await.unwrap().unwrap();
    store
        .append(batch("one", events.len() as u64, 1))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_deletion_of_the_write_ahead_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    store.append(batch("one", 0, 3)).await.unwrap();
    fs::remove_file(folder.path().join("loopd.db-wal")).unwrap();
    let error = store.append(batch("one", 3, 1)).await.unwrap_err();
    assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
    store.close().await.unwrap();
    let again = SqliteStore::open(Location::File(path)).await.unwrap();
    let (_, events) = again.load(&"one".into()).await.unwrap().unwrap();
    assert!(events.len() >= 3, "{} events", events.len());
}
