//! A store of plain maps: the least that keeps the contract, unless it is given a fault.

mod fault;
mod tables;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::{Seq, SessionId};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::contract::{Space, Subject};
use crate::{Batch, Cause, SessionRecord, Store, StoreError, StoreFuture, StoredEvent};
pub(super) use fault::{FAULTS, Fault};
use tables::{Tables, Write};

type Answer = Result<u64, StoreError>;

struct Job {
    write: Write,
    answer: oneshot::Sender<Answer>,
}

/// What the store and its writer share.
struct Shared {
    fault: Option<Fault>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    disk: Mutex<Disk>,
}

struct Disk {
    tables: Tables,
    /// As they were before the last commit.
    previous: Tables,
    space: Space,
    commits: u64,
}

pub(super) struct MemoryStore {
    shared: Arc<Shared>,
    tasks: TaskTracker,
}

impl MemoryStore {
    pub(super) fn new(fault: Option<Fault>) -> Self {
        Self::over(fault, Tables::new(fault))
    }

    fn over(fault: Option<Fault>, tables: Tables) -> Self {
        let (jobs, mut inbox) = mpsc::channel::<Job>(1024);
        let shared = Arc::new(Shared {
            fault,
            jobs: Mutex::new(Some(jobs)),
            disk: Mutex::new(Disk {
                previous: tables.clone(),
                tables,
                space: Space::Free,
                commits: 0,
            }),
        });
        let tasks = TaskTracker::new();
        let writer = Arc::clone(&shared);
        tasks.spawn(async move {
            while let Some(first) = inbox.recv().await {
                let mut group = vec![first];
                while let Ok(job) = inbox.try_recv() {
                    group.push(job);
                }
                writer.commit(group);
            }
        });
        Self { shared, tasks }
    }

    fn write<T: Send + 'static>(&self, write: Write, to: fn(u64) -> T) -> StoreFuture<T> {
        let shared = Arc::clone(&self.shared);
        let push = move || shared.push(write);
        if self.shared.has(Fault::QueuesWhenPolled) {
            return async move { answer(push()).await.map(to) }.boxed();
        }
        let queued = push();
        async move { answer(queued).await.map(to) }.boxed()
    }

    fn look<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Tables) -> T + Send + 'static,
    ) -> StoreFuture<T> {
        let shared = Arc::clone(&self.shared);
        async move {
            if shared.jobs.lock().is_none() && !shared.has(Fault::ReadsWhenClosed) {
                return Err(StoreError::Closed);
            }
            let disk = shared.disk.lock();
            if disk.space == Space::Full && shared.has(Fault::RefusesReadsWhenFull) {
                return Err(full());
            }
            Ok(query(if shared.has(Fault::ReadsOneCommitLate) {
                &disk.previous
            } else {
                &disk.tables
            }))
        }
        .boxed()
    }
}

async fn answer(queued: Result<oneshot::Receiver<Answer>, StoreError>) -> Answer {
    queued?.await.unwrap_or(Err(StoreError::Lost))
}

fn full() -> StoreError {
    StoreError::Full {
        place: "the store of plain maps".into(),
        cause: Cause::new("a check made it full"),
    }
}

impl Shared {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn push(&self, write: Write) -> Result<oneshot::Receiver<Answer>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs.lock();
        let sender = jobs.as_ref().ok_or(StoreError::Closed)?;
        (sender.try_send(Job { write, answer })).map_err(|_| StoreError::Overloaded {
            waiting: 1024,
            bytes: 0,
        })?;
        Ok(answered)
    }

    fn commit(&self, mut group: Vec<Job>) {
        if self.has(Fault::DropsQueueAtClose) && self.jobs.lock().is_none() {
            return;
        }
        if self.has(Fault::SkipsDropped) {
            group.retain(|job| !job.answer.is_closed());
        }
        if self.has(Fault::DeletesFirst) {
            group.sort_by_key(|job| !matches!(job.write, Write::Delete(_)));
        }
        let size = if self.has(Fault::CommitsEachWrite) {
            1
        } else {
            group.len().max(1)
        };
        let mut group = group.into_iter().peekable();
        while group.peek().is_some() {
            self.commit_together(group.by_ref().take(size).collect());
        }
    }

    fn commit_together(&self, group: Vec<Job>) {
        let disk = &mut *self.disk.lock();
        disk.commits += 1;
        let mut next = disk.tables.clone();
        let mut answers: Vec<Answer> = Vec::new();
        if disk.space == Space::Full && group.iter().any(|job| job.write.is_large()) {
            for job in &group {
                if self.has(Fault::KeepsHalf) {
                    next.apply(&job.write.half()).unwrap();
                }
                answers.push(if self.has(Fault::AcknowledgesFailure) {
                    Ok(0)
                } else {
                    Err(full())
                });
            }
        } else {
            for job in &group {
                let mut trial = next.clone();
                let answer = trial.apply(&job.write);
                if answer.is_ok() || self.has(Fault::KeepsEventsBeforeGap) {
                    next = trial;
                }
                answers.push(answer);
            }
        }
        let refused = answers.iter().find_map(|answer| answer.clone().err());
        if let (Some(error), true) = (refused, self.has(Fault::RefusesGroup)) {
            answers.fill(Err(error));
            next = disk.tables.clone();
        }
        disk.previous = std::mem::replace(&mut disk.tables, next);
        for (job, answer) in group.into_iter().zip(answers) {
            drop(job.answer.send(answer));
        }
    }
}

