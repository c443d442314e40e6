//! Every process the daemon starts, and the promise that none outlives its purpose.
//!
//! A command belongs to a [`Lifetime`]: a turn, a session, the daemon, or nobody (`Detached`). When
//! that ends, the command and everything it started ends, however it daemonised itself, also when
//! the daemon was killed. The tools, shells and servers of sessions start their programs here and
//! nowhere else:
//!
//! ```ignore
//! let mut owned = processes.spawn(Spawn { io: Io::Merged, lifetime: Lifetime::Turn, .. }).await?;
//! let output = owned.output.take();     // the read end of its pipe
//! let exit = owned.exit().await;        // by several at once, as often as wanted
//! owned.leftovers().await;              // what it left behind is dead when this resolves
//! let exit = owned.stop(grace).await;   // SIGTERM, then SIGKILL for the whole tree
//! processes.end_session(&id).await;     // all of its turns and of itself is dead
//! processes.shutdown().await;           // all but the detached is dead
//! ```
//!
//! Dropping the `Owned` of a turn kills its tree; of the other classes it only lets go. This module
//! never decides what may run and never reads output.

#[cfg(target_os = "linux")]
mod census;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
pub mod holder;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod message;
mod owned;
#[cfg(not(target_os = "linux"))]
mod plain;
mod record;
#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loopd_proto::id::{ProcessId, SessionId};
use loopd_proto::time::Timestamp;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::keep_alive::KeepAlive;

#[cfg(target_os = "linux")]
use held as backend;
pub use loopd_proto::params::process::{ProcessClass as Class, ProcessState as State};
pub use owned::Owned;
#[cfg(not(target_os = "linux"))]
use plain as backend;
use record::Record;

/// How long everything that is killed may take to be gone.
const KILLED_WITHIN: Duration = Duration::from_secs(1);

/// The variable that marks every process of a command, for the next daemon to find it by.
pub const TAG: &str = "LOOPD_PROCESS";

/// The read end of a pipe that a command writes to.
#[cfg(unix)]
pub type OutputPipe = tokio::net::unix::pipe::Receiver;
/// The write end of a pipe that a command reads from.
#[cfg(unix)]
pub type InputPipe = tokio::net::unix::pipe::Sender;
/// The read end of a pipe that a command writes to.
#[cfg(not(unix))]
pub type OutputPipe = tokio::fs::File;
/// The write end of a pipe that a command reads from.
#[cfg(not(unix))]
pub type InputPipe = tokio::fs::File;

/// What a command dies with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifetime {
    Turn,
    Session,
    Daemon,
    /// Dies with nobody; its output goes to this file, beside which its pid and exit are kept.
    Detached {
        log: PathBuf,
    },
}

impl Lifetime {
    pub fn class(&self) -> Class {
        match self {
            Self::Turn => Class::Turn,
            Self::Session => Class::Session,
            Self::Daemon => Class::Daemon,
            Self::Detached { .. } => Class::Detached,
        }
    }

    fn log(&self) -> Option<&Path> {
        match self {
            Self::Detached { log } => Some(log),
            Self::Turn | Self::Session | Self::Daemon => None,
        }
    }
}

/// Where a command reads from and writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Io {
    /// Nothing to read; both outputs on one pipe, which keeps their order.
    Merged,
    /// A pipe each.
    Piped,
    /// A terminal, which becomes the controlling one of the command's own session.
    Terminal { tty: PathBuf },
    /// Nothing to read; both outputs appended to the log of a detached command.
    Log,
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A path, or a name that is looked up in the `PATH` of `env`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The whole environment; only the tag is added.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    pub io: Io,
    pub lifetime: Lifetime,
    pub session: Option<SessionId>,
    /// What people see in the list.
    pub label: String,
}

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("the working directory {} does not exist", .0.display())]
    NoFolder(PathBuf),
    #[error("{} could not be started: {source}", program.display())]
    Program { program: PathBuf, source: io::Error },
    #[error("no pipe could be made: {0}")]
    Pipe(#[source] io::Error),
    #[error("the terminal {} could not be opened: {source}", tty.display())]
    Terminal { tty: PathBuf, source: io::Error },
    #[error("the log {} could not be opened: {source}", log.display())]
    Log { log: PathBuf, source: io::Error },
    #[error("a command whose output goes to a log has to be detached, and the other way round")]
    LogWithoutDetached,
    #[error("the process that holds commands could not be started: {0}")]
    Holder(#[source] io::Error),
    #[error("the daemon is ending and starts nothing any more")]
    Ending,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It is gone, and nobody is left who saw how.
    Unknown,
}

/// The signals that are sent to the group of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Hangup,
    Interrupt,
    Quit,
    Terminate,
    Kill,
}

