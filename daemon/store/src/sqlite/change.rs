//! One write, and how it changes the tables inside a transaction that `disk` owns.
//!
//! Every change checks before it touches a row, and answers with a number: rows added or removed.

use loopd_proto::id::{Seq, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::error::Failure;
use crate::{Batch, SessionRecord, StoreError, StoredEvent, Visibility};

/// A write that waits for its turn.
#[derive(Debug)]
pub(super) enum Change {
    Append(Batch),
    Delete(SessionId),
    Truncate {
        record: SessionRecord,
        after: Seq,
    },
    Fork {
        record: SessionRecord,
        from: SessionId,
        through: Seq,
    },
    PutFact {
        scope: String,
        key: String,
        value: Option<String>,
    },
}

impl Change {
    /// The memory it holds while it waits, near enough.
    pub(super) fn bytes(&self) -> usize {
        /// What a change, a record or an event takes besides its long texts.
        const FRAME: usize = 256;
        let text = |field: &Option<String>| field.as_ref().map_or(0, String::len);
        let record = |record: &SessionRecord| {
            FRAME + text(&record.name) + text(&record.summary) + text(&record.cwd)
        };
        match self {
            Self::Append(batch) => batch
                .events
                .iter()
                .map(|event| FRAME + event.kind.len() + event.json.len())
                .fold(record(&batch.record), usize::saturating_add),
            Self::Delete(_) => FRAME,
            Self::Truncate {
                record: changed, ..
            }
            | Self::Fork {
                record: changed, ..
            } => record(changed),
            Self::PutFact { scope, key, value } => FRAME + scope.len() + key.len() + text(value),
        }
    }

    /// Returns whether the change removes content that must not stay readable on the disk.
    pub(super) fn deletes(&self) -> bool {
        match self {
            Self::Delete(_) | Self::Truncate { .. } => true,
            Self::PutFact { value, .. } => value.is_none(),
            Self::Append(_) | Self::Fork { .. } => false,
        }
    }

    /// Makes the change inside the transaction that is open on `connection`.
    pub(super) fn apply(&self, connection: &Connection) -> Result<u64, Failure> {
        match self {
            Self::Append(batch) => append(connection, batch),
            Self::Delete(id) => delete(connection, id),
            Self::Truncate { record, after } => truncate(connection, record, *after),
            Self::Fork {
                record,
                from,
                through,
            } => fork(connection, record, from, *through),
            Self::PutFact { scope, key, value } => {
                put_fact(connection, scope, key, value.as_deref())
            }
        }
    }
}

/// A session's row: its key in the table and where its log ends.
struct Log {
    key: i64,
    end: Seq,
}

/// The rowid of an event, see the schema.
pub(super) fn position(session: &SessionId, key: i64, seq: Seq) -> Result<i64, StoreError> {
    let base = i32::try_from(key).map_err(|_| too_long(session, seq))?;
    Ok((i64::from(base) << 32) | i64::from(length(session, seq)?))
}

/// The number of events up to `seq`, in the 32 bits that a position leaves for it.
fn length(session: &SessionId, seq: Seq) -> Result<u32, StoreError> {
    u32::try_from(seq.0).map_err(|_| too_long(session, seq))
}

fn too_long(session: &SessionId, seq: Seq) -> StoreError {
    StoreError::LogTooLong {
        session: session.clone(),
        seq,
    }
}

fn find(connection: &Connection, id: &SessionId) -> Result<Option<Log>, Failure> {
    let log = connection
        .prepare_cached("SELECT key, event_count FROM session WHERE id = ?1")?
        .query_row([id.as_str()], |row| {
            Ok(Log {
                key: row.get(0)?,
                end: Seq(row.get::<_, u32>(1)?.into()),
            })
        })
        .optional()?;
    Ok(log)
}

fn append(connection: &Connection, batch: &Batch) -> Result<u64, Failure> {
    let id = &batch.record.id;
    let found = find(connection, id)?;
    let end = found.as_ref().map_or(Seq::START, |log| log.end);
    if end != batch.after {
        return Err(conflict(id, batch.after, end));
    }
    let mut expected = batch.after;
    for event in &batch.events {
        expected = expected.next();
        if event.seq != expected {
            return Err(StoreError::Gap {
                session: id.clone(),
                expected,
                found: event.seq,
            }
            .into());
        }
    }
    let key = match found {
        Some(log) => update(connection, log.key, &batch.record, expected)?,
        None => insert(connection, &batch.record, expected)?,
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO event (position, visible, id, kind, json) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for event in &batch.events {
        statement.execute(params![
            position(id, key, event.seq)?,
            visible(event),
            event.id.as_str(),
            &*event.kind,
            &*event.json,
        ])?;
    }
    Ok(expected.0 - batch.after.0)
}

fn delete(connection: &Connection, id: &SessionId) -> Result<u64, Failure> {
    let Some(log) = find(connection, id)? else {
        return Ok(0);
    };
    remove_after(connection, id, log.key, Seq::START)?;
    connection
        .prepare_cached("DELETE FROM session WHERE key = ?1")?
        .execute([log.key])?;
    Ok(1)
}

fn truncate(connection: &Connection, record: &SessionRecord, after: Seq) -> Result<u64, Failure> {
    let id = &record.id;
    let log = find(connection, id)?.ok_or_else(|| no_session(id))?;
    if log.end < after {
        return Err(conflict(id, after, log.end));
    }
    let removed = remove_after(connection, id, log.key, after)?;
    update(connection, log.key, record, after)?;
    Ok(removed)
}

fn fork(
    connection: &Connection,
    record: &SessionRecord,
    from: &SessionId,
    through: Seq,
) -> Result<u64, Failure> {
    let source = find(connection, from)?.ok_or_else(|| no_session(from))?;
    if source.end < through {
        return Err(conflict(from, through, source.end));
    }
    if find(connection, &record.id)?.is_some() {
        return Err(StoreError::SessionExists {
            session: record.id.clone(),
        }
        .into());
    }
    let key = insert(connection, record, through)?;
    let shift = position(&record.id, key, Seq::START)? - position(from, source.key, Seq::START)?;
    let copied = connection
        .prepare_cached(
            "INSERT INTO event (position, visible, id, kind, json)
             SELECT position + ?3, visible, id, kind, json FROM event
             WHERE position > ?1 AND position <= ?2 ORDER BY position",
        )?
        .execute(params![
            position(from, source.key, Seq::START)?,
            position(from, source.key, through)?,
            shift,
        ])?;
    Ok(copied as u64)
}

fn put_fact(
    connection: &Connection,
    scope: &str,
    key: &str,
    value: Option<&str>,
) -> Result<u64, Failure> {
    let changed = match value {
        Some(value) => connection
            .prepare_cached(
                "INSERT INTO fact (scope, key, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value",
            )?
            .execute([scope, key, value])?,
        None => connection
            .prepare_cached("DELETE FROM fact WHERE scope = ?1 AND key = ?2")?
            .execute([scope, key])?,
    };
    Ok(changed as u64)
}

fn remove_after(
    connection: &Connection,
    id: &SessionId,
    key: i64,
    after: Seq,
) -> Result<u64, Failure> {
    let removed = connection
        .prepare_cached("DELETE FROM event WHERE position > ?1 AND position <= ?2")?
        .execute([
            position(id, key, after)?,
            position(id, key, Seq(u64::from(u32::MAX)))?,
        ])?;
    Ok(removed as u64)
}

fn insert(connection: &Connection, record: &SessionRecord, end: Seq) -> Result<i64, Failure> {
    connection
        .prepare_cached(
            "INSERT INTO session (id, created_ms, modified_ms, name, summary, cwd, parent, client_name,
                 git_root, repository, branch, event_count, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            record.id.as_str(),
            record.created_ms,
            record.modified_ms,
            record.name,
            record.summary,
            record.cwd,
            record.parent.as_ref().map(SessionId::as_str),
            record.client_name,
            record.git_root,
            record.repository,
            record.branch,
            length(&record.id, end)?,
            record.agent,
        ])?;
    Ok(connection.last_insert_rowid())
}

fn update(
    connection: &Connection,
    key: i64,
    record: &SessionRecord,
    end: Seq,
) -> Result<i64, Failure> {
    connection
        .prepare_cached(
            "UPDATE session SET created_ms = ?2, modified_ms = ?3, name = ?4, summary = ?5, cwd = ?6,
                 parent = ?7, client_name = ?8, git_root = ?9, repository = ?10, branch = ?11,
                 event_count = ?12, agent = ?13
             WHERE key = ?1",
        )?
        .execute(params![
            key,
            record.created_ms,
            record.modified_ms,
            record.name,
            record.summary,
            record.cwd,
            record.parent.as_ref().map(SessionId::as_str),
            record.client_name,
            record.git_root,
            record.repository,
            record.branch,
            length(&record.id, end)?,
            record.agent,
        ])?;
    Ok(key)
}

fn visible(event: &StoredEvent) -> bool {
    match event.visible {
        Visibility::Public => true,
        Visibility::Internal => false,
    }
}

fn conflict(session: &SessionId, expected: Seq, found: Seq) -> Failure {
    StoreError::Conflict {
        session: session.clone(),
        expected,
        found,
    }
    .into()
}

fn no_session(session: &SessionId) -> StoreError {
    StoreError::NoSession {
        session: session.clone(),
    }
}
