//! A disk without room, a crash, and the end of a store.

use futures::future::join_all;
use loopd_proto::id::Seq;

use super::values::large_batch;
use super::{Space, Subject, Verdict, batch, ensure, ensure_eq, ensure_fails, log, record};
use crate::StoreError;

fn is_full(error: &StoreError) -> bool {
    matches!(error, StoreError::Full { .. })
}

fn is_closed(error: &StoreError) -> bool {
    matches!(error, StoreError::Closed)
}

/// Stores three events, and fails to store two more.
async fn fail(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 3)).await?;
    subject.set_space(Space::Full);
    let mut next = large_batch("one", 3);
    next.record.name = Some("not to be seen".into());
    ensure_fails(&store.append(next).await, is_full, "a full disk")
}

pub(super) async fn a_failed_write_changes_nothing(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    fail(subject).await?;
    subject.set_space(Space::Free);
    let wanted = ["one 1", "one 2", "one 3"];
    ensure_eq(log(store, "one").await?, wanted, "the log")?;
    let found = store.record(&"one".into()).await?;
    let name = found.and_then(|record| record.name);
    ensure_eq(name, None, "the name in the record")
}

pub(super) async fn a_failed_write_is_not_acknowledged(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    subject.set_space(Space::Full);
    let ids = ["small", "large", "later"];
    let answers = join_all([
        store.append(batch("small", 0, 1)),
        store.append(large_batch("large", 0)),
        store.append(batch("later", 0, 1)),
    ])
    .await;
    subject.set_space(Space::Free);
    for (id, answer) in ids.iter().zip(&answers) {
        let is_there = !log(store, id).await?.is_empty();
        ensure_eq(answer.is_ok(), is_there, &format!("the answer for {id}"))?;
    }
    let failed = answers.iter().any(Result::is_err);
    ensure(failed, "a write for which there is no room fails")
}

pub(super) async fn reads_go_on_after_a_failed_write(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    fail(subject).await?;
    ensure_eq(log(store, "one").await?.len(), 3, "events loaded")?;
    let read = store.read(&"one".into(), Seq(1), 10).await?;
    ensure_eq(read.len(), 2, "events read")?;
    ensure_eq(store.list().await?.len(), 1, "sessions listed")?;
    ensure_eq(store.facts("scope").await?, [], "facts")
}

pub(super) async fn writes_go_on_when_there_is_room_again(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    fail(subject).await?;
    subject.set_space(Space::Free);
    store.append(large_batch("one", 3)).await?;
    store.fork(record("two"), &"one".into(), Seq(4)).await?;
    ensure_eq(log(store, "one").await?.len(), 5, "events")?;
    ensure_eq(log(store, "two").await?.len(), 4, "events of the fork")
}

pub(super) async fn what_was_acknowledged_survives_a_crash(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 3)).await?;
    store.append(batch("one", 3, 1)).await?;
    store.put_fact("scope", "key", Some(7.into())).await?;
    if let Some(again) = subject.reopen().await {
        ensure_eq(log(&*again, "one").await?.len(), 4, "events after a crash")?;
        ensure_eq(again.facts("scope").await?.len(), 1, "facts after a crash")?;
        again.close().await?;
    }
    Ok(())
}

pub(super) async fn closing_finishes_what_is_queued(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let queued: Vec<_> = (0..50)
        .map(|seq| store.append(batch("one", seq, 1)))
        .collect();
    let closed = store.close();
    let late = store.append(batch("one", 50, 1)).await;
    ensure_fails(&late, is_closed, "a closed store")?;
    closed.await?;
    for answer in join_all(queued).await {
        answer?;
    }
    if let Some(again) = subject.reopen().await {
        ensure_eq(log(&*again, "one").await?.len(), 50, "events after the end")?;
        again.close().await?;
    }
    Ok(())
}

pub(super) async fn a_closed_store_refuses_everything(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 1)).await?;
    store.close().await?;
    let id = "one".into();
    ensure_fails(
        &store.append(batch("one", 1, 1)).await,
        is_closed,
        "the end",
    )?;
    ensure_fails(
        &store.delete(&id).await,
        is_closed,
        "a refusal of the closed store",
    )?;
    ensure_fails(
        &store.load(&id).await,
        is_closed,
        "a refusal of the closed store",
    )?;
    ensure_fails(
        &store.list().await,
        is_closed,
        "a refusal of the closed store",
    )?;
    store.close().await?;
    Ok(())
}
