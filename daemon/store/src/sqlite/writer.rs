//! The queue in front of the disk and the one task that empties it.
//!
//! `sqlite` pushes changes; the task gathers those that wait and commits them in one short
//! `spawn_blocking` call. It keeps no blocking thread while nothing waits: in tests, a paused clock
//! does not advance while a blocking call runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::change::Change;
use super::disk::{Disk, Handle};
use super::erase::Erasure;
use crate::StoreError;

/// The most writes and bytes that may wait.
const QUEUE_WRITES: usize = 1024;
const QUEUE_BYTES: u32 = 64 * 1024 * 1024;

/// The most writes and bytes that share a commit; one write alone may be larger.
const GROUP_WRITES: usize = 256;
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// How long the writer waits before it tries again to erase what was deleted.
const ERASE_AGAIN: Duration = Duration::from_secs(1);

/// Counts what the writer did.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) reopened: AtomicU64,
}

/// A change, the way to answer its caller, and its share of the queue's bytes.
struct Job {
    change: Change,
    bytes: usize,
    answer: oneshot::Sender<Result<u64, StoreError>>,
    _share: OwnedSemaphorePermit,
}

/// The way into the queue.
#[derive(Debug)]
pub(super) struct Queue {
    shells: mpsc::Sender<Job>,
    bytes: Arc<Semaphore>,
}

/// The task's end of the queue.
pub(super) struct Inbox {
    shells: mpsc::Receiver<Job>,
}

/// Makes an empty queue.
pub(super) fn queue() -> (Queue, Inbox) {
    let (sender, receiver) = mpsc::channel(QUEUE_WRITES);
    let queue = Queue {
        shells: sender,
        bytes: Arc::new(Semaphore::new(QUEUE_BYTES as usize)),
    };
    (queue, Inbox { shells: receiver })
}

impl Queue {
    /// Takes a place in the queue at once, or refuses; the answer comes after the commit.
    pub(super) fn push(
        &self,
        change: Change,
    ) -> Result<oneshot::Receiver<Result<u64, StoreError>>, StoreError> {
        let bytes = change.bytes();
        let Some(share) = u32::try_from(bytes)
            .ok()
            .filter(|share| *share <= QUEUE_BYTES)
        else {
            return Err(StoreError::TooLarge {
                bytes,
                limit: QUEUE_BYTES as usize,
            });
        };
        let share = Arc::clone(&self.bytes)
            .try_acquire_many_owned(share)
            .map_err(|_| self.overloaded())?;
        let (answer, answered) = oneshot::channel();
        let job = Job {
            change,
            bytes,
            answer,
            _share: share,
        };
        self.shells.try_send(job).map_err(|refused| match refused {
            mpsc::error::TrySendError::Full(_) => self.overloaded(),
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        Ok(answered)
    }

    fn overloaded(&self) -> StoreError {
        StoreError::Overloaded {
            waiting: QUEUE_WRITES - self.shells.capacity(),
            bytes: QUEUE_BYTES as usize - self.bytes.available_permits(),
        }
    }
}

/// Commits what arrives until the queue is closed or nobody can push any more, then closes the
/// disk.
pub(super) async fn run(
    mut inbox: Inbox,
    disk: Arc<Mutex<Disk>>,
    counters: Arc<Counters>,
    closing: CancellationToken,
) -> Result<(), StoreError> {
    let mut erasure = Erasure::Done;
    loop {
        let first = next(&mut inbox.shells, &closing);
        let first = match erasure {
            Erasure::Done => Ok(first.await),
            Erasure::Due => tokio::time::timeout(ERASE_AGAIN, first).await,
        };
        let group = match first {
            Ok(Some(first)) => gather(first, &mut inbox.shells),
            Ok(None) => break,
            // Nothing came, so that there is only something to tidy up.
            Err(_) => Vec::new(),
        };
        let disk = Arc::clone(&disk);
        let counters = Arc::clone(&counters);
        let work = move || {
            let mut disk = disk.lock();
            if !group.is_empty() {
                commit(&mut disk, group, &counters);
            }
            disk.tidy()
        };
        erasure = tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|crash| {
                // Each caller sees the channel of its answer end; the disk will replace its handle.
                tracing::error!(error = &crash as &dyn std::error::Error, "a commit crashed");
                Erasure::Done
            });
    }
    let close = move || disk.lock().close();
    tokio::task::spawn_blocking(close)
        .await
        .unwrap_or(Err(StoreError::Lost))
}

async fn next(shells: &mut mpsc::Receiver<Job>, closing: &CancellationToken) -> Option<Job> {
    tokio::select! {
        biased;
        () = closing.cancelled() => {
            shells.close();
            shells.recv().await
        }
        job = shells.recv() => job,
    }
}

fn gather(first: Job, shells: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut bytes = first.bytes;
    let mut group = vec![first];
    while bytes < GROUP_BYTES && group.len() < GROUP_WRITES {
        let Ok(job) = shells.try_recv() else {
            break;
        };
        bytes = bytes.saturating_add(job.bytes);
        group.push(job);
    }
    group
}

fn commit(disk: &mut Disk, group: Vec<Job>, counters: &Counters) {
    let changes: Vec<&Change> = group.iter().map(|job| &job.change).collect();
    let done = disk.commit(&changes);
    counters.commits.fetch_add(1, Ordering::Relaxed);
    counters
        .writes
        .fetch_add(group.len() as u64, Ordering::Relaxed);
    if done.handle == Handle::Replaced {
        counters.reopened.fetch_add(1, Ordering::Relaxed);
    }
    for (job, answer) in group.into_iter().zip(done.answers) {
        // The caller may have stopped waiting; the write is done all the same.
        drop(job.answer.send(answer));
    }
}
