//! Appending: what is kept, and what is refused as a whole.

use futures::future::join_all;
use loopd_proto::id::Seq;

use super::{Subject, Verdict, batch, ensure, ensure_eq, ensure_fails, event, log, record};
use crate::{Batch, StoreError, StoredEvent, Visibility};

pub(super) async fn what_is_appended_is_loaded_unchanged(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let mut wanted = record("one");
    wanted.name = Some("naïve ☃ name".into());
    wanted.summary = Some(String::new());
    wanted.parent = Some("zero".into());
    wanted.branch = Some("main".into());
    wanted.agent = Some("task".into());
    let large = "x".repeat(1 << 20);
    let texts = ["{}", "{\"a\": \"\u{0}\u{1F600}\\u0000\"}", &large];
    let events: Vec<_> = texts
        .iter()
        .zip(1..)
        .map(|(text, seq)| StoredEvent {
            visible: match seq {
                2 => Visibility::Internal,
                _ => Visibility::Public,
            },
            ..event(seq, text)
        })
        .collect();
    let new = Batch {
        record: wanted.clone(),
        after: Seq::START,
        events: events.clone(),
    };
    store.append(new).await?;
    wanted.event_count = 3;
    let loaded = store.load(&"one".into()).await?;
    ensure(
        loaded.as_ref() == Some(&(wanted.clone(), events)),
        "record and events are loaded as they were appended",
    )?;
    let found = store.record(&"one".into()).await?;
    ensure_eq(found, Some(wanted), "the record")?;
    ensure_eq(store.load(&"two".into()).await?, None, "an unknown log")?;
    ensure_eq(
        store.record(&"two".into()).await?,
        None,
        "an unknown record",
    )
}

pub(super) async fn a_batch_must_start_where_the_log_ends(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 2)).await?;
    for (id, after, end) in [("one", 1, 2), ("one", 3, 2), ("new", 7, 0)] {
        let answer = store.append(batch(id, after, 1)).await;
        let is_right = |error: &StoreError| {
            matches!(error, StoreError::Conflict { session, expected, found }
                if session.as_str() == id && expected.0 == after && found.0 == end)
        };
        ensure_fails(&answer, is_right, "a conflict that names both positions")?;
    }
    ensure_eq(log(store, "one").await?, ["one 1", "one 2"], "the log")?;
    ensure_eq(
        store.record(&"new".into()).await?,
        None,
        "a refused session",
    )
}

pub(super) async fn a_batch_that_conflicts_fails_alone(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let answers = join_all([
        store.append(batch("one", 0, 2)),
        store.append(batch("one", 1, 1)),
        store.append(batch("two", 0, 1)),
        store.append(batch("one", 2, 1)),
    ])
    .await;
    let done: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    ensure_eq(done, [true, false, true, true], "writes that are done")?;
    let wanted = ["one 1", "one 2", "one 3"];
    ensure_eq(log(store, "one").await?, wanted, "the log")?;
    ensure_eq(log(store, "two").await?, ["two 1"], "the other log")
}

pub(super) async fn a_batch_with_a_gap_changes_nothing(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let mut gap = batch("one", 0, 3);
    gap.events.remove(1);
    let is_gap = |error: &StoreError| {
        matches!(
            error,
            StoreError::Gap { expected, found, .. } if (expected.0, found.0) == (2, 3)
        )
    };
    ensure_fails(&store.append(gap).await, is_gap, "the gap")?;
    ensure_eq(store.list().await?, [], "the sessions")?;
    store.append(batch("one", 0, 1)).await?;
    ensure_eq(log(store, "one").await?, ["one 1"], "the log")
}

pub(super) async fn a_batch_without_events_changes_the_record_only(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 2)).await?;
    let mut renamed = batch("one", 2, 0);
    renamed.record.name = Some("renamed".into());
    // The store counts by itself.
    renamed.record.event_count = 99;
    store.append(renamed.clone()).await?;
    renamed.record.event_count = 2;
    let found = store.record(&"one".into()).await?;
    ensure_eq(found, Some(renamed.record), "the record")?;
    ensure_eq(log(store, "one").await?.len(), 2, "events in the log")
}
