//! A store whose commits a test can hold, let through or fail. So a test can act between the moment
//! when a session decides and the moment when the events are stored.
//!
//! [`Daemon::builder`](crate::Daemon::builder) takes the [`Commits`] that control it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use loopd_proto::id::{Seq, SessionId};
use loopd_store::{Batch, SessionRecord, Store, StoreError, StoreFuture, StoredEvent};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::within;

/// Controls which commits of a store are held.
#[derive(Clone, Default)]
pub struct Commits {
    /// Whether every commit fails, as on a full disk, and how many have failed.
    full: Arc<AtomicBool>,
    failed: Arc<watch::Sender<usize>>,
    /// Whether every read of a log fails.
    unreadable: Arc<AtomicBool>,
    traps: Arc<Mutex<Vec<Trap>>>,
    wanted: Arc<Mutex<Vec<Vec<String>>>>,
}

/// Catches the first commit that stores an event of this kind.
struct Trap {
    kind: String,
    reached: oneshot::Sender<()>,
    verdict: oneshot::Receiver<Verdict>,
}

enum Verdict {
    LetThrough,
    Fail(StoreError),
}

/// One commit that is held now or will be.
pub struct HeldCommit {
    kind: String,
    reached: Option<oneshot::Receiver<()>>,
    verdict: oneshot::Sender<Verdict>,
}

impl Commits {
    /// Holds the next commit that stores an event of this kind.
    pub fn hold(&self, kind: &str) -> HeldCommit {
        let (reached, reaching) = oneshot::channel();
        let (verdict, judging) = oneshot::channel();
        self.lock().push(Trap {
            kind: kind.to_owned(),
            reached,
            verdict: judging,
        });
        HeldCommit {
            kind: kind.to_owned(),
            reached: Some(reaching),
            verdict,
        }
    }

    /// Lets every commit fail from now on, as on a full disk.
    pub fn fill_disk(&self) {
        self.full.store(true, Ordering::SeqCst);
    }

    /// Lets commits work again.
    pub fn free_disk(&self) {
        self.full.store(false, Ordering::SeqCst);
    }

    /// Lets every read of a log fail, or work again.
    pub fn set_unreadable(&self, unreadable: bool) {
        self.unreadable.store(unreadable, Ordering::SeqCst);
    }

    /// Waits until this many commits have failed on the full disk.
    pub async fn failed(&self, count: usize) {
        let mut failed = self.failed.subscribe();
        let reached = failed.wait_for(|failed| *failed >= count);
        within("a commit to fail", reached).await.unwrap();
    }

