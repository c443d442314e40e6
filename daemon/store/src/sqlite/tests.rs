//! What is special to SQLite behind a queue: groups, bounds, files, and the end of the store.

mod contract;
mod erased;
mod overwritten;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::join_all;
use tokio::task::JoinSet;

use super::*;
use crate::contract::{batch, event};

async fn in_folder(folder: &tempfile::TempDir) -> SqliteStore {
    let location = Location::File(folder.path().join("loopd.db"));
    SqliteStore::open(location).await.unwrap()
}

#[tokio::test]
async fn appends_of_many_tasks_share_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(in_folder(&folder).await);
    let mut tasks = JoinSet::new();
    for task in 0..200 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = format!("session-{}", task % 20);
            let after = task / 20;
            store.append(batch(&id, after, 1)).await
        });
    }
    for answer in tasks.join_all().await {
        answer.unwrap();
    }
    let Stats {
        commits,
        writes,
        reopened,
    } = store.stats();
    assert_eq!((writes, reopened), (200, 0));
    assert!(
        commits <= 3,
        "{commits} commits for 200 appends that waited together"
    );
    for record in store.list().await.unwrap() {
        assert_eq!(record.event_count, 10);
        let (_, events) = store.load(&record.id).await.unwrap().unwrap();
        assert_eq!(events.len(), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_read_sees_what_was_acknowledged_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(in_folder(&folder).await);
    let mut sessions = JoinSet::new();
    for session in 0..8 {
        let store = Arc::clone(&store);
        sessions.spawn(async move {
            let id = format!("session-{session}");
            for seq in 0..20 {
                store.append(batch(&id, seq, 1)).await.unwrap();
                let (record, events) = store.load(&id.as_str().into()).await.unwrap().unwrap();
                assert_eq!(record.event_count, seq + 1);
                assert_eq!(events.len() as u64, seq + 1);
            }
        });
    }
    sessions.join_all().await;
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_takes_more_when_it_is_empty() {
    let store = SqliteStore::open(Location::Memory).await.unwrap();
    // The writer cannot run before this test awaits.
    let queued: Vec<_> = (0..1024)
        .map(|seq| store.append(batch("one", seq, 1)))
        .collect();
    let refused = store.append(batch("one", 1024, 1)).now_or_never().unwrap();
    assert!(
        matches!(refused, Err(StoreError::Overloaded { waiting: 1024, .. })),
        "{refused:?}"
    );
    for answer in join_all(queued).await {
        answer.unwrap();
    }
    store.append(batch("one", 1024, 1)).await.unwrap();
    assert_eq!(
        store
            .record(&"one".into())
            .await
            .unwrap()
            .unwrap()
            .event_count,
        1025
    );
}

#[tokio::test]
async fn the_queue_is_bounded_by_bytes_too() {
    const MEBIBYTE: usize = 1 << 20;
    let store = SqliteStore::open(Location::Memory).await.unwrap();
    let large = |id: &str, size: usize| {
        let mut new = batch(id, 0, 1);
        new.events = vec![event(1, &"x".repeat(size))];
        new
    };
    let first = store.append(large("one", 40 * MEBIBYTE));
    let refused = store
        .append(large("two", 30 * MEBIBYTE))
        .now_or_never()
        .unwrap();
    assert!(
        matches!(refused, Err(StoreError::Overloaded { waiting: 1, bytes }) if bytes > 40 * MEBIBYTE),
        "{refused:?}"
    );
    let never = store.append(large("three", 64 * MEBIBYTE)).await;
    assert!(
        matches!(never, Err(StoreError::TooLarge { .. })),
        "{never:?}"
    );
    first.await.unwrap();
    store.append(large("two", 30 * MEBIBYTE)).await.unwrap();
    assert_eq!(store.size_of(&"two".into()).await.unwrap(), 30 << 20);
}

#[tokio::test]
async fn dropping_the_store_still_commits_what_was_queued() {
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    let queued: Vec<_> = (0..300)
        .map(|seq| store.append(batch("one", seq, 1)))
        .collect();
    let finished = store.finished.clone();
    drop(store);
    for answer in join_all(queued).await {
        answer.unwrap();
    }
    finished.await.unwrap();
    let again = in_folder(&folder).await;
    assert_eq!(
        again
            .record(&"one".into())
            .await
            .unwrap()
            .unwrap()
            .event_count,
        300
    );
}

#[tokio::test]
async fn a_closed_store_leaves_the_database_and_its_mark() {
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    store.append(batch("one", 0, 3)).await.unwrap();
    store.load(&"one".into()).await.unwrap();
    store.close().await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["loopd.db", "loopd.db-made"]);
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    store.append(batch("one", 0, 3)).await.unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
    }
}

#[tokio::test]
async fn the_files_stay_near_the_size_of_the_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let store = in_folder(&folder).await;
    let mut transcript = 0;
    for session in ["one", "two", "three"] {
        for round in 0..20_u64 {
            let mut next = batch(session, round * 50, 50);
            for (index, event) in next.events.iter_mut().enumerate() {
                // From 200 bytes to some 9 kB, most of them small: the shape of real logs.
                event.json = "x".repeat(200 + index.pow(3) / 13).into();
                transcript += event.json.len() as u64;
            }
            store.append(next).await.unwrap();
        }
    }
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("loopd.db-wal") < 6 << 20, "{}", size("loopd.db-wal"));
    store.close().await.unwrap();
    let database = size("loopd.db");
    assert!(
        database * 10 < transcript * 16,
        "{database} bytes for {transcript} bytes of events"
    );
}
