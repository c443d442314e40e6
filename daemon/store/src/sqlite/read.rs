//! Reading: a few connections beside the writer's, opened when first needed, and the queries.
//!
//! `sqlite` calls it. A read sees every commit that was acknowledged before the read started, and
//! reads work while writes fail.

use std::sync::Arc;

use futures::FutureExt;
use loopd_proto::id::{EventId, Seq, SessionId};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::Location;
use super::change::position;
use super::disk::{Disk, connect_reader};
use super::error::{Damage, Failure, damage};
use crate::{SessionRecord, StoreError, StoreFuture, StoredEvent, Visibility};

/// The most reads at the same time, each on its own connection.
const READERS: usize = 2;

const RECORD: &str =
    "id, created_ms, modified_ms, name, summary, cwd, parent, client_name, git_root,
    repository, branch, event_count, agent";

/// Where reads go.
#[derive(Debug, Clone)]
enum Source {
    Pool(Arc<Pool>),
    /// A database in memory has one connection: reads share it with the writer.
    Writer(Arc<Mutex<Disk>>),
}

#[derive(Debug)]
struct Pool {
    location: Location,
    /// `None` once closed: a read that ends later drops its connection.
    idle: Mutex<Option<Vec<Connection>>>,
}

/// The reading side of a database.
#[derive(Debug)]
pub(super) struct Readers {
    source: Source,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Readers {
    /// Makes the reading side; nothing is opened yet.
    pub(super) fn new(location: Location, disk: Arc<Mutex<Disk>>, tasks: TaskTracker) -> Self {
        let source = match location {
            Location::Memory => Source::Writer(disk),
            Location::File(_) => Source::Pool(Arc::new(Pool {
                location,
                idle: Mutex::new(Some(Vec::with_capacity(READERS))),
            })),
        };
        Self {
            source,
            turns: Arc::new(Semaphore::new(READERS)),
            tasks,
        }
    }

    /// Runs a query on a blocking thread when a connection is free.
    pub(super) fn run<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> StoreFuture<T> {
        let source = self.source.clone();
        let turns = Arc::clone(&self.turns);
        let tasks = self.tasks.clone();
        async move {
            let turn = turns
                .acquire_owned()
                .await
                .map_err(|_| StoreError::Closed)?;
            let work = move || {
                let _turn = turn;
                source.run(query)
            };
            tasks
                .spawn_blocking(work)
                .await
                .unwrap_or(Err(StoreError::Lost))
        }
        .boxed()
    }

    /// Refuses new reads and closes what no read uses; reads that run finish.
    pub(super) fn close(&self) {
        self.turns.close();
        if let Source::Pool(pool) = &self.source {
            *pool.idle.lock() = None;
        }
    }
}

impl Source {
    fn run<T>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Pool(pool) => pool.run(query),
            Self::Writer(disk) => {
                let mut disk = disk.lock();
                query(disk.connection()?).map_err(|failure| failure.of(&Location::Memory))
            }
        }
    }
}

impl Pool {
    fn run<T>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let waiting = self.idle.lock().as_mut().ok_or(StoreError::Closed)?.pop();
        let mut connection = match waiting {
            Some(connection) => connection,
            None => connect_reader(&self.location)?,
        };
        let result = query(&mut connection).map_err(|failure| failure.of(&self.location));
        let reusable = match result.as_ref().map_err(damage) {
            Ok(_) | Err(Damage::Write | Damage::Group) => true,
            Err(Damage::Handle | Damage::Disk) => false,
        };
        if let (true, Some(idle)) = (reusable, self.idle.lock().as_mut()) {
            idle.push(connection);
        }
        result
    }
}

pub(super) fn load(
    connection: &mut Connection,
    id: &SessionId,
) -> Result<Option<(SessionRecord, Vec<StoredEvent>)>, Failure> {
    // One transaction, so that record and log are of the same moment.
    let moment = connection.transaction()?;
    let Some(found) = record(&moment, id)? else {
        return Ok(None);
    };
    let log = events(&moment, id, Seq::START, usize::MAX)?;
    if log.len() as u64 != found.event_count {
        let what = format!(
            "session {id} has {} of {} events",
            log.len(),
            found.event_count
        );
        return Err(Failure::Unreadable(what));
    }
    Ok(Some((found, log)))
}

