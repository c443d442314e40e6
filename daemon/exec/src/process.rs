//! Starts and owns every process of the daemon, so that none outlives its purpose.
//!
//! A command has a [`Lifetime`]: a turn, a session, the daemon, or none (`Detached`). When its
//! lifetime ends, the command and all its descendants are killed, even if they daemonised
//! themselves or the daemon was killed. All programs of sessions are started here and nowhere else:
//!
//! ```ignore
//! let mut owned = processes.spawn(Spawn { io: Io::Merged, lifetime: Lifetime::Turn, .. }).await?;
//! let output = owned.output.take();     // the read end of its pipe
//! let exit = owned.exit().await;        // several tasks may wait, any number of times
//! owned.kill_leftovers().await;         // the processes that it left behind are dead
//! let exit = owned.stop(grace).await;   // SIGTERM, then SIGKILL for the whole process tree
//! processes.end_session(&id).await;     // all commands of the session and its turns are dead
//! processes.shutdown().await;           // all commands except detached ones are dead
//! ```
//!
//! Dropping the `OwnedProcess` of a turn kills its process tree. Dropping one of another class
//! leaves its process running.
//!
//! On Linux three kinds of processes work together. The *daemon* orders commands. The *holder*
//! (`loopd --hold-processes`), a child of the daemon, is the ancestor of all commands. A *keeper*,
//! one per command, is a fork of the holder and the parent of the command; orphans of the command
//! become its children, and it kills them. The *ledger* is a folder of files that tells the next
//! daemon which commands an earlier one left.
//!
//! This module decides no permission and reads no output.

#[cfg(target_os = "linux")]
mod ancestry;
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
#[cfg(target_os = "linux")]
mod procfs;
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
use crate::sandbox::{HomePath, Sandbox, SandboxError};

#[cfg(target_os = "linux")]
pub use ancestry::PeerOrigin;
#[cfg(target_os = "linux")]
use held as backend;
#[cfg(target_os = "linux")]
pub(crate) use ledger::read_exit;
pub use loopd_proto::params::process::{ProcessClass as Class, ProcessState as State};
pub use owned::OwnedProcess;
#[cfg(unix)]
pub(crate) use record::Activity;

/// Where the other end of a local socket runs.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerOrigin {
    Outside,
    Command,
    Unknown,
}

/// Reads the exit of a detached command. Only Linux has a keeper that writes it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read_exit(_: &Path) -> Option<Exit> {
    None
}
#[cfg(not(target_os = "linux"))]
use plain as backend;
use record::ProcessRecord;

/// How long killed processes may take to disappear.
const KILLED_WITHIN: Duration = Duration::from_secs(1);

/// The environment variable that tags every process of a command, so that the next daemon finds it.
pub(crate) const TAG: &str = "LOOPD_PROCESS";

/// The descriptor of a command on a terminal that is a socket to the daemon. Scripts use smaller
/// numbers, bash itself larger ones.
#[cfg(unix)]
pub(crate) const CONTROL: i32 = 59;

/// Makes the socket between the daemon and a command on a terminal: our end and the command's.
#[cfg(unix)]
fn control_socket() -> io::Result<(tokio::net::UnixStream, std::os::fd::OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // Before the command has its end, so that no byte comes without its sender.
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_socket_passcred(&ours, true)?;
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs.into()))
}

/// The end of a socket that a command writes to.
#[cfg(unix)]
pub type OutputSocket = tokio::net::UnixStream;
/// The end of a socket that a command writes to.
#[cfg(not(unix))]
pub type OutputSocket = tokio::fs::File;
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

/// When a command is killed: at the end of its turn, of its session or of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lifetime {
    Turn,
    Session,
    Daemon,
    /// Is never killed automatically. Its output goes to this file; its pid and exit are in files
    /// beside it.
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

/// The standard input, output and error of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Io {
    /// No input; output and error share one pipe, which keeps their order.
    Merged,
    /// One pipe each.
    Piped,
    /// One pipe each. The process waits for requests of the daemon, so that it is no work by itself.
    Served,
    /// The whole input is there from the start, and no other process can take it away. The output is
    /// a socket, which no other process can open through /proc to write to it; the errors have a
    /// pipe. On other systems than Linux all three are pipes, which have no such names there, and the
    /// caller fills the input.
    Given { input: Arc<[u8]> },
    /// A terminal, which becomes the controlling terminal of the command's own session. The
    /// descriptor [`CONTROL`] is a socket to the daemon.
    Terminal { tty: PathBuf },
    /// No input; output and error are appended to the log of a detached command.
    Log,
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// A path, or a name that is looked up in the `PATH` of `env`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The complete environment; only [`TAG`] is added.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    pub io: Io,
    pub lifetime: Lifetime,
    pub session: Option<SessionId>,
    /// The text in the process list.
    pub label: String,
    /// Confines the command and all that it starts; `None` leaves it free.
    pub sandbox: Option<Sandbox>,
}

