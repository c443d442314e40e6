//! The [`Store`] over SQLite: a queue to the writer, a few readers, and their end.
//!
//! The daemon opens it once, after it took the lock of the home. It never answers a write before
//! its commit.

mod change;
mod check;
mod disk;
mod erase;
mod error;
mod lock_holder;
mod migrate;
mod read;
mod search;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use loopd_proto::id::{Seq, SessionId};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{
    Batch, LogFindings, LogSearch, SessionRecord, Store, StoreCheck, StoreError, StoreFuture,
    StoredEvent,
};
use change::Change;
use disk::Disk;
pub use error::OpenError;
use migrate::STEPS;
use read::Readers;
use writer::{Counters, Queue};

/// Where a database lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    File(PathBuf),
    /// Lost when the store is closed; for tests and for sessions nobody wants kept.
    Memory,
}

impl Location {
    /// The file that a person has to deal with when it cannot be opened.
    fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Memory => Path::new("in memory"),
        }
    }

    /// How errors of the open store call it.
    fn place(&self) -> String {
        match self {
            Self::File(path) => {
                let folder = path.parent().unwrap_or(path);
                if folder.as_os_str().is_empty() {
                    return "the store in the current folder".into();
                }
                format!("the store in {}", folder.display())
            }
            Self::Memory => "the store in memory".into(),
        }
    }
}

/// Sessions and facts in one SQLite database.
///
/// Dropping it lets the writer finish what is queued; [`Store::close`] also waits for that.
#[derive(Debug)]
pub struct SqliteStore {
    queue: Queue,
    readers: Readers,
    counters: Arc<Counters>,
    closing: CancellationToken,
    /// Owns the writer's task and the reads that run.
    tasks: TaskTracker,
    #[cfg(test)]
    disk: Arc<Mutex<Disk>>,
    /// How the writer's task ended.
    finished: Shared<BoxFuture<'static, Result<(), StoreError>>>,
}

/// What the writer did since the store was opened; tests count commits with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Transactions, successful or not.
    pub commits: u64,
    /// The writes in them.
    pub writes: u64,
    /// How often the database was opened anew after a failure.
    pub reopened: u64,
}

impl SqliteStore {
    /// Opens the database, creating or migrating it when needed.
    pub async fn open(location: Location) -> Result<Self, OpenError> {
        let wanted = location.clone();
        let disk = tokio::task::spawn_blocking(move || Disk::open(wanted, STEPS))
            .await
            .unwrap_or_else(|_| Err(OpenError::new(&location, StoreError::Lost)))?;
        Ok(Self::start(disk))
    }

    fn start(disk: Disk) -> Self {
        let location = disk.location().clone();
        let disk = Arc::new(Mutex::new(disk));
        let tasks = TaskTracker::new();
        let closing = CancellationToken::new();
        let counters = Arc::new(Counters::default());
        let (queue, inbox) = writer::queue();
        let task = tasks.spawn(writer::run(
            inbox,
            Arc::clone(&disk),
            Arc::clone(&counters),
            closing.clone(),
        ));
        Self {
            queue,
            #[cfg(test)]
            disk: Arc::clone(&disk),
            readers: Readers::new(location, disk, tasks.clone()),
            counters,
            closing,
            tasks,
            finished: task
                .map(|end| end.unwrap_or(Err(StoreError::Lost)))
                .boxed()
                .shared(),
        }
    }

    /// Tells what the writer did so far.
    pub fn stats(&self) -> Stats {
        Stats {
            commits: self.counters.commits.load(Ordering::Relaxed),
            writes: self.counters.writes.load(Ordering::Relaxed),
            reopened: self.counters.reopened.load(Ordering::Relaxed),
        }
    }

    /// Queues a change now; the future only waits for its answer.
    fn write<T: Send + 'static>(&self, change: Change, answer: fn(u64) -> T) -> StoreFuture<T> {
        let queued = if self.closing.is_cancelled() {
            Err(StoreError::Closed)
        } else {
            self.queue.push(change)
        };
        async move { queued?.await.unwrap_or(Err(StoreError::Lost)).map(answer) }.boxed()
    }
}

impl Store for SqliteStore {
    fn append(&self, batch: Batch) -> StoreFuture<()> {
        self.write(Change::Append(batch), |_| ())
    }

    fn load(&self, id: &SessionId) -> StoreFuture<Option<(SessionRecord, Vec<StoredEvent>)>> {
        let id = id.clone();
        self.readers
            .run(move |connection| read::load(connection, &id))
    }

    fn read(&self, id: &SessionId, after: Seq, limit: usize) -> StoreFuture<Vec<StoredEvent>> {
        let id = id.clone();
        self.readers
            .run(move |connection| read::events(connection, &id, after, limit))
    }

    fn record(&self, id: &SessionId) -> StoreFuture<Option<SessionRecord>> {
        let id = id.clone();
        self.readers
            .run(move |connection| read::record(connection, &id))
    }

    fn list(&self) -> StoreFuture<Vec<SessionRecord>> {
        self.readers.run(|connection| read::list(connection))
    }

    fn find_by_prefix(&self, prefix: &str) -> StoreFuture<Vec<SessionId>> {
        let prefix = prefix.to_owned();
        self.readers
            .run(move |connection| read::find_by_prefix(connection, &prefix))
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<bool> {
        self.write(Change::Delete(id.clone()), |removed| removed > 0)
    }

    fn truncate(&self, record: SessionRecord, after: Seq) -> StoreFuture<u64> {
        self.write(Change::Truncate { record, after }, |removed| removed)
    }

    fn fork(&self, record: SessionRecord, from: &SessionId, through: Seq) -> StoreFuture<u64> {
        let from = from.clone();
        self.write(
            Change::Fork {
                record,
                from,
                through,
            },
            |copied| copied,
        )
    }

    fn put_fact(&self, scope: &str, key: &str, value: Option<Value>) -> StoreFuture<()> {
        let fact = Change::PutFact {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.map(|value| value.to_string()),
        };
        self.write(fact, |_| ())
    }

    fn facts(&self, scope: &str) -> StoreFuture<Vec<(String, Value)>> {
        let scope = scope.to_owned();
        self.readers
            .run(move |connection| read::facts(connection, &scope))
    }

    fn size_of(&self, id: &SessionId) -> StoreFuture<u64> {
        let id = id.clone();
        self.readers
            .run(move |connection| read::size_of(connection, &id))
    }

    fn sizes(&self) -> StoreFuture<Vec<(SessionId, u64)>> {
        self.readers.run(|connection| read::sizes(connection))
    }

    fn find_newest(&self, search: LogSearch) -> StoreFuture<LogFindings> {
        self.readers
            .run(move |connection| search::run(connection, &search))
    }

    fn check(&self, within: Duration) -> StoreFuture<StoreCheck> {
        self.readers
            .run(move |connection| check::run(connection, within))
    }

    fn close(&self) -> StoreFuture<()> {
        self.closing.cancel();
        self.readers.close();
        self.tasks.close();
        let tasks = self.tasks.clone();
        let finished = self.finished.clone();
        async move {
            tasks.wait().await;
            finished.await
        }
        .boxed()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