impl Subject for MemoryStore {
    fn store(&self) -> &dyn Store {
        self
    }

    fn commits(&self) -> u64 {
        self.shared.disk.lock().commits
    }

    fn set_space(&self, space: Space) {
        if space == Space::Full || !self.shared.has(Fault::StaysFull) {
            self.shared.disk.lock().space = space;
        }
    }

    fn reopen(&self) -> BoxFuture<'_, Option<Arc<dyn Store>>> {
        let disk = self.shared.disk.lock();
        let kept = if self.shared.has(Fault::LosesLastCommit) {
            disk.previous.clone()
        } else {
            disk.tables.clone()
        };
        let again = Arc::new(Self::over(self.shared.fault, kept)) as Arc<dyn Store>;
        async { Some(again) }.boxed()
    }
}

impl Store for MemoryStore {
    fn append(&self, batch: Batch) -> StoreFuture<()> {
        self.write(Write::Append(batch), |_| ())
    }

    fn load(&self, id: &SessionId) -> StoreFuture<Option<(SessionRecord, Vec<StoredEvent>)>> {
        let id = id.clone();
        self.look(move |tables| tables.load(&id))
    }

    fn read(&self, id: &SessionId, after: Seq, limit: usize) -> StoreFuture<Vec<StoredEvent>> {
        let id = id.clone();
        self.look(move |tables| tables.read(&id, after, limit))
    }

    fn record(&self, id: &SessionId) -> StoreFuture<Option<SessionRecord>> {
        let id = id.clone();
        self.look(move |tables| tables.record(&id))
    }

    fn list(&self) -> StoreFuture<Vec<SessionRecord>> {
        self.look(Tables::list)
    }

    fn find_by_prefix(&self, prefix: &str) -> StoreFuture<Vec<SessionId>> {
        let prefix = prefix.to_owned();
        self.look(move |tables| tables.find_by_prefix(&prefix))
    }

    fn delete(&self, id: &SessionId) -> StoreFuture<bool> {
        self.write(Write::Delete(id.clone()), |removed| removed > 0)
    }

    fn truncate(&self, record: SessionRecord, after: Seq) -> StoreFuture<u64> {
        self.write(Write::Truncate(record, after), |removed| removed)
    }

    fn fork(&self, record: SessionRecord, from: &SessionId, through: Seq) -> StoreFuture<u64> {
        self.write(Write::Fork(record, from.clone(), through), |copied| copied)
    }

    fn put_fact(&self, scope: &str, key: &str, value: Option<Value>) -> StoreFuture<()> {
        self.write(Write::Fact(scope.into(), key.into(), value), |_| ())
    }

    fn facts(&self, scope: &str) -> StoreFuture<Vec<(String, Value)>> {
        let scope = scope.to_owned();
        self.look(move |tables| tables.facts(&scope))
    }

    fn size_of(&self, id: &SessionId) -> StoreFuture<u64> {
        let id = id.clone();
        self.look(move |tables| tables.size_of(&id))
    }

    fn sizes(&self) -> StoreFuture<Vec<(SessionId, u64)>> {
        self.look(Tables::sizes)
    }

    fn find_newest(&self, search: crate::LogSearch) -> StoreFuture<crate::LogFindings> {
        self.look(move |tables| tables.find_newest(&search))
    }

    fn check(&self, _within: std::time::Duration) -> StoreFuture<crate::StoreCheck> {
        let nothing = crate::StoreCheck {
            complete: true,
            ..crate::StoreCheck::default()
        };
        self.look(move |_| nothing)
    }

    fn close(&self) -> StoreFuture<()> {
        drop(self.shared.jobs.lock().take());
        self.tasks.close();
        let tasks = self.tasks.clone();
        async move {
            tasks.wait().await;
            Ok(())
        }
        .boxed()
    }
}
