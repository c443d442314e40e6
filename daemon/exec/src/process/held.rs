//! The daemon's side on Linux: orders commands from the holder (`held/link.rs`) and receives the
//! reports of each keeper. `held/adopt.rs` handles the processes that earlier daemons left.

mod adopt;
mod link;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::id::ProcessId;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::ancestry::{PeerJudge, PeerOrigin};
use super::ledger::{Ledger, LedgerEntry};
use super::message::{
    KeeperKind, KeeperOrder, KeeperReport, KeeperRequest, StartStage, StdioSource,
};
use super::procfs::{self, KillOutcome, ProcStat, ProcessIdentity};
use super::record::{ProcessControl, ProcessFacts, ProcessRecord};
use super::{
    Class, InputPipe, Io, OutputPipe, OutputSocket, OwnedProcess, ProcessesInner, Signal, Spawn,
    SpawnError, TAG, control_socket,
};

use crate::sandbox::SandboxError;
use link::HolderLink;

pub(super) use adopt::recover;

/// How long a keeper may take to start its command.
const START_WITHIN: Duration = Duration::from_secs(10);

/// How long a keeper may take to kill its command before the daemon kills both: a short time if
/// somebody stopped the keeper, and a longer one if the machine is just slow.
const STOPPED_KEEPER_KILLS_WITHIN: Duration = Duration::from_millis(600);
const KEEPER_KILLS_WITHIN: Duration = Duration::from_secs(5);

/// How often a keeper that is slow to kill is looked at.
const LOOK_AT_KEEPER: Duration = Duration::from_millis(200);

/// The link to the holder, and the ledger.
#[derive(Debug)]
pub(super) struct ProcessBackend {
    link: HolderLink,
    ledger: Ledger,
    boot: String,
    /// The keepers of the detached commands that an earlier daemon started.
    adopted: Mutex<HashSet<ProcessIdentity>>,
    peers: PeerJudge,
}

impl ProcessBackend {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            link: HolderLink::default(),
            ledger: Ledger::of(home),
            boot: procfs::boot(),
            adopted: Mutex::default(),
            peers: PeerJudge::default(),
        }
    }

    pub(super) fn origin_of_peer(&self, socket: BorrowedFd<'_>) -> PeerOrigin {
        self.peers.origin_of_peer(socket, &self.adopted.lock())
    }

    /// Ends the holder, which kills the remaining processes.
    pub(super) async fn close(&self) {
        self.link.close().await;
    }
}

/// The daemon's end of the socket to a keeper.
type Socket = AsyncFd<OwnedFd>;

pub(super) async fn spawn(
    inner: &Arc<ProcessesInner>,
    spawn: Spawn,
) -> Result<OwnedProcess, SpawnError> {
    if spawn.lifetime.class() != Class::Detached {
        return order_command(inner, spawn).await;
    }
    // A detached command is never killed automatically, so it must be in the list even if the
    // caller of this function is cancelled.
    let shared = inner.clone();
    let ordered = inner
        .tasks
        .spawn(async move { order_command(&shared, spawn).await });
    ordered
        .await
        .unwrap_or_else(|error| Err(SpawnError::Holder(io::Error::other(error))))
}

