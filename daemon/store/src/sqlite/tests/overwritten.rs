//! A database file that something else overwrites or empties under the open store.

use std::io::Write;
use std::path::Path;

use super::*;

/// Overwrites a file in place: with zeroes, with other bytes, or with nothing.
fn overwrite(path: &Path, with: Option<u8>) {
    let length = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    match with {
        Some(byte) => file.write_all(&vec![byte; length]).unwrap(),
        None => file.set_len(0).unwrap(),
    }
    file.sync_all().unwrap();
}

/// Whether an answer says that the store is damaged, and which file it is.
fn is_told<T>(answer: &Result<T, StoreError>) -> bool {
    match answer {
        Err(error @ StoreError::Corrupt { .. }) => error.to_string().contains("loopd.db"),
        Ok(_) | Err(_) => false,
    }
}

#[tokio::test]
async fn a_database_that_is_overwritten_is_damaged_and_not_empty() {
    let mut wrong = Vec::new();
    for (how, with) in [
        ("zeroed", Some(0)),
        ("garbled", Some(b'x')),
        ("emptied", None),
    ] {
        for is_used in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let store = in_folder(&folder).await;
            for id in ["one", "two"] {
                store.append(batch(id, 0, 200)).await.unwrap();
            }
            store.close().await.unwrap();
            let store = in_folder(&folder).await;
            if is_used {
                store.append(batch("one", 200, 1)).await.unwrap();
                store.load(&"two".into()).await.unwrap().unwrap();
            }
            overwrite(&folder.path().join("loopd.db"), with);
            let mut note = |what: &str, fits: bool, answer: String| {
                if !fits {
                    let answer: String = answer.chars().take(200).collect();
                    wrong.push(format!("{how}, used {is_used}: {what}: {answer}"));
                }
            };
            // What is still in memory may be answered; nothing may be missing.
            for round in 0..2 {
                let record = store.record(&"two".into()).await;
                let fits = matches!(&record, Ok(Some(it)) if it.event_count == 200);
                note(
                    "record",
                    fits || is_told(&record),
                    format!("{round} {record:?}"),
                );
                let load = store.load(&"two".into()).await;
                let fits = matches!(&load, Ok(Some((_, events))) if events.len() == 200);
                note("load", fits || is_told(&load), format!("{round} {load:?}"));
                let list = store.list().await;
                let fits = matches!(&list, Ok(all) if all.len() == 2);
                note("list", fits || is_told(&list), format!("{round} {list:?}"));
                let append = store.append(batch("two", 200, 1)).await;
                note("append", is_told(&append), format!("{round} {append:?}"));
                let new = store.append(batch("new", 0, 1)).await;
                note("new", is_told(&new), format!("{round} {new:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What something else does to a file in place.
#[derive(Debug, Clone, Copy)]
enum Change {
    Garble,
    Empty,
    /// As an older copy of the file would be.
    Halve,
    GarbleStart,
}

fn change(path: &Path, how: Change) {
    match how {
        Change::Garble => overwrite(path, Some(b'x')),
        Change::Empty => overwrite(path, None),
        Change::Halve => {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() / 8192 * 4096)
                .unwrap();
        }
        Change::GarbleStart => {
            let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.write_all(&[b'x'; 100]).unwrap();
        }
    }
}

/// The pages of a session that is in use are in memory, so that SQLite itself notices nothing.
#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_was_changed_under_a_session_in_use() {
    let mut wrong = Vec::new();
    for file in ["loopd.db", "loopd.db-wal"] {
        for how in [
            Change::Garble,
            Change::Empty,
            Change::Halve,
            Change::GarbleStart,
        ] {
            if file == "loopd.db-wal" && matches!(how, Change::Halve) {
                // The first half is as it was, and the store writes on behind it.
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let store = in_folder(&folder).await;
            store.append(batch("one", 0, 200)).await.unwrap();
            store.close().await.unwrap();
            let store = in_folder(&folder).await;
            store.load(&"one".into()).await.unwrap().unwrap();
            store.append(batch("one", 200, 1)).await.unwrap();
            change(&folder.path().join(file), how);
            for next in 201..204 {
                let append = store.append(batch("one", next, 1)).await;
                if !is_told(&append) {
                    wrong.push(format!("{file} {how:?}: {append:?}"));
                }
            }
            let closed = store.close().await;
            if closed.is_ok() {
                wrong.push(format!("{file} {how:?}: closed as if all were well"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_database_that_was_emptied_is_not_taken_for_a_new_one_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = in_folder(&folder).await;
    store.append(batch("one", 0, 3)).await.unwrap();
    overwrite(&path, None);
    store.append(batch("one", 3, 1)).await.unwrap_err();
    store.close().await.unwrap_err();
    let log = folder.path().join("loopd.db-wal");
    assert!(
        std::fs::metadata(&log).unwrap().len() > 0,
        "the log is kept"
    );
    let opened = SqliteStore::open(Location::File(path.clone())).await;
    let told = opened.err().unwrap().to_string();
    assert!(
        told.contains("damaged") && told.contains("loopd.db"),
        "{told}"
    );
    assert!(
        std::fs::metadata(&log).unwrap().len() > 0,
        "the log is kept"
    );
}

#[tokio::test]
async fn damage_is_found_in_pages_that_nobody_has_read() {
    use std::os::unix::fs::FileExt;
    use std::time::Duration;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let within = Duration::from_secs(30);
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    for session in ["one", "two", "three"] {
        store.append(batch(session, 0, 200)).await.unwrap();
    }
    let healthy = store.check(within).await.unwrap();
    assert!(healthy.complete && healthy.damage.is_empty(), "{healthy:?}");
    store.close().await.unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    // The last page: nothing has to read it to open the store.
    file.write_all_at(&[0xff; 4096], length - 4096).unwrap();
    let store = SqliteStore::open(Location::File(path)).await.unwrap();
    let found = match store.check(within).await {
        Ok(found) => !found.damage.is_empty(),
        Err(error) => matches!(error, StoreError::Corrupt { .. }),
    };
    assert!(found);
}

#[tokio::test]
async fn an_emptied_database_is_not_taken_for_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = SqliteStore::open(Location::File(path.clone()))
        .await
        .unwrap();
    store.append(batch("one", 0, 3)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    std::fs::write(&path, "").unwrap();
    let refused = SqliteStore::open(Location::File(path.clone())).await;
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("is damaged; restore it from a backup or move it away"),
        "{error}"
    );
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    // Who deletes it wants to begin anew. A file that never was a database is one that was just made.
    std::fs::remove_file(&path).unwrap();
    SqliteStore::open(Location::File(path)).await.unwrap();
    let other = folder.path().join("other.db");
    std::fs::write(&other, "").unwrap();
    SqliteStore::open(Location::File(other)).await.unwrap();
}