impl Signal {
    /// The number that all the systems we know give it.
    pub fn number(self) -> i32 {
        match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Quit => 3,
            Self::Kill => 9,
            Self::Terminate => 15,
        }
    }
}

/// What the list says of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: ProcessId,
    pub pid: u32,
    pub class: Class,
    pub session: Option<SessionId>,
    pub label: String,
    pub started: Timestamp,
    pub state: State,
    pub log: Option<PathBuf>,
}

/// All processes of this daemon.
#[derive(Debug, Clone)]
pub struct Processes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    keep_alive: KeepAlive,
    table: Mutex<HashMap<ProcessId, Arc<Record>>>,
    tasks: TaskTracker,
    ending: AtomicBool,
    backend: backend::Backend,
}

impl Processes {
    /// Makes the handle; nothing is started and nothing is read yet.
    pub fn new(home: &Path, keep_alive: KeepAlive) -> Self {
        Self(Arc::new(Inner {
            clock: Clock::default(),
            keep_alive,
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            ending: AtomicBool::new(false),
            backend: backend::Backend::new(home),
        }))
    }

    /// Ends what an earlier daemon of this home left and takes over its detached commands, those that
    /// ended in the meantime included; call it once, at start, while the home is locked.
    pub async fn recover(&self) -> Vec<Owned> {
        let found = backend::recover(&self.0).await;
        found.into_iter().map(Owned::of).collect()
    }

    /// Starts a command.
    pub async fn spawn(&self, mut spawn: Spawn) -> Result<Owned, SpawnError> {
        if matches!(spawn.io, Io::Log) != matches!(spawn.lifetime, Lifetime::Detached { .. }) {
            return Err(SpawnError::LogWithoutDetached);
        }
        if self.0.ending.load(Ordering::Acquire) {
            return Err(SpawnError::Ending);
        }
        let length = record::shortened(&spawn.label).len();
        spawn.label.truncate(length);
        backend::spawn(&self.0, spawn).await
    }

    /// Ends everything that may not outlive a session; it is dead when this resolves.
    pub async fn end_session(&self, session: &SessionId) {
        self.kill(|record| {
            matches!(record.class(), Class::Turn | Class::Session)
                && record.session() == Some(session)
        })
        .await;
    }

    /// Ends everything that may not outlive the daemon; it is dead when this resolves.
    pub async fn shutdown(&self) {
        self.0.ending.store(true, Ordering::Release);
        self.kill(|record| record.class() != Class::Detached).await;
        self.0.backend.close().await;
    }

    /// What is owned now, the oldest first.
    pub fn list(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self
            .0
            .table()
            .values()
            .map(|record| record.entry())
            .collect();
        entries.sort_by(|one, other| one.id.cmp(&other.id));
        entries
    }

    /// A detached command that an earlier daemon started.
    pub fn adopted(&self, id: &ProcessId) -> Option<Owned> {
        let record = self.0.table().get(id).cloned()?;
        (record.class() == Class::Detached).then(|| Owned::of(record))
    }

    /// How a detached command ended of which nothing is left, as it is written beside its log.
    pub fn written_exit(&self, log: &Path) -> Option<Exit> {
        ledger::read_exit(log)
    }

    async fn kill(&self, condemned: impl Fn(&Record) -> bool) {
        let records: Vec<Arc<Record>> = self
            .0
            .table()
            .values()
            .filter(|record| condemned(record))
            .cloned()
            .collect();
        for record in &records {
            record.kill();
        }
        let all = futures::future::join_all(records.iter().map(|record| record.gone()));
        if tokio::time::timeout(KILLED_WITHIN, all).await.is_err() {
            let left = records.iter().filter(|record| !record.is_gone()).count();
            tracing::error!(left, "killed processes are still there");
        }
    }
}

impl Inner {
    fn table(&self) -> MutexGuard<'_, HashMap<ProcessId, Arc<Record>>> {
        self.table.lock()
    }

    /// Lists a command until nothing of it is left.
    fn add(self: &Arc<Self>, record: Arc<Record>) {
        self.table().insert(record.id().clone(), record);
    }

    /// Takes a command of which nothing lives off the list.
    fn finish(&self, record: &Record) {
        self.table().remove(record.id());
        record.set_gone();
    }
}