async fn order_command(
    inner: &Arc<ProcessesInner>,
    spawn: Spawn,
) -> Result<OwnedProcess, SpawnError> {
    let backend = &inner.backend;
    backend.ledger.prepare().map_err(SpawnError::Holder)?;
    let id = ProcessId::from(inner.clock.id());
    let class = spawn.lifetime.class();
    let counts = spawn.counts_as_work();
    let entry = LedgerEntry {
        id: id.clone(),
        class,
        session: spawn.session.clone(),
        label: spawn.label.clone(),
        started: inner.clock.now(),
        log: spawn.lifetime.log().map(Path::to_path_buf),
        boot: backend.boot.clone(),
        command: None,
        keeper: None,
    };
    let pipes = CommandPipes::of(&spawn)?;
    let order = KeeperOrder {
        program: spawn.program.clone(),
        args: spawn.args,
        env: environment(spawn.env, &id),
        cwd: spawn.cwd.clone(),
        stdio: pipes.stdio,
        sandbox: spawn.sandbox.as_ref().map(|sandbox| sandbox.network),
        ledger: backend.ledger.path(&id),
        entry: serde_json::to_string(&entry).map_err(|error| SpawnError::Holder(error.into()))?,
    };
    let file = order.write().map_err(|source| SpawnError::Program {
        program: spawn.program.clone(),
        source,
    })?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|error| SpawnError::Pipe(error.into()))?;
    let socket = Arc::new(crate::sys::watch_descriptor(ours).map_err(SpawnError::Pipe)?);
    let kind = match class {
        Class::Detached => KeeperKind::Detached,
        Class::Turn | Class::Session | Class::Daemon => KeeperKind::Attached,
    };
    let mut descriptors = vec![theirs, file];
    descriptors.extend(pipes.theirs);
    if let Some(sandbox) = &spawn.sandbox {
        let scratch = sandbox.scratch.descriptor();
        descriptors.push(scratch.map_err(SandboxError::Failed)?);
    }
    backend
        .link
        .order(inner, kind, &descriptors)
        .await
        .map_err(SpawnError::Holder)?;
    // Close our copies of the command's pipe ends, or its pipes would never reach end of file.
    drop(descriptors);
    let started = tokio::time::timeout(START_WITHIN, wait_started(&socket)).await;
    let (pid, keeper) = match started.unwrap_or_else(|_| Err(NotStarted::too_late())) {
        Ok(started) => started,
        Err(NotStarted { stage, error }) => {
            return Err(match (stage, order.stdio) {
                (StartStage::Folder, _) => SpawnError::NoFolder(spawn.cwd),
                (StartStage::Terminal, StdioSource::Terminal(tty)) => {
                    SpawnError::Terminal { tty, source: error }
                }
                (StartStage::Keeper, _) => SpawnError::Holder(error),
                (StartStage::Sandbox, _) => SandboxError::Failed(error).into(),
                (StartStage::Program | StartStage::Terminal, _) => SpawnError::Program {
                    program: spawn.program,
                    source: error,
                },
            });
        }
    };
    let facts = ProcessFacts::of(&entry, pid);
    let keep_alive = counts.then(|| inner.keep_alive.work());
    let record = Arc::new(ProcessRecord::new(
        facts,
        Box::new(socket.clone()),
        keep_alive,
    ));
    inner.add(record.clone());
    let mut owned = OwnedProcess::of(record.clone(), &inner.keep_alive);
    owned.output = pipes.output;
    owned.output_socket = pipes.output_socket;
    owned.errors = pipes.errors;
    owned.input = pipes.input;
    owned.control = pipes.control;
    let shared = inner.clone();
    inner
        .tasks
        .spawn(async move { follow_reports(&shared, entry, &record, &socket, keeper).await });
    Ok(owned)
}

impl ProcessFacts {
    fn of(entry: &LedgerEntry, pid: i32) -> Self {
        Self {
            id: entry.id.clone(),
            pid: pid.cast_unsigned(),
            class: entry.class,
            session: entry.session.clone(),
            label: entry.label.clone(),
            started: entry.started,
            log: entry.log.clone(),
        }
    }
}

fn environment(env: BTreeMap<String, String>, id: &ProcessId) -> Vec<OsString> {
    env.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| *name != TAG)
        .chain([(TAG, id.as_str())])
        .map(|(name, value)| format!("{name}={value}").into())
        .collect()
}

struct NotStarted {
    stage: StartStage,
    error: io::Error,
}

impl NotStarted {
    fn too_late() -> Self {
        let seconds = START_WITHIN.as_secs();
        Self {
            stage: StartStage::Keeper,
            error: io::Error::other(format!("the command did not start within {seconds} s")),
        }
    }
}

