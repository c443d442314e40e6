//! What outlives the daemon: session logs, session records and small facts about a user.
//!
//! Sessions append and load through [`Store`]. Whoever opens a home takes its [`lock::HomeLock`]
//! first and then opens the store in it. The store does not know what an event means: it keeps the
//! exact bytes that clients get, in order.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
pub mod lock;
mod sqlite;
pub mod todos;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use loopd_proto::id::{EventId, Seq, SessionId};
use serde_json::Value;

pub use error::{Cause, StoreError};
pub use loopd_proto::event::Visibility;
pub use sqlite::{Location, OpenError, SqliteStore, Stats};

/// What every operation of a [`Store`] returns; it borrows nothing from the store.
pub type StoreFuture<T> = BoxFuture<'static, Result<T, StoreError>>;

/// One event of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    pub seq: Seq,
    pub id: EventId,
    /// The event's type, as on the wire.
    pub kind: Arc<str>,
    pub visible: Visibility,
    /// The exact bytes that clients get.
    pub json: Arc<str>,
}

/// What can be told about a session without folding its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub created_ms: i64,
    pub modified_ms: i64,
    pub name: Option<String>,
    pub summary: Option<String>,
    pub cwd: Option<String>,
    pub parent: Option<SessionId>,
    pub client_name: Option<String>,
    pub git_root: Option<String>,
    pub repository: Option<String>,
    pub branch: Option<String>,
    /// The task whose agent the session is; none for sessions that people opened.
    pub agent: Option<String>,
    /// The length of the log, which is also the last `Seq`. The store counts by itself: the value
    /// of a record that is written is ignored.
    pub event_count: u64,
}

/// Events to append to one session, all or none, together with its record.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Created or replaced in the same transaction.
    pub record: SessionRecord,
    /// Where the log must end before this batch; `Seq::START` for a new session.
    pub after: Seq,
    /// Numbered `after + 1`, `after + 2` and so on; may be empty when only the record changes.
    pub events: Vec<StoredEvent>,
}

/// A search for the newest event of each session that fits.
#[derive(Clone)]
pub struct LogSearch {
    /// The types of events that are looked at.
    pub kinds: &'static [&'static str],
    /// Whether an event fits, by its bytes.
    pub fits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// The search ends when so many sessions were found.
    pub limit: usize,
    /// The search ends after this time.
    pub within: Duration,
}

impl std::fmt::Debug for LogSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSearch")
            .field("kinds", &self.kinds)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// What a search found: sessions that people opened, the one modified last first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFindings {
    pub found: Vec<(SessionRecord, StoredEvent)>,
    /// Whether everything was looked at before the search ended.
    pub complete: bool,
}

/// What a look for damage found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// What is damaged, in the words of the backend; empty if nothing is.
    pub damage: Vec<String>,
    /// Whether everything was looked at in the time.
    pub complete: bool,
}

/// Keeps sessions and facts.
///
/// Writes are queued at once, when the method is called and not when its future is first polled,
/// are committed in the order of the calls, and resolve only after they are durable. Writes that wait
/// share a commit. Dropping the future of a write does not take the write back. A write that fails
/// has changed nothing, but a crash may still bring it to light: load the session before appending
/// to it again. A read sees every write that was acknowledged before it, also after a failed one.
/// The checks of `contract` say all of it in detail.
pub trait Store: Send + Sync + 'static {
    /// Appends a batch to its session's log.
    fn append(&self, batch: Batch) -> StoreFuture<()>;

    /// Reads a session's record and its whole log, as of one moment.
    fn load(&self, id: &SessionId) -> StoreFuture<Option<(SessionRecord, Vec<StoredEvent>)>>;

    /// Reads at most `limit` events after a position; none when the session is unknown.
    fn read(&self, id: &SessionId, after: Seq, limit: usize) -> StoreFuture<Vec<StoredEvent>>;

    /// Reads a session's record.
    fn record(&self, id: &SessionId) -> StoreFuture<Option<SessionRecord>>;

    /// Reads all records, the one modified last first.
    fn list(&self) -> StoreFuture<Vec<SessionRecord>>;

    /// Finds at most two sessions that people opened and whose id starts with `prefix`: two are
    /// enough to know that it is ambiguous.
    fn find_by_prefix(&self, prefix: &str) -> StoreFuture<Vec<SessionId>>;

    /// Removes a session and its log, and tells whether it existed.
    fn delete(&self, id: &SessionId) -> StoreFuture<bool>;

    /// Replaces the record, removes the events after a position and counts them.
    fn truncate(&self, record: SessionRecord, after: Seq) -> StoreFuture<u64>;

    /// Makes a new session whose log starts with the events of another up to `through`, and counts
    /// them.
    fn fork(&self, record: SessionRecord, from: &SessionId, through: Seq) -> StoreFuture<u64>;

    /// Sets a fact, or removes it when there is no value.
    fn put_fact(&self, scope: &str, key: &str, value: Option<Value>) -> StoreFuture<()>;

    /// Reads the facts of a scope, ordered by key.
    fn facts(&self, scope: &str) -> StoreFuture<Vec<(String, Value)>>;

    /// Counts the bytes of a session's events.
    fn size_of(&self, id: &SessionId) -> StoreFuture<u64>;

    /// Counts the bytes of every session's events.
    fn sizes(&self) -> StoreFuture<Vec<(SessionId, u64)>>;

    /// Finds the newest fitting event of each session that people opened.
    fn find_newest(&self, search: LogSearch) -> StoreFuture<LogFindings>;

    /// Looks for damage in everything that is stored, for at most this time.
    fn check(&self, within: Duration) -> StoreFuture<StoreCheck>;

    /// Refuses new work, finishes what is queued and closes the store. Closing twice is no error.
    fn close(&self) -> StoreFuture<()>;
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
