//! Reading parts, lists, facts and sizes.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::{Seq, SessionId};
use serde_json::json;

use super::{Subject, Verdict, batch, ensure, ensure_eq, event};
use crate::LogSearch;

pub(super) async fn reading_starts_after_a_position_and_stops_at_the_limit(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    store.append(batch("one", 0, 5)).await?;
    store.append(batch("two", 0, 5)).await?;
    let cases: [(u64, usize, &[u64]); 5] = [
        (0, 2, &[1, 2]),
        (2, usize::MAX, &[3, 4, 5]),
        (5, 10, &[]),
        (0, 0, &[]),
        (u64::MAX, 1, &[]),
    ];
    for (after, limit, wanted) in cases {
        let events = store.read(&"one".into(), Seq(after), limit).await?;
        let own = events.iter().all(|event| event.json.starts_with("one"));
        ensure(own, "only events of the session are read")?;
        let found: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
        ensure_eq(found, wanted, "the positions read")?;
    }
    let unknown = store.read(&"three".into(), Seq(0), 10).await?;
    ensure_eq(unknown, [], "events of an unknown session")
}

pub(super) async fn records_are_listed_the_last_modified_first(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    for (id, modified_ms) in [("old", 1), ("new", 3), ("middle", 2)] {
        let mut new = batch(id, 0, 1);
        new.record.modified_ms = modified_ms;
        store.append(new).await?;
    }
    let mut touched = batch("old", 1, 1);
    touched.record.modified_ms = 4;
    store.append(touched).await?;
    let listed = store.list().await?;
    let ids: Vec<_> = listed.iter().map(|record| record.id.as_str()).collect();
    ensure_eq(ids, ["old", "new", "middle"], "the list")
}

pub(super) async fn a_prefix_finds_at_most_two_sessions_of_people(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    for id in ["abc-1", "abc-2", "abc-3", "abd", "b%d", "bcd"] {
        store.append(batch(id, 0, 1)).await?;
    }
    let mut agent = batch("agent", 0, 1);
    agent.record.agent = Some("task".into());
    store.append(agent).await?;
    let cases: [(&str, &[&str]); 5] = [
        ("abc", &["abc-1", "abc-2"]),
        ("abc-3", &["abc-3"]),
        ("b%", &["b%d"]),
        ("c", &[]),
        ("ag", &[]),
    ];
    for (prefix, wanted) in cases {
        let ids = store.find_by_prefix(prefix).await?;
        let found: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        ensure_eq(
            found,
            wanted,
            &format!("sessions whose id starts with {prefix}"),
        )?;
    }
    ensure_eq(store.find_by_prefix("").await?.len(), 2, "sessions found")
}

pub(super) async fn a_search_finds_the_newest_fitting_event_of_each_session(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    for (modified_ms, id) in ["one", "two", "three", "agent"].into_iter().enumerate() {
        let mut batch = batch(id, 0, 4);
        batch.record.modified_ms = i64::try_from(modified_ms).unwrap_or_default();
        batch.record.agent = (id == "agent").then(|| "task".into());
        // Only kinds that are asked for are looked at.
        if let Some(last) = batch.events.last_mut() {
            last.kind = "other".into();
        }
        store.append(batch).await?;
    }
    let search = |text: &'static str, limit| LogSearch {
        kinds: &["user.message", "assistant.message"],
        fits: Arc::new(move |json: &str| json.contains(text)),
        limit,
        within: Duration::from_secs(10),
    };
    let cases: [(&str, usize, &[&str], bool); 5] = [
        ("o", 10, &["two 3", "one 3"], true),
        (" ", 10, &["three 3", "two 3", "one 3"], true),
        (" ", 2, &["three 3", "two 3"], false),
        ("two 2", 10, &["two 2"], true),
        ("two 4", 10, &[], true),
    ];
    for (text, limit, wanted, complete) in cases {
        let found = store.find_newest(search(text, limit)).await?;
        let events = found.found.iter();
        let events: Vec<&str> = events.map(|(_, event)| &*event.json).collect();
        ensure_eq(events, wanted, &format!("events with `{text}`"))?;
        ensure_eq(found.complete, complete, "whether all was looked at")?;
        let own = found.found.iter();
        let mut own = own.map(|(record, event)| event.json.starts_with(record.id.as_str()));
        ensure(own.all(|own| own), "an event comes with its session")?;
    }
    Ok(())
}

pub(super) async fn facts_are_set_replaced_and_removed_by_scope(subject: &dyn Subject) -> Verdict {
    let store = subject.store();
    let puts = [
        ("trust", "/b", Some(json!(true))),
        ("trust", "/a", Some(json!({"until": 3}))),
        ("other", "/a", Some(json!(null))),
        ("trust", "/b", Some(json!([1, "two"]))),
    ];
    for (scope, key, value) in puts {
        store.put_fact(scope, key, value).await?;
    }
    let wanted = [
        ("/a".to_owned(), json!({"until": 3})),
        ("/b".to_owned(), json!([1, "two"])),
    ];
    ensure_eq(store.facts("trust").await?, wanted, "the facts of a scope")?;
    let wanted = [("/a".to_owned(), json!(null))];
    ensure_eq(store.facts("other").await?, wanted, "the facts of another")?;
    store.put_fact("trust", "/a", None).await?;
    store.put_fact("trust", "/never", None).await?;
    ensure_eq(store.facts("trust").await?.len(), 1, "facts that are left")?;
    ensure_eq(store.facts("none").await?, [], "facts of an unknown scope")
}

pub(super) async fn the_size_of_a_session_is_the_bytes_of_its_events(
    subject: &dyn Subject,
) -> Verdict {
    let store = subject.store();
    let mut new = batch("one", 0, 2);
    new.events = vec![event(1, "☃☃"), event(2, &"x".repeat(100_000))];
    store.append(new).await?;
    store.append(batch("two", 0, 2)).await?;
    store.append(batch("empty", 0, 0)).await?;
    ensure_eq(store.size_of(&"one".into()).await?, 100_006, "bytes")?;
    ensure_eq(
        store.size_of(&"none".into()).await?,
        0,
        "bytes of no session",
    )?;
    let mut sizes = store.sizes().await?;
    sizes.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
    let wanted = [
        ("empty".into(), 0),
        ("one".into(), 100_006),
        ("two".into(), 10),
    ];
    ensure_eq(sizes, wanted, "bytes of every session")
}