/// Waits for the report that the command runs; returns its pid and that of its keeper.
async fn wait_started(socket: &Socket) -> Result<(i32, i32), NotStarted> {
    loop {
        let (stage, error) = match receive(socket).await {
            Ok(Some(KeeperReport::Started { pid, keeper })) => return Ok((pid, keeper)),
            Ok(Some(KeeperReport::Failed { stage, errno })) => {
                (stage, io::Error::from_raw_os_error(errno))
            }
            Ok(Some(KeeperReport::LedgerFailed { errno })) => {
                warn_ledger_failed(errno);
                continue;
            }
            Ok(Some(KeeperReport::Exited(_) | KeeperReport::Empty)) => {
                (StartStage::Keeper, io::ErrorKind::InvalidData.into())
            }
            Ok(None) => (
                StartStage::Keeper,
                io::Error::other("it ended before the command was started"),
            ),
            Err(error) => (StartStage::Keeper, error),
        };
        return Err(NotStarted { stage, error });
    }
}

fn warn_ledger_failed(errno: i32) {
    let error = io::Error::from_raw_os_error(errno);
    tracing::warn!(%error, "a command could not be noted in the ledger of processes");
}

async fn receive(socket: &Socket) -> io::Result<Option<KeeperReport>> {
    loop {
        let mut ready = socket.readable().await?;
        match ready.try_io(|socket| KeeperReport::receive(socket.get_ref())) {
            Ok(received) => return received,
            Err(_would_block) => {}
        }
    }
}

/// Handles the reports of a keeper until all processes of the command are gone.
async fn follow_reports(
    inner: &Arc<ProcessesInner>,
    mut entry: LedgerEntry,
    record: &Arc<ProcessRecord>,
    socket: &Socket,
    keeper: i32,
) {
    let mut clean = false;
    let mut forced = false;
    let overdue = kill_overdue(record, keeper);
    let mut overdue = std::pin::pin!(overdue);
    loop {
        let report = tokio::select! {
            report = receive(socket) => report,
            () = &mut overdue, if !forced => {
                forced = true;
                tracing::warn!(id = %entry.id, "the keeper of a command does not kill it");
                // The keeper has its end of the socket open: its pid is not reused.
                entry.keeper = ProcessIdentity::of(keeper);
                entry.command = ProcessIdentity::of(record.pid().cast_signed());
                kill_without_keeper(vec![entry.clone()]).await;
                continue;
            }
        };
        match report {
            Ok(Some(KeeperReport::Exited(exit))) => record.set_exit(exit),
            Ok(Some(KeeperReport::Empty)) => clean = true,
            Ok(Some(KeeperReport::LedgerFailed { errno })) => warn_ledger_failed(errno),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the keeper of a command cannot be heard any more");
                break;
            }
        }
    }
    if !inner.backend.link.is_held() {
        // Without a holder the keeper is now a child of the daemon, and is about to exit.
        let waited = tokio::task::spawn_blocking(move || procfs::reap_child(keeper));
        waited.await.ok();
    }
    if !clean {
        tracing::warn!(id = %entry.id, "the keeper of a command was killed");
        if entry.class == Class::Detached {
            entry.command = ProcessIdentity::of(record.pid().cast_signed());
            return adopt::without_keeper(inner, &entry, record).await;
        }
        kill_without_keeper(vec![entry]).await;
        inner.backend.ledger.remove(record.id());
    }
    inner.finish(record);
}

/// Resolves when a requested kill takes too long.
async fn kill_overdue(record: &ProcessRecord, keeper: i32) {
    record.kill_requested().await;
    let requested = tokio::time::Instant::now();
    tokio::time::sleep(STOPPED_KEEPER_KILLS_WITHIN).await;
    let is_stopped = || ProcStat::of(keeper).is_some_and(|stat| stat.stopped);
    while requested.elapsed() < KEEPER_KILLS_WITHIN && !is_stopped() {
        tokio::time::sleep(LOOK_AT_KEEPER).await;
    }
}

/// Kills the processes of commands whose keepers are gone, found by pid or tag.
async fn kill_without_keeper(entries: Vec<LedgerEntry>) {
    let killing = tokio::task::spawn_blocking(move || {
        let tags: HashSet<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
        let known: Vec<ProcessIdentity> = entries
            .iter()
            .flat_map(|entry| [entry.keeper, entry.command])
            .flatten()
            .collect();
        procfs::kill(&tags, &known)
    });
    if !matches!(killing.await, Ok(KillOutcome::All)) {
        tracing::error!("processes without a keeper could not be killed");
    }
}

