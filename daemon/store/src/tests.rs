//! What every [`Store`] promises, checked on a file and in memory; and what the other tests of
//! this folder build their cases from.

mod fixture;

use futures::future::join_all;
use serde_json::json;

use super::*;
pub(super) use fixture::{SmallDisk, batch, event, record};

/// Runs a test on a fresh store of each kind.
async fn on_each(test: impl AsyncFn(&dyn Store)) {
    let folder = tempfile::tempdir().unwrap();
    for location in [
        Location::File(folder.path().join("loopd.db")),
        Location::Memory,
    ] {
        let store = SqliteStore::open(location).await.unwrap();
        test(&store).await;
        store.close().await.unwrap();
    }
}

/// The texts of a session's log, in order.
async fn log(store: &dyn Store, id: &str) -> Vec<String> {
    let Some((_, events)) = store.load(&id.into()).await.unwrap() else {
        return Vec::new();
    };
    events.iter().map(|event| event.json.to_string()).collect()
}

#[tokio::test]
async fn what_is_appended_is_loaded_unchanged() {
    on_each(async |store| {
        let mut wanted = record("one");
        wanted.name = Some("naïve ☃ name".into());
        wanted.parent = Some("zero".into());
        wanted.branch = Some("main".into());
        let texts = [
            "{}",
            "{\"a\": \"\u{0}\u{1F600}\\u0000\"}",
            &"x".repeat(1 << 20),
        ];
        let events: Vec<_> = texts
            .iter()
            .zip(1..)
            .map(|(text, seq)| StoredEvent {
                visible: if seq == 2 {
                    Visibility::Internal
                } else {
                    Visibility::Public
                },
                ..event(seq, text)
            })
            .collect();
        let new = Batch {
            record: wanted.clone(),
            after: Seq::START,
            events: events.clone(),
        };
        store.append(new).await.unwrap();
        wanted.event_count = 3;
        let loaded = store.load(&"one".into()).await.unwrap();
        assert_eq!(loaded, Some((wanted.clone(), events)));
        assert_eq!(store.record(&"one".into()).await.unwrap(), Some(wanted));
        assert_eq!(store.load(&"two".into()).await.unwrap(), None);
        assert_eq!(store.record(&"two".into()).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn writes_keep_the_order_of_the_calls_whoever_is_polled_first() {
    on_each(async |store| {
        let first = store.append(batch("one", 0, 2));
        let second = store.append(batch("one", 2, 1));
        let third = store.append(batch("one", 3, 1));
        drop(third);
        second.await.unwrap();
        first.await.unwrap();
        store.append(batch("one", 4, 1)).await.unwrap();
        assert_eq!(
            log(store, "one").await,
            ["one 1", "one 2", "one 3", "one 4", "one 5"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_batch_that_conflicts_fails_alone() {
    on_each(async |store| {
        let answers = join_all([
            store.append(batch("one", 0, 2)),
            store.append(batch("one", 1, 1)),
            store.append(batch("new", 7, 1)),
            store.append(batch("two", 0, 1)),
            store.append(batch("one", 2, 1)),
        ])
        .await;
        let errors: Vec<_> = answers
            .iter()
            .map(|answer| answer.as_ref().err().map(ToString::to_string))
            .collect();
        let conflict = |id, found, expected| {
            Some(format!(
                "the log of session {id} ends at {found}, not at {expected} as the writer believed; \
                 load the session again"
            ))
        };
        assert_eq!(
            errors,
            [None, conflict("one", 2, 1), conflict("new", 0, 7), None, None]
        );
        assert_eq!(log(store, "one").await, ["one 1", "one 2", "one 3"]);
        assert_eq!(log(store, "two").await, ["two 1"]);
        assert!(store.record(&"new".into()).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_batch_with_a_gap_or_past_the_end_of_numbers_changes_nothing() {
    on_each(async |store| {
        let mut gap = batch("one", 0, 3);
        gap.events.remove(1);
        let error = store.append(gap).await.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::Gap {
                    expected: Seq(2),
                    found: Seq(3),
                    ..
                }
            ),
            "{error}"
        );
        assert!(store.list().await.unwrap().is_empty());
        assert!(
            store
                .read(&"one".into(), Seq(u64::MAX), 1)
                .await
                .unwrap()
                .is_empty()
        );
        store.append(batch("one", 0, 1)).await.unwrap();
        let error = store
            .truncate(record("one"), Seq(u64::MAX))
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
        assert_eq!(log(store, "one").await, ["one 1"]);
    })
    .await;
}

#[tokio::test]
async fn a_batch_without_events_changes_the_record_only() {
    on_each(async |store| {
        store.append(batch("one", 0, 2)).await.unwrap();
        let mut renamed = batch("one", 2, 0);
        renamed.record.name = Some("renamed".into());
        renamed.record.event_count = 99;
        store.append(renamed.clone()).await.unwrap();
        renamed.record.event_count = 2;
        assert_eq!(
            store.record(&"one".into()).await.unwrap(),
            Some(renamed.record)
        );
        assert_eq!(log(store, "one").await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn reading_starts_after_a_position_and_stops_at_the_limit() {
    on_each(async |store| {
        store.append(batch("one", 0, 5)).await.unwrap();
        store.append(batch("two", 0, 5)).await.unwrap();
        let read = async |after, limit| -> Vec<u64> {
            let events = store.read(&"one".into(), Seq(after), limit).await.unwrap();
            assert!(events.iter().all(|event| event.json.starts_with("one")));
            events.iter().map(|event| event.seq.0).collect()
        };
        assert_eq!(read(0, 2).await, [1, 2]);
        assert_eq!(read(2, usize::MAX).await, [3, 4, 5]);
        assert_eq!(read(5, 10).await, [0; 0]);
        assert_eq!(read(0, 0).await, [0; 0]);
        assert!(
            store
                .read(&"three".into(), Seq(0), 10)
                .await
                .unwrap()
                .is_empty()
        );
    })
    .await;
}

#[tokio::test]
async fn records_are_listed_the_last_modified_first() {
    on_each(async |store| {
        for (id, modified_ms) in [("old", 1), ("new", 3), ("middle", 2)] {
            let mut new = batch(id, 0, 1);
            new.record.modified_ms = modified_ms;
            store.append(new).await.unwrap();
        }
        let mut touched = batch("old", 1, 1);
        touched.record.modified_ms = 4;
        store.append(touched).await.unwrap();
        let listed = store.list().await.unwrap();
        let ids: Vec<_> = listed.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["old", "new", "middle"]);
    })
    .await;
}

#[tokio::test]
async fn a_prefix_finds_at_most_two_and_knows_no_wildcards() {
    on_each(async |store| {
        for id in ["abc-1", "abc-2", "abc-3", "abd", "b%d", "bcd"] {
            store.append(batch(id, 0, 1)).await.unwrap();
        }
        let find = async |prefix| -> Vec<String> {
            let ids = store.find_by_prefix(prefix).await.unwrap();
            ids.iter().map(ToString::to_string).collect()
        };
        assert_eq!(find("abc").await, ["abc-1", "abc-2"]);
        assert_eq!(find("abc-3").await, ["abc-3"]);
        assert_eq!(find("b%").await, ["b%d"]);
        assert_eq!(find("c").await, [""; 0]);
        assert_eq!(find("").await.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn deleting_removes_the_log_and_nothing_else() {
    on_each(async |store| {
        for id in ["one", "two", "three"] {
            store.append(batch(id, 0, 3)).await.unwrap();
        }
        assert!(store.delete(&"two".into()).await.unwrap());
        assert!(!store.delete(&"two".into()).await.unwrap());
        assert_eq!(store.list().await.unwrap().len(), 2);
        assert_eq!(store.size_of(&"two".into()).await.unwrap(), 0);
        assert_eq!(log(store, "one").await.len(), 3);
        assert_eq!(log(store, "three").await.len(), 3);
        store.append(batch("two", 0, 1)).await.unwrap();
        assert_eq!(log(store, "two").await, ["two 1"]);
    })
    .await;
}

#[tokio::test]
async fn truncating_removes_the_tail_and_the_log_goes_on_from_there() {
    on_each(async |store| {
        store.append(batch("one", 0, 5)).await.unwrap();
        store.append(batch("two", 0, 5)).await.unwrap();
        let mut shorter = record("one");
        shorter.summary = Some("shorter".into());
        assert_eq!(store.truncate(shorter.clone(), Seq(2)).await.unwrap(), 3);
        assert_eq!(store.truncate(shorter.clone(), Seq(2)).await.unwrap(), 0);
        shorter.event_count = 2;
        assert_eq!(
            store.record(&"one".into()).await.unwrap(),
            Some(shorter.clone())
        );
        store.append(batch("one", 2, 1)).await.unwrap();
        assert_eq!(log(store, "one").await, ["one 1", "one 2", "one 3"]);
        assert_eq!(log(store, "two").await.len(), 5);
        let error = store.truncate(shorter, Seq(4)).await.unwrap_err();
        assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
        let error = store.truncate(record("none"), Seq(0)).await.unwrap_err();
        assert!(matches!(error, StoreError::NoSession { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_fork_starts_with_the_same_events_and_then_goes_its_own_way() {
    on_each(async |store| {
        store.append(batch("one", 0, 4)).await.unwrap();
        let from = "one".into();
        assert_eq!(store.fork(record("two"), &from, Seq(3)).await.unwrap(), 3);
        assert_eq!(store.fork(record("none"), &from, Seq(0)).await.unwrap(), 0);
        store.append(batch("two", 3, 1)).await.unwrap();
        store.append(batch("one", 4, 1)).await.unwrap();
        assert_eq!(
            log(store, "two").await,
            ["one 1", "one 2", "one 3", "two 4"]
        );
        assert_eq!(log(store, "one").await.len(), 5);
        let (_, forked) = store.load(&"two".into()).await.unwrap().unwrap();
        let original = store.read(&from, Seq(0), 3).await.unwrap();
        assert_eq!(forked.get(..3), Some(original.as_slice()));

        let fork = async |id, from: &str, through| {
            store
                .fork(record(id), &from.into(), Seq(through))
                .await
                .unwrap_err()
        };
        assert!(matches!(
            fork("two", "one", 1).await,
            StoreError::SessionExists { .. }
        ));
        assert!(matches!(
            fork("six", "five", 1).await,
            StoreError::NoSession { .. }
        ));
        assert!(matches!(
            fork("six", "one", 9).await,
            StoreError::Conflict { .. }
        ));
        assert!(store.record(&"six".into()).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn facts_are_set_replaced_and_removed_by_scope() {
    on_each(async |store| {
        store
            .put_fact("trust", "/b", Some(json!(true)))
            .await
            .unwrap();
        store
            .put_fact("trust", "/a", Some(json!({"until": 3})))
            .await
            .unwrap();
        store
            .put_fact("other", "/a", Some(json!(null)))
            .await
            .unwrap();
        store
            .put_fact("trust", "/b", Some(json!([1, "two"])))
            .await
            .unwrap();
        assert_eq!(
            store.facts("trust").await.unwrap(),
            [
                ("/a".into(), json!({"until": 3})),
                ("/b".into(), json!([1, "two"]))
            ]
        );
        assert_eq!(
            store.facts("other").await.unwrap(),
            [("/a".into(), json!(null))]
        );
        store.put_fact("trust", "/a", None).await.unwrap();
        store.put_fact("trust", "/never", None).await.unwrap();
        assert_eq!(store.facts("trust").await.unwrap().len(), 1);
        assert!(store.facts("none").await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_size_of_a_session_is_the_bytes_of_its_events() {
    on_each(async |store| {
        let mut new = batch("one", 0, 2);
        new.events = vec![event(1, "☃☃"), event(2, &"x".repeat(100_000))];
        store.append(new).await.unwrap();
        store.append(batch("two", 0, 2)).await.unwrap();
        assert_eq!(store.size_of(&"one".into()).await.unwrap(), 100_006);
        assert_eq!(store.size_of(&"none".into()).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn closing_finishes_what_is_queued_and_refuses_the_rest() {
    on_each(async |store| {
        let queued: Vec<_> = (0..50)
            .map(|seq| store.append(batch("one", seq, 1)))
            .collect();
        let closed = store.close();
        let late = store.append(batch("one", 50, 1)).await;
        assert!(matches!(late, Err(StoreError::Closed)), "{late:?}");
        closed.await.unwrap();
        for answer in join_all(queued).await {
            answer.unwrap();
        }
        let refused = store.append(batch("one", 50, 1)).await;
        assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
        let refused = store.load(&"one".into()).await;
        assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
        store.close().await.unwrap();
    })
    .await;
}
