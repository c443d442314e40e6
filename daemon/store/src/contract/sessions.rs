//! Deleting, truncating and forking whole logs.

use loopd_proto::id::Seq;

use super::{Broken, Subject, Verdict, batch, ensure, ensure_eq, ensure_fails, log, record};
use crate::StoreError;

pub(super) async fn deleting_removes_the_log_and_nothing_else(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    for id in ["one", "two", "three"] {
        store.append(batch(id, 0, 3)).await?;
    }
    let two = "two".into();
    ensure(
        store.delete(&two).await?,
        "a session that was there is deleted",
    )?;
    ensure(!store.delete(&two).await?, "nothing is deleted twice")?;
    ensure_eq(store.list().await?.len(), 2, "sessions that are left")?;
    ensure_eq(store.size_of(&two).await?, 0, "bytes that are left")?;
    ensure_eq(
        log(store, "one").await?.len(),
        3,
        "events of another session",
    )?;
    ensure_eq(
        log(store, "three").await?.len(),
        3,
        "events of another session",
    )?;
    store.append(batch("two", 0, 1)).await?;
    ensure_eq(log(store, "two").await?, ["two 1"], "the log made anew")
}

pub(super) async fn truncating_removes_the_tail_only(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 5)).await?;
    store.append(batch("two", 0, 5)).await?;
    let mut shorter = record("one");
    shorter.summary = Some("shorter".into());
    let removed = store.truncate(shorter.clone(), Seq(2)).await?;
    ensure_eq(removed, 3, "events removed")?;
    let removed = store.truncate(shorter.clone(), Seq(2)).await?;
    ensure_eq(removed, 0, "events removed by a second truncation")?;
    let mut wanted = shorter.clone();
    wanted.event_count = 2;
    let found = store.record(&"one".into()).await?;
    ensure_eq(found, Some(wanted), "the record")?;
    store.append(batch("one", 2, 1)).await?;
    let wanted = ["one 1", "one 2", "one 3"];
    ensure_eq(log(store, "one").await?, wanted, "the log")?;
    ensure_eq(
        log(store, "two").await?.len(),
        5,
        "events of another session",
    )?;
    for after in [4, u64::MAX] {
        let answer = store.truncate(shorter.clone(), Seq(after)).await;
        let is_conflict = |error: &StoreError| matches!(error, StoreError::Conflict { .. });
        ensure_fails(&answer, is_conflict, "a conflict")?;
    }
    let answer = store.truncate(record("none"), Seq(0)).await;
    let is_unknown = |error: &StoreError| matches!(error, StoreError::NoSession { .. });
    ensure_fails(&answer, is_unknown, "an unknown session")?;
    ensure_eq(log(store, "one").await?.len(), 3, "events after refusals")
}

pub(super) async fn a_fork_starts_with_the_same_events_and_goes_its_own_way(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 4)).await?;
    let from = "one".into();
    let mut copy = record("two");
    copy.name = Some("copy".into());
    ensure_eq(
        store.fork(copy.clone(), &from, Seq(3)).await?,
        3,
        "events copied",
    )?;
    ensure_eq(
        store.fork(record("none"), &from, Seq(0)).await?,
        0,
        "events copied",
    )?;
    copy.event_count = 3;
    let (found, forked) =
        (store.load(&"two".into()).await?).ok_or_else(|| Broken("a fork is a session".into()))?;
    ensure_eq(found, copy, "the record of the fork")?;
    let original = store.read(&from, Seq(0), 3).await?;
    ensure_eq(forked, original, "the events of the fork")?;
    store.append(batch("two", 3, 1)).await?;
    store.append(batch("one", 4, 1)).await?;
    let wanted = ["one 1", "one 2", "one 3", "two 4"];
    ensure_eq(log(store, "two").await?, wanted, "the log of the fork")?;
    store.delete(&from).await?;
    ensure_eq(
        log(store, "two").await?,
        wanted,
        "the log after the original is deleted",
    )
}

pub(super) async fn a_fork_that_is_refused_changes_nothing(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 4)).await?;
    store.append(batch("two", 0, 1)).await?;
    let exists = |error: &StoreError| matches!(error, StoreError::SessionExists { .. });
    let answer = store.fork(record("two"), &"one".into(), Seq(1)).await;
    ensure_fails(&answer, exists, "a session that exists")?;
    let unknown = |error: &StoreError| matches!(error, StoreError::NoSession { .. });
    let answer = store.fork(record("six"), &"five".into(), Seq(1)).await;
    ensure_fails(&answer, unknown, "an unknown session")?;
    let conflict = |error: &StoreError| matches!(error, StoreError::Conflict { .. });
    let answer = store.fork(record("six"), &"one".into(), Seq(9)).await;
    ensure_fails(&answer, conflict, "a conflict")?;
    ensure_eq(store.record(&"six".into()).await?, None, "a refused fork")?;
    ensure_eq(
        log(store, "two").await?,
        ["two 1"],
        "the log that was there",
    )
}
