//! Small values to store.

use loopd_proto::id::Seq;

use crate::{Batch, SessionRecord, StoredEvent, Visibility};

pub(crate) fn record(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.into(),
        created_ms: 1_000,
        modified_ms: 2_000,
        name: None,
        summary: None,
        cwd: Some("/project".into()),
        parent: None,
        agent: None,
        client_name: None,
        git_root: None,
        repository: None,
        branch: None,
        event_count: 0,
    }
}

pub(crate) fn event(seq: u64, json: &str) -> StoredEvent {
    StoredEvent {
        seq: Seq(seq),
        id: format!("event-{seq}").into(),
        kind: "user.message".into(),
        visible: Visibility::Public,
        json: json.into(),
    }
}

/// A batch of `count` events that say whose they are.
pub(crate) fn batch(id: &str, after: u64, count: u64) -> Batch {
    Batch {
        record: record(id),
        after: Seq(after),
        events: (after + 1..=after + count)
            .map(|seq| event(seq, &format!("{id} {seq}")))
            .collect(),
    }
}

/// A batch of a small event and one of a mebibyte.
pub(super) fn large_batch(id: &str, after: u64) -> Batch {
    let mut batch = batch(id, after, 1);
    batch.events.push(event(after + 2, &"x".repeat(1 << 20)));
    batch
}
