//! What was deleted is in no file of the store any more.

use std::path::Path;

use super::*;
use crate::StoredEvent;

const MARKER: &str = "a secret that somebody deleted";

/// The files of a folder that hold the marker.
fn holders(folder: &Path) -> Vec<String> {
    let mut holders = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        if bytes
            .windows(MARKER.len())
            .any(|at| at == MARKER.as_bytes())
        {
            holders.push(entry.file_name().into_string().unwrap());
        }
    }
    holders
}

/// Appends events that hold the marker: short ones, and one that fills pages of its own.
async fn fill(store: &SqliteStore, id: &str, after: u64) {
    let mut marked = batch(id, after, 40);
    marked.record.summary = Some(MARKER.to_owned());
    for (at, event) in marked.events.iter_mut().enumerate() {
        let length = if at == 20 { 2_000 } else { 3 };
        *event = StoredEvent {
            json: format!("{{\"text\":\"{}\"}}", MARKER.repeat(length)).into(),
            ..event.clone()
        };
    }
    store.append(marked).await.unwrap();
}

#[tokio::test]
async fn a_deleted_session_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    store.append(batch("kept", 0, 30)).await.unwrap();
    fill(&store, "gone", 0).await;
    assert_ne!(holders(folder.path()), [""; 0]);
    assert!(store.delete(&"gone".into()).await.unwrap());
    // The writer tidies up before it takes the next write.
    store.append(batch("kept", 30, 1)).await.unwrap();
    assert_eq!(holders(folder.path()), [""; 0]);
    fill(&store, "cut", 0).await;
    let record = batch("cut", 0, 0).record;
    store.truncate(record, Seq(0)).await.unwrap();
    store
        .put_fact("scope", MARKER, Some(MARKER.into()))
        .await
        .unwrap();
    store.put_fact("scope", MARKER, None).await.unwrap();
    store.append(batch("kept", 31, 1)).await.unwrap();
    assert_eq!(holders(folder.path()), [""; 0]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_reader_that_uses_the_log_only_delays_that() {
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    fill(&store, "gone", 0).await;
    let reader = rusqlite::Connection::open(folder.path().join("loopd.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT * FROM session")
        .unwrap();
    assert!(store.delete(&"gone".into()).await.unwrap());
    store.append(batch("kept", 0, 1)).await.unwrap();
    assert_ne!(holders(folder.path()), [""; 0]);
    reader.execute_batch("COMMIT").unwrap();
    store.append(batch("kept", 1, 1)).await.unwrap();
    store.append(batch("kept", 2, 1)).await.unwrap();
    assert_eq!(holders(folder.path()), [""; 0]);
    store.close().await.unwrap();
}

#[tokio::test]
async fn what_an_earlier_version_deleted_is_cleared_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loopd.db");
    let store = in_folder(&folder).await;
    fill(&store, "gone", 0).await;
    store.close().await.unwrap();
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "PRAGMA secure_delete = OFF; DELETE FROM event; DELETE FROM session;
         DELETE FROM meta WHERE key = 'free_pages_cleared'",
    )
    .unwrap();
    old.close().unwrap();
    assert_eq!(holders(folder.path()), ["loopd.db"]);
    Disk::open(Location::File(path), STEPS)
        .unwrap()
        .close()
        .unwrap();
    assert_eq!(holders(folder.path()), [""; 0]);
}