    /// Returns the kinds of the events in each commit so far, oldest commit first.
    pub fn kinds(&self) -> Vec<Vec<String>> {
        let wanted = self.wanted.lock();
        wanted.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Trap>> {
        self.traps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trap_for(&self, batch: &Batch) -> Option<Trap> {
        let mut traps = self.lock();
        let stores = |kind: &str| batch.events.iter().any(|event| &*event.kind == kind);
        let at = traps.iter().position(|trap| stores(&trap.kind))?;
        Some(traps.remove(at))
    }
}

impl HeldCommit {
    /// Waits until a session waits for this commit.
    pub async fn reached(&mut self) {
        let what = format!("the commit of {}", self.kind);
        let reached = self.reached.take().expect("a commit is reached once");
        within(&what, reached).await.expect("the store is open");
    }

    /// Stores the held commit.
    pub fn let_through(self) {
        assert!(self.verdict.send(Verdict::LetThrough).is_ok(), "{NOBODY}");
    }

    /// Stores nothing of the held commit; the store refuses it for good.
    pub fn refuse(self) {
        self.fail_with(StoreError::Rejected {
            cause: loopd_store::Cause::new("the test refused this commit"),
        });
    }

    /// Stores nothing of the held commit; no space was left for it.
    pub fn fail(self) {
        self.fail_with(no_space());
    }

    fn fail_with(self, error: StoreError) {
        assert!(self.verdict.send(Verdict::Fail(error)).is_ok(), "{NOBODY}");
    }
}

fn no_space() -> StoreError {
    StoreError::Full {
        place: "the store of the test".to_owned(),
        cause: loopd_store::Cause::new("the test filled the disk"),
    }
}

const NOBODY: &str = "nobody waits for the held commit any more";

/// A store whose appends can be held.
pub(crate) struct HeldStore {
    inner: Arc<dyn Store>,
    commits: Commits,
}

impl HeldStore {
    pub(crate) fn new(inner: Arc<dyn Store>, commits: Commits) -> Self {
        Self { inner, commits }
    }
}

impl Store for HeldStore {
    fn append(&self, batch: Batch) -> StoreFuture<()> {
        let kinds = batch.events.iter().map(|event| event.kind.to_string());
        let wanted = self.commits.wanted.lock();
        wanted
            .unwrap_or_else(PoisonError::into_inner)
            .push(kinds.collect());
        let Some(trap) = self.commits.trap_for(&batch) else {
            if self.commits.full.load(Ordering::SeqCst) {
                self.commits.failed.send_modify(|failed| *failed += 1);
                return async { Err(no_space()) }.boxed();
            }
            return self.inner.append(batch);
        };
        let inner = self.inner.clone();
        async move {
            // The test need not wait until the commit is reached.
            trap.reached.send(()).ok();
            let verdict = trap.verdict.await;
            match verdict.expect("a test says what becomes of a commit that it held") {
                Verdict::LetThrough => inner.append(batch).await,
                Verdict::Fail(error) => Err(error),
            }
        }
        .boxed()
    }

    fn load(&self, id: &SessionId) -> StoreFuture<Option<(SessionRecord, Vec<StoredEvent>)>> {
        if self.commits.unreadable.load(Ordering::SeqCst) {
            let error = StoreError::Corrupt {
                place: "the store of the test".to_owned(),
                cause: loopd_store::Cause::new("the test damaged it"),
            };
            return async { Err(error) }.boxed();
        }
        self.inner.load(id)
    }

    fn read(&self, id: &SessionId, after: Seq, limit: usize) -> StoreFuture<Vec<StoredEvent>> {
        self.inner.read(id, after, limit)
    }

    fn record(&self, id: &SessionId) -> StoreFuture<Option<SessionRecord>> {
        self.inner.record(id)
    }

    fn list(&self) -> StoreFuture<Vec<SessionRecord>> {
        self.inner.list()
    }

    fn find_by_prefix(&self, prefix: &str) -> StoreFuture<Vec<SessionId>> {
        self.inner.find_by_prefix(prefix)
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<bool> {
        self.inner.delete(id)
    }

    fn truncate(&self, record: SessionRecord, after: Seq) -> StoreFuture<u64> {
        self.inner.truncate(record, after)
    }

    fn fork(&self, record: SessionRecord, from: &SessionId, through: Seq) -> StoreFuture<u64> {
        self.inner.fork(record, from, through)
    }

    fn put_fact(&self, scope: &str, key: &str, value: Option<Value>) -> StoreFuture<()> {
        self.inner.put_fact(scope, key, value)
    }

    fn facts(&self, scope: &str) -> StoreFuture<Vec<(String, Value)>> {
        self.inner.facts(scope)
    }

    fn size_of(&self, id: &SessionId) -> StoreFuture<u64> {
        self.inner.size_of(id)
    }

    fn sizes(&self) -> StoreFuture<Vec<(SessionId, u64)>> {
        self.inner.sizes()
    }

    fn find_newest(&self, search: loopd_store::LogSearch) -> StoreFuture<loopd_store::LogFindings> {
        self.inner.find_newest(search)
    }

    fn check(&self, within: std::time::Duration) -> StoreFuture<loopd_store::StoreCheck> {
        self.inner.check(within)
    }

    fn close(&self) -> StoreFuture<()> {
        self.inner.close()
    }
}
