//! What earlier daemons of this home left: ends what should have ended with them, and takes over the
//! detached, by their ledger and the files beside their logs.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio_util::task::TaskTracker;

use super::super::census::{self, Identity};
use super::super::ledger::{Line, read_exit};
use super::super::record::{Control, Facts, Record};
use super::super::{Class, Exit, Inner, Signal, keeper};
use super::kill_by_evidence;

/// Reads the ledger that was left.
pub(in super::super) async fn recover(inner: &Arc<Inner>) -> Vec<Arc<Record>> {
    let backend = &inner.backend;
    let ledger = backend.ledger.clone();
    let lines = tokio::task::spawn_blocking(move || ledger.read());
    let lines = lines.await.unwrap_or_default();
    let (old, current): (Vec<Line>, Vec<Line>) = lines
        .into_iter()
        .partition(|line| line.boot != backend.boot);
    // Nothing lives through a restart of the system.
    for line in old {
        backend.ledger.remove(&line.id);
    }
    let (detached, condemned): (Vec<Line>, Vec<Line>) = current
        .into_iter()
        .partition(|line| line.class == Class::Detached);
    if !condemned.is_empty() {
        tracing::warn!(
            count = condemned.len(),
            "an earlier daemon left processes behind"
        );
        kill_by_evidence(condemned.clone()).await;
        for line in condemned {
            backend.ledger.remove(&line.id);
        }
    }
    detached
        .into_iter()
        .map(|line| take_over(inner, line))
        .collect()
}

/// Follows a detached command from now on.
fn take_over(inner: &Arc<Inner>, line: Line) -> Arc<Record> {
    let pid = line.command.map_or(0, |command| command.pid);
    let reach = Reach {
        keeper: line.keeper,
        line: line.clone(),
        tasks: inner.tasks.clone(),
    };
    let record = Arc::new(Record::new(Facts::of(&line, pid), Box::new(reach), None));
    inner.add(record.clone());
    let (inner_too, followed) = (inner.clone(), record.clone());
    inner.tasks.spawn(async move {
        let keeper = line.keeper.and_then(Identity::open);
        match keeper.map(crate::sys::watch_descriptor) {
            Some(Ok(keeper)) => with_keeper(&inner_too, &line, &followed, &keeper).await,
            Some(Err(error)) => {
                tracing::warn!(%error, "the keeper of a detached command cannot be watched");
                without_keeper(&inner_too, &line, &followed).await;
            }
            None => without_keeper(&inner_too, &line, &followed).await,
        }
    });
    record
}

/// The keeper writes how the command ended, and ends when nothing of it lives.
async fn with_keeper(
    inner: &Arc<Inner>,
    line: &Line,
    record: &Arc<Record>,
    keeper: &AsyncFd<OwnedFd>,
) {
    if let Some(log) = &line.log
        && let Err(error) = exit_or_end(log, record, keeper).await
    {
        tracing::warn!(%error, "a detached command's exit is seen only at its very end");
    }
    ended(keeper).await;
    census::bury(keeper.get_ref());
    without_keeper(inner, line, record).await;
}

/// Waits for the file that says how the command ended, or for the keeper's end.
async fn exit_or_end(log: &Path, record: &Record, keeper: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let changes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(
        &changes,
        log.parent().unwrap_or(log),
        WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
    )?;
    let changes = crate::sys::watch_descriptor(changes)?;
    loop {
        if let Some(exit) = read_exit(log) {
            record.set_exit(exit);
            return Ok(());
        }
        tokio::select! {
            () = ended(keeper) => return Ok(()),
            ready = changes.readable() => {
                let mut ready = ready?;
                let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
                let mut events = inotify::Reader::new(changes.get_ref(), &mut buffer);
                while events.next().is_ok() {}
                ready.clear_ready();
            }
        }
    }
}

/// Resolves when a process has ended; its descriptor is readable from then on.
async fn ended(process: &AsyncFd<OwnedFd>) {
    if let Err(error) = process.readable().await.map(|_| ()) {
        tracing::warn!(%error, "a process cannot be watched");
    }
}

/// Follows a detached command whose keeper is gone, as far as that can be done.
pub(super) async fn without_keeper(inner: &Arc<Inner>, line: &Line, record: &Arc<Record>) {
    if let Some(command) = line.command.and_then(Identity::open) {
        record.reach_by(Box::new(Reach {
            keeper: None,
            line: line.clone(),
            tasks: inner.tasks.clone(),
        }));
        match crate::sys::watch_descriptor(command) {
            Ok(command) => {
                ended(&command).await;
                census::bury(command.get_ref());
            }
            Err(error) => tracing::warn!(%error, "a detached command cannot be watched"),
        }
    }
    let written = line.log.as_deref().and_then(read_exit);
    record.set_exit(written.unwrap_or(Exit::Unknown));
    inner.backend.ledger.remove(&line.id);
    inner.finish(record);
}

/// A detached command that this daemon did not start.
#[derive(Debug)]
struct Reach {
    keeper: Option<Identity>,
    line: Line,
    tasks: TaskTracker,
}

impl Reach {
    /// Tells the keeper by a signal; false when there is none.
    fn tell(&self, signal: rustix::process::Signal) -> bool {
        let keeper = self.keeper.and_then(Identity::open);
        keeper.is_some_and(|keeper| rustix::process::pidfd_send_signal(&keeper, signal).is_ok())
    }
}

impl Control for Reach {
    fn signal(&self, signal: Signal) {
        let told = match signal {
            Signal::Kill => self.tell(keeper::KILL),
            _ => self.tell(keeper::TERMINATE),
        };
        let number = rustix::process::Signal::from_named_raw(signal.number());
        if !told
            && let Some(signal) = number
            && let Some(command) = self.line.command.and_then(Identity::open)
        {
            // Fails for a command that has just ended.
            rustix::process::pidfd_send_signal(&command, signal).ok();
        }
    }

    fn kill(&self) {
        if !self.tell(keeper::KILL) {
            let line = self.line.clone();
            self.tasks.spawn(kill_by_evidence(vec![line]));
        }
    }
}
