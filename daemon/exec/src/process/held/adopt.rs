//! Handles the commands that earlier daemons of this home left, as listed in the ledger: kills
//! attached ones and adopts detached ones.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::super::ancestry;
use super::super::ledger::{LedgerEntry, read_exit, shown_exit};
use super::super::procfs::{self, ProcStat, ProcessIdentity};
use super::super::record::{ProcessControl, ProcessFacts, ProcessRecord};
use super::super::{Class, Exit, KILLED_WITHIN, ProcessesInner, Signal, keeper};
use super::{ProcessBackend, kill_without_keeper};

/// Reads the ledger, kills attached commands and adopts detached ones.
pub(in super::super) async fn recover(inner: &Arc<ProcessesInner>) -> Vec<Arc<ProcessRecord>> {
    let backend = &inner.backend;
    end_holder(backend).await;
    let ledger = backend.ledger.clone();
    let entries = tokio::task::spawn_blocking(move || ledger.read());
    let entries = entries.await.unwrap_or_default();
    let (old, current): (Vec<LedgerEntry>, Vec<LedgerEntry>) = entries
        .into_iter()
        .partition(|entry| entry.boot != backend.boot);
    // No process survives a reboot.
    for entry in old {
        backend.ledger.remove(&entry.id);
    }
    let (detached, attached): (Vec<LedgerEntry>, Vec<LedgerEntry>) = current
        .into_iter()
        .partition(|entry| entry.class == Class::Detached);
    if !attached.is_empty() {
        tracing::warn!(
            count = attached.len(),
            "an earlier daemon left processes behind"
        );
        kill_without_keeper(attached.clone()).await;
        for entry in attached {
            backend.ledger.remove(&entry.id);
        }
    }
    *backend.adopted.lock() = ancestry::keepers_of(&detached);
    detached
        .into_iter()
        .map(|entry| adopt(inner, entry))
        .collect()
}

/// Ends the holder of an earlier daemon. It ends by itself when its daemon is gone, unless somebody
/// stopped it.
async fn end_holder(backend: &ProcessBackend) {
    let Some(holder) = backend.ledger.noted_holder(&backend.boot) else {
        return;
    };
    let watched = holder.open().map(crate::sys::watch_descriptor);
    if let Some(Ok(watched)) = watched {
        procfs::signal(watched.get_ref(), rustix::process::Signal::CONT);
        if timeout(KILLED_WITHIN, ended(&watched)).await.is_err() {
            let keepers = procfs::children_of(holder.pid);
            procfs::signal(watched.get_ref(), rustix::process::Signal::KILL);
            // The death of the holder tells them to kill their commands.
            procfs::continue_keepers(&keepers);
        }
        procfs::reap(watched.get_ref());
    }
    backend.ledger.forget_holder();
}

/// Adopts a detached command and watches it from now on.
fn adopt(inner: &Arc<ProcessesInner>, entry: LedgerEntry) -> Arc<ProcessRecord> {
    let pid = entry.command.map_or(0, |command| command.pid);
    let control = AdoptedControl {
        keeper: entry.keeper,
        entry: entry.clone(),
        tasks: inner.tasks.clone(),
    };
    let record = Arc::new(ProcessRecord::new(
        ProcessFacts::of(&entry, pid),
        Box::new(control),
        None,
    ));
    inner.add(record.clone());
    let (shared, followed) = (inner.clone(), record.clone());
    inner.tasks.spawn(async move {
        let keeper = entry.keeper.and_then(ProcessIdentity::open);
        match keeper.map(crate::sys::watch_descriptor) {
            Some(Ok(keeper)) => with_keeper(&shared, &entry, &followed, &keeper).await,
            Some(Err(error)) => {
                tracing::warn!(%error, "the keeper of a detached command cannot be watched");
                without_keeper(&shared, &entry, &followed).await;
            }
            None => without_keeper(&shared, &entry, &followed).await,
        }
    });
    record
}