impl Spawn {
    /// Returns whether the process itself is work. A shell on a terminal is not: `shells` counts the
    /// commands that run in it. Neither is a server: whoever waits for its answer works.
    fn counts_as_work(&self) -> bool {
        let waits = matches!(self.io, Io::Terminal { .. } | Io::Served);
        !waits && self.lifetime.class() != Class::Detached
    }
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
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
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
    /// It is gone, and its exit status is lost.
    Unknown,
}

/// The signals that can be sent to the process group of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Hangup,
    Interrupt,
    Quit,
    Terminate,
    Kill,
}

impl Signal {
    /// The signal number, which is the same on all supported systems.
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

/// A command in the process list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
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
pub struct Processes(Arc<ProcessesInner>);

#[derive(Debug)]
struct ProcessesInner {
    clock: Clock,
    keep_alive: KeepAlive,
    table: Mutex<HashMap<ProcessId, Arc<ProcessRecord>>>,
    tasks: TaskTracker,
    ending: AtomicBool,
    home: HomePath,
    backend: backend::ProcessBackend,
}

impl Processes {
    /// Creates the handle without starting anything. Links to the home are followed now, and not
    /// again.
    pub fn new(home: &Path, keep_alive: KeepAlive) -> Self {
        Self(Arc::new(ProcessesInner {
            clock: Clock::default(),
            keep_alive,
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            ending: AtomicBool::new(false),
            home: HomePath::new(home),
            backend: backend::ProcessBackend::new(home),
        }))
    }

    pub(crate) fn keep_alive(&self) -> &KeepAlive {
        &self.0.keep_alive
    }

    /// Kills processes that an earlier daemon of this home left, and adopts its detached commands,
    /// including those that ended in the meantime. Call it once, at start, while the home is
    /// locked.
    pub async fn recover(&self) -> Vec<OwnedProcess> {
        let found = backend::recover(&self.0).await;
        found
            .into_iter()
            .map(|record| OwnedProcess::of(record, &self.0.keep_alive))
            .collect()
    }

    /// Where the process runs that connected to a local socket of ours. Reads /proc.
    #[cfg(unix)]
    pub fn origin_of_peer(&self, socket: std::os::fd::BorrowedFd<'_>) -> PeerOrigin {
        self.0.backend.origin_of_peer(socket)
    }

    /// Starts a command.
    pub async fn spawn(&self, mut spawn: Spawn) -> Result<OwnedProcess, SpawnError> {
        if matches!(spawn.io, Io::Log) != matches!(spawn.lifetime, Lifetime::Detached { .. }) {
            return Err(SpawnError::LogWithoutDetached);
        }
        if self.0.ending.load(Ordering::Acquire) {
            return Err(SpawnError::Ending);
        }
        if let Some(sandbox) = &spawn.sandbox {
            sandbox.prepare(&self.0.home, &mut spawn.env)?;
        }
        let length = record::shortened(&spawn.label).len();
        spawn.label.truncate(length);
        backend::spawn(&self.0, spawn).await
    }

    /// Kills every process that must not outlive a session; all are dead when this resolves.
    pub async fn end_session(&self, session: &SessionId) {
        self.kill(|record| {
            matches!(record.class(), Class::Turn | Class::Session)
                && record.session() == Some(session)
        })
        .await;
    }

    /// Kills every process that must not outlive the daemon; all are dead when this resolves.
    pub async fn shutdown(&self) {
        self.0.ending.store(true, Ordering::Release);
        self.kill(|record| record.class() != Class::Detached).await;
        self.0.backend.close().await;
    }

    /// The commands of which a process is alive, the oldest first.
    pub fn list(&self) -> Vec<ProcessEntry> {
        let mut entries: Vec<ProcessEntry> = self
            .0
            .table()
            .values()
            .map(|record| record.entry())
            .collect();
        entries.sort_by(|one, other| one.id.cmp(&other.id));
        entries
    }

    /// Returns a detached command in the list, such as one that an earlier daemon started.
    pub fn adopted(&self, id: &ProcessId) -> Option<OwnedProcess> {
        let record = self.0.table().get(id).cloned()?;
        (record.class() == Class::Detached).then(|| OwnedProcess::of(record, &self.0.keep_alive))
    }

    async fn kill(&self, selected: impl Fn(&ProcessRecord) -> bool) {
        let records: Vec<Arc<ProcessRecord>> = self
            .0
            .table()
            .values()
            .filter(|record| selected(record))
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

impl ProcessesInner {
    fn table(&self) -> MutexGuard<'_, HashMap<ProcessId, Arc<ProcessRecord>>> {
        self.table.lock()
    }

    /// Lists a command until all its processes are gone.
    fn add(self: &Arc<Self>, record: Arc<ProcessRecord>) {
        self.table().insert(record.id().clone(), record);
    }

    /// Removes a command from the list after all its processes are gone.
    fn finish(&self, record: &ProcessRecord) {
        self.table().remove(record.id());
        record.set_gone();
    }
}