impl ProcessControl for Arc<Socket> {
    fn signal(&self, signal: Signal) {
        request(self, KeeperRequest::signal(signal));
    }

    fn kill(&self) {
        request(self, KeeperRequest::Kill);
    }
}

fn request(socket: &Socket, request: KeeperRequest) {
    // A keeper that has exited has no processes left.
    if let Err(error) = request.send(socket.get_ref().as_fd()) {
        tracing::debug!(%error, "a keeper was not told");
    }
}

/// Both ends of the pipes of a command.
struct CommandPipes {
    stdio: StdioSource,
    theirs: Vec<OwnedFd>,
    output: Option<OutputPipe>,
    output_socket: Option<OutputSocket>,
    errors: Option<OutputPipe>,
    input: Option<InputPipe>,
    control: Option<tokio::net::UnixStream>,
}

impl CommandPipes {
    fn of(spawn: &Spawn) -> Result<Self, SpawnError> {
        let mut pipes = Self {
            stdio: StdioSource::One,
            theirs: Vec::new(),
            output: None,
            output_socket: None,
            errors: None,
            input: None,
            control: None,
        };
        match &spawn.io {
            Io::Merged => {
                let (ours, theirs) = output().map_err(SpawnError::Pipe)?;
                pipes.output = Some(ours);
                pipes.theirs = vec![theirs];
            }
            Io::Piped | Io::Served => {
                let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
                let input = pipe::Sender::from_owned_fd(writer.into());
                let (ours, theirs) = output().map_err(SpawnError::Pipe)?;
                let (our_errors, their_errors) = output().map_err(SpawnError::Pipe)?;
                pipes.stdio = StdioSource::Three;
                pipes.theirs = vec![reader.into(), theirs, their_errors];
                pipes.input = Some(input.map_err(SpawnError::Pipe)?);
                pipes.output = Some(ours);
                pipes.errors = Some(our_errors);
            }
            Io::Given { input } => {
                let input = sealed(input).map_err(SpawnError::Pipe)?;
                let (ours, theirs) = output_socket().map_err(SpawnError::Pipe)?;
                let (our_errors, their_errors) = output().map_err(SpawnError::Pipe)?;
                pipes.stdio = StdioSource::Three;
                pipes.theirs = vec![input, theirs, their_errors];
                pipes.output_socket = Some(ours);
                pipes.errors = Some(our_errors);
            }
            Io::Terminal { tty } => {
                let (ours, theirs) = control_socket().map_err(SpawnError::Pipe)?;
                pipes.stdio = StdioSource::Terminal(tty.clone());
                pipes.theirs = vec![theirs];
                pipes.control = Some(ours);
            }
            Io::Log => {
                let log = spawn.lifetime.log().ok_or(SpawnError::LogWithoutDetached)?;
                pipes.theirs = vec![open_log(log).map_err(|source| SpawnError::Log {
                    log: log.to_path_buf(),
                    source,
                })?];
            }
        }
        Ok(pipes)
    }
}

fn output() -> io::Result<(OutputPipe, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
}

/// Makes a socket for the output of a command. Only who has the descriptor can write to it: a socket
/// cannot be opened by a name of /proc, as a pipe can.
fn output_socket() -> io::Result<(OutputSocket, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.shutdown(std::net::Shutdown::Write)?;
    ours.set_nonblocking(true)?;
    Ok((OutputSocket::from_std(ours)?, theirs.into()))
}

/// Makes a file in memory that nobody can change. Who opens it through /proc reads it from its
/// beginning and takes nothing from others.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    use std::io::{Seek, Write};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = std::fs::File::from(memfd_create("loopd-input", flags)?);
    file.write_all(bytes)?;
    file.rewind()?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

fn open_log(log: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(log)?;
    Ok(file.into())
}