/// Watches a detached command by its keeper, which writes the exit file and exits when all
/// processes of the command are gone.
async fn with_keeper(
    inner: &Arc<ProcessesInner>,
    entry: &LedgerEntry,
    record: &Arc<ProcessRecord>,
    keeper: &AsyncFd<OwnedFd>,
) {
    if let Some(command) = entry.command.and_then(ProcessIdentity::open) {
        match crate::sys::watch_descriptor(command) {
            Ok(command) => ended(&command).await,
            Err(error) => tracing::warn!(%error, "a detached command cannot be watched"),
        }
    }
    // Somebody may have stopped the keeper, which then does not see the end of its command.
    procfs::signal(keeper.get_ref(), rustix::process::Signal::CONT);
    if let (Some(log), Some(identity)) = (&entry.log, entry.keeper)
        && let Err(error) = exit_or_end(log, record, identity, keeper).await
    {
        tracing::warn!(%error, "a detached command's exit is seen only at its very end");
    }
    ended(keeper).await;
    procfs::reap(keeper.get_ref());
    without_keeper(inner, entry, record).await;
}

/// Waits until the keeper shows how the command ended, or until the keeper has ended. Only its name
/// counts: the command can write the exit file, too.
async fn exit_or_end(
    log: &Path,
    record: &ProcessRecord,
    identity: ProcessIdentity,
    keeper: &AsyncFd<OwnedFd>,
) -> io::Result<()> {
    let changes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(
        &changes,
        log.parent().unwrap_or(log),
        WatchFlags::MOVED_TO | WatchFlags::ONLYDIR,
    )?;
    let changes = crate::sys::watch_descriptor(changes)?;
    loop {
        let stat = ProcStat::of(identity.pid).filter(|stat| stat.start == identity.start);
        if let Some(exit) = stat.and_then(|stat| shown_exit(&stat.name)) {
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

/// Resolves when a process has ended; its pidfd is readable from then on.
async fn ended(process: &AsyncFd<OwnedFd>) {
    if let Err(error) = process.readable().await.map(|_| ()) {
        tracing::warn!(%error, "a process cannot be watched");
    }
}

/// Watches a detached command whose keeper is gone. Only the command itself can be seen, not its
/// descendants.
pub(super) async fn without_keeper(
    inner: &Arc<ProcessesInner>,
    entry: &LedgerEntry,
    record: &Arc<ProcessRecord>,
) {
    if let Some(command) = entry.command.and_then(ProcessIdentity::open) {
        record.replace_control(Box::new(AdoptedControl {
            keeper: None,
            entry: entry.clone(),
            tasks: inner.tasks.clone(),
        }));
        match crate::sys::watch_descriptor(command) {
            Ok(command) => {
                ended(&command).await;
                procfs::reap(command.get_ref());
            }
            Err(error) => tracing::warn!(%error, "a detached command cannot be watched"),
        }
    }
    let written = entry.log.as_deref().and_then(read_exit);
    record.set_exit(written.unwrap_or(Exit::Unknown));
    inner.backend.ledger.remove(&entry.id);
    inner.finish(record);
}

/// Controls a detached command without a socket to its keeper.
#[derive(Debug)]
struct AdoptedControl {
    keeper: Option<ProcessIdentity>,
    entry: LedgerEntry,
    tasks: TaskTracker,
}

impl AdoptedControl {
    /// Sends a signal to the keeper; returns false if there is none.
    fn tell(&self, signal: rustix::process::Signal) -> bool {
        let keeper = self.keeper.and_then(ProcessIdentity::open);
        keeper.is_some_and(|keeper| {
            let told = rustix::process::pidfd_send_signal(&keeper, signal).is_ok();
            // A keeper that somebody stopped acts only after this.
            procfs::signal(&keeper, rustix::process::Signal::CONT);
            told
        })
    }
}

impl ProcessControl for AdoptedControl {
    fn signal(&self, signal: Signal) {
        let told = match signal {
            Signal::Kill => self.tell(keeper::KILL),
            _ => self.tell(keeper::TERMINATE),
        };
        let number = rustix::process::Signal::from_named_raw(signal.number());
        if !told
            && let Some(signal) = number
            && let Some(command) = self.entry.command.and_then(ProcessIdentity::open)
        {
            // Fails for a command that has just ended.
            rustix::process::pidfd_send_signal(&command, signal).ok();
        }
    }

    fn kill(&self) {
        if !self.tell(keeper::KILL) {
            let entry = self.entry.clone();
            self.tasks.spawn(kill_without_keeper(vec![entry]));
        }
    }
}