/// Reads events in order and makes sure that none is missing between them.
pub(super) fn events(
    connection: &Connection,
    id: &SessionId,
    after: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, Failure> {
    let Some(key) = key(connection, id)? else {
        return Ok(Vec::new());
    };
    let end = Seq(u64::from(u32::MAX));
    if after >= end {
        return Ok(Vec::new());
    }
    let first = position(id, key, Seq::START)?;
    let mut statement = connection.prepare_cached(
        "SELECT position, visible, id, kind, json FROM event
         WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query((position(id, key, after)?, position(id, key, end)?, limit))?;
    let mut events = Vec::new();
    let mut expected = after;
    while let Some(row) = rows.next()? {
        expected = expected.next();
        let seq = Seq((row.get::<_, i64>(0)? - first).unsigned_abs());
        if seq != expected {
            let what = format!("event {} of session {id} is missing", expected.0);
            return Err(Failure::Unreadable(what));
        }
        events.push(StoredEvent {
            seq,
            id: EventId::new(row.get::<_, Arc<str>>(2)?),
            kind: row.get(3)?,
            visible: if row.get(1)? {
                Visibility::Public
            } else {
                Visibility::Internal
            },
            json: row.get(4)?,
        });
    }
    Ok(events)
}

pub(super) fn record(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<SessionRecord>, Failure> {
    let found = connection
        .prepare_cached(&format!("SELECT {RECORD} FROM session WHERE id = ?1"))?
        .query_row([id.as_str()], to_record)
        .optional()?;
    Ok(found)
}

pub(super) fn list(connection: &Connection) -> Result<Vec<SessionRecord>, Failure> {
    let records = connection
        .prepare_cached(&format!(
            "SELECT {RECORD} FROM session ORDER BY modified_ms DESC, key DESC"
        ))?
        .query_map([], to_record)?
        .collect::<Result<_, _>>()?;
    Ok(records)
}

pub(super) fn find_by_prefix(
    connection: &Connection,
    prefix: &str,
) -> Result<Vec<SessionId>, Failure> {
    // A range of the index: no character sorts after the last one there is.
    let ids = connection
        .prepare_cached(
            "SELECT id FROM session WHERE id >= ?1 AND id < ?1 || char(0x10FFFF) AND agent IS NULL
             ORDER BY id LIMIT 2",
        )?
        .query_map([prefix], |row| {
            Ok(SessionId::new(row.get::<_, Arc<str>>(0)?))
        })?
        .collect::<Result<_, _>>()?;
    Ok(ids)
}

pub(super) fn facts(connection: &Connection, scope: &str) -> Result<Vec<(String, Value)>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT key, value FROM fact WHERE scope = ?1 ORDER BY key")?;
    let mut rows = statement.query([scope])?;
    let mut facts = Vec::new();
    while let Some(row) = rows.next()? {
        let value = serde_json::from_str(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?)
            .map_err(|error| Failure::Unreadable(format!("a fact is no JSON: {error}")))?;
        facts.push((row.get(0)?, value));
    }
    Ok(facts)
}

pub(super) fn size_of(connection: &Connection, id: &SessionId) -> Result<u64, Failure> {
    let Some(key) = key(connection, id)? else {
        return Ok(0);
    };
    let bytes = connection
        .prepare_cached(
            "SELECT coalesce(sum(octet_length(json)), 0) FROM event WHERE position > ?1 AND position <= ?2",
        )?
        .query_row(
            [
                position(id, key, Seq::START)?,
                position(id, key, Seq(u64::from(u32::MAX)))?,
            ],
            |row| row.get::<_, i64>(0),
        )?;
    Ok(bytes.unsigned_abs())
}

pub(super) fn sizes(connection: &Connection) -> Result<Vec<(SessionId, u64)>, Failure> {
    // An event's position begins with the key of its session.
    let sizes = connection
        .prepare_cached(
            "SELECT session.id, coalesce(sum(octet_length(event.json)), 0)
             FROM session LEFT JOIN event
                 ON event.position > session.key << 32 AND event.position < (session.key + 1) << 32
             GROUP BY session.key",
        )?
        .query_map([], |row| {
            let id = SessionId::new(row.get::<_, Arc<str>>(0)?);
            Ok((id, row.get::<_, i64>(1)?.unsigned_abs()))
        })?
        .collect::<Result<_, _>>()?;
    Ok(sizes)
}

/// Returns the position before the first event of a session, and the last that it may have.
pub(super) fn positions(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<(i64, i64)>, Failure> {
    let Some(key) = key(connection, id)? else {
        return Ok(None);
    };
    let last = Seq(u64::from(u32::MAX));
    Ok(Some((
        position(id, key, Seq::START)?,
        position(id, key, last)?,
    )))
}

fn key(connection: &Connection, id: &SessionId) -> Result<Option<i64>, Failure> {
    let key = connection
        .prepare_cached("SELECT key FROM session WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    Ok(key)
}

fn to_record(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    Ok(SessionRecord {
        id: SessionId::new(row.get::<_, Arc<str>>(0)?),
        created_ms: row.get(1)?,
        modified_ms: row.get(2)?,
        name: row.get(3)?,
        summary: row.get(4)?,
        cwd: row.get(5)?,
        parent: row.get::<_, Option<Arc<str>>>(6)?.map(SessionId::new),
        client_name: row.get(7)?,
        git_root: row.get(8)?,
        repository: row.get(9)?,
        branch: row.get(10)?,
        event_count: row.get::<_, u32>(11)?.into(),
        agent: row.get(12)?,
    })
}
