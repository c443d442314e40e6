//! The order of writes, their commits, and what reads see of them.

use futures::future::join_all;
use loopd_proto::id::Seq;

use super::{Subject, Verdict, batch, ensure, ensure_eq, log, record};

pub(super) async fn writes_are_queued_at_the_call(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let first = store.append(batch("one", 0, 2));
    let second = store.append(batch("one", 2, 1));
    let third = store.append(batch("one", 3, 1));
    third.await?;
    second.await?;
    first.await?;
    let wanted = ["one 1", "one 2", "one 3", "one 4"];
    ensure_eq(log(store, "one").await?, wanted, "the log")
}

pub(super) async fn a_write_is_done_when_its_future_is_dropped(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    drop(store.append(batch("one", 0, 1)));
    drop(store.put_fact("scope", "key", Some(true.into())));
    store.append(batch("two", 0, 1)).await?;
    ensure_eq(log(store, "one").await?, ["one 1"], "the log")?;
    ensure_eq(store.facts("scope").await?.len(), 1, "the number of facts")
}

pub(super) async fn all_kinds_of_writes_keep_one_order(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let id = "one".into();
    let appended = store.append(batch("one", 0, 4));
    let forked = store.fork(record("fork"), &id, Seq(4));
    let truncated = store.truncate(record("one"), Seq(1));
    let later = store.fork(record("later"), &id, Seq(1));
    let deleted = store.delete(&id);
    let anew = store.append(batch("one", 0, 2));
    anew.await?;
    ensure(deleted.await?, "a session that was there is deleted")?;
    ensure_eq(later.await?, 1, "events forked after the truncation")?;
    ensure_eq(truncated.await?, 3, "events removed by the truncation")?;
    ensure_eq(forked.await?, 4, "events forked before the truncation")?;
    appended.await?;
    let wanted = ["one 1", "one 2"];
    ensure_eq(log(store, "one").await?, wanted, "the log made anew")
}

pub(super) async fn writes_that_wait_share_a_commit(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let before = subject.commits();
    let queued = (0..200).map(|write| {
        let id = format!("session-{}", write % 20);
        store.append(batch(&id, write / 20, 1))
    });
    for answer in join_all(queued).await {
        answer?;
    }
    let commits = subject.commits() - before;
    // One commit may take the first write before the second one is queued.
    ensure(
        (1..=20).contains(&commits),
        &format!("{commits} commits for 200 writes that waited together"),
    )?;
    for record in store.list().await? {
        ensure_eq(record.event_count, 10, "events of a session")?;
    }
    Ok(())
}

pub(super) async fn what_was_acknowledged_is_read(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let id = "one".into();
    for seq in 0..20 {
        store.append(batch("one", seq, 1)).await?;
        let record = store.record(&id).await?;
        let count = record.map(|record| record.event_count);
        ensure_eq(count, Some(seq + 1), "events in the record")?;
        let last = store.read(&id, Seq(seq), 10).await?;
        ensure_eq(last.len(), 1, "events that the last write added")?;
    }
    Ok(())
}

pub(super) async fn a_record_and_its_log_are_of_one_moment(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let id = "one".into();
    store.append(batch("one", 0, 1)).await?;
    let writes = join_all((1..100).map(|seq| store.append(batch("one", seq, 1))));
    let loads = join_all((0..50).map(|_| store.load(&id)));
    let (writes, loads) = futures::join!(writes, loads);
    for answer in writes {
        answer?;
    }
    for loaded in loads {
        let (record, events) = loaded?.unwrap_or_else(|| (record("none"), Vec::new()));
        ensure(record.event_count > 0, "a session that is there is loaded")?;
        let count = events.len() as u64;
        ensure_eq(
            count,
            record.event_count,
            "events in a log beside its record",
        )?;
    }
    Ok(())
}
