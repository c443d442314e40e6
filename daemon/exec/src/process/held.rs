//! The daemon's side of owning commands on Linux: orders them from the holder (`held/link.rs`) and
//! listens to the keeper of each. `held/adopt.rs` deals with what earlier daemons left.

mod adopt;
mod link;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use loopd_proto::id::ProcessId;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::census::{self, Identity, Killed};
use super::ledger::{Ledger, Line};
use super::message::{Kind, Order, Report, Stage, Wiring, Wish};
use super::record::{Control, Facts, Record};
use super::{Class, Inner, InputPipe, Io, OutputPipe, Owned, Signal, Spawn, SpawnError, TAG};

use link::Link;

pub(super) use adopt::recover;

/// The holder and the ledger.
#[derive(Debug)]
pub(super) struct Backend {
    link: Link,
    ledger: Ledger,
    boot: String,
}

impl Backend {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            link: Link::default(),
            ledger: Ledger::of(home),
            boot: census::boot(),
        }
    }

    /// Lets the holder go, which ends what is left.
    pub(super) async fn close(&self) {
        self.link.close().await;
    }
}

/// The daemon's end of the socket to a keeper.
type Socket = AsyncFd<OwnedFd>;

pub(super) async fn spawn(inner: &Arc<Inner>, spawn: Spawn) -> Result<Owned, SpawnError> {
    if spawn.lifetime.class() != Class::Detached {
        return order(inner, spawn).await;
    }
    // What nobody ends must not be started and then forgotten because the caller went away.
    let inner_too = inner.clone();
    let ordered = inner
        .tasks
        .spawn(async move { order(&inner_too, spawn).await });
    ordered
        .await
        .unwrap_or_else(|error| Err(SpawnError::Holder(io::Error::other(error))))
}

async fn order(inner: &Arc<Inner>, spawn: Spawn) -> Result<Owned, SpawnError> {
    let backend = &inner.backend;
    backend.ledger.prepare().map_err(SpawnError::Holder)?;
    let id = ProcessId::from(inner.clock.id());
    let class = spawn.lifetime.class();
    let line = Line {
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
    let ends = Ends::of(&spawn)?;
    let order = Order {
        program: spawn.program.clone(),
        args: spawn.args,
        env: environment(spawn.env, &id),
        cwd: spawn.cwd.clone(),
        wiring: ends.wiring,
        ledger: backend.ledger.path(&id),
        line: serde_json::to_string(&line).map_err(|error| SpawnError::Holder(error.into()))?,
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
        Class::Detached => Kind::Detached,
        Class::Turn | Class::Session | Class::Daemon => Kind::Attached,
    };
    let mut descriptors = vec![theirs, file];
    descriptors.extend(ends.theirs);
    backend
        .link
        .order(inner, kind, &descriptors)
        .await
        .map_err(SpawnError::Holder)?;
    // Our copies of the command's ends go, or its pipes would never end.
    drop(descriptors);
    let (pid, keeper) = match started(&socket).await {
        Ok(started) => started,
        Err(NotStarted { stage, error }) => {
            return Err(match (stage, order.wiring) {
                (Stage::Folder, _) => SpawnError::NoFolder(spawn.cwd),
                (Stage::Terminal, Wiring::Terminal(tty)) => {
                    SpawnError::Terminal { tty, source: error }
                }
                (Stage::Keeper, _) => SpawnError::Holder(error),
                (Stage::Program | Stage::Terminal, _) => SpawnError::Program {
                    program: spawn.program,
                    source: error,
                },
            });
        }
    };
    let facts = Facts::of(&line, pid);
    let stay = (class != Class::Detached).then(|| inner.keep_alive.work());
    let record = Arc::new(Record::new(facts, Box::new(socket.clone()), stay));
    inner.add(record.clone());
    let mut owned = Owned::of(record.clone());
    owned.output = ends.output;
    owned.errors = ends.errors;
    owned.input = ends.input;
    let inner_too = inner.clone();
    inner
        .tasks
        .spawn(async move { listen(&inner_too, line, &record, &socket, keeper).await });
    Ok(owned)
}

impl Facts {
    fn of(line: &Line, pid: i32) -> Self {
        Self {
            id: line.id.clone(),
            pid: pid.cast_unsigned(),
            class: line.class,
            session: line.session.clone(),
            label: line.label.clone(),
            started: line.started,
            log: line.log.clone(),
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
    stage: Stage,
    error: io::Error,
}

/// Waits for the word that the command runs.
async fn started(socket: &Socket) -> Result<(i32, i32), NotStarted> {
    loop {
        let (stage, error) = match receive(socket).await {
            Ok(Some(Report::Started { pid, keeper })) => return Ok((pid, keeper)),
            Ok(Some(Report::Failed { stage, errno })) => {
                (stage, io::Error::from_raw_os_error(errno))
            }
            Ok(Some(Report::Unlisted { errno })) => {
                unlisted(errno);
                continue;
            }
            Ok(Some(Report::Exited(_) | Report::Empty)) => {
                (Stage::Keeper, io::ErrorKind::InvalidData.into())
            }
            Ok(None) => (
                Stage::Keeper,
                io::Error::other("it ended before the command was started"),
            ),
            Err(error) => (Stage::Keeper, error),
        };
        return Err(NotStarted { stage, error });
    }
}

fn unlisted(errno: i32) {
    let error = io::Error::from_raw_os_error(errno);
    tracing::warn!(%error, "a command could not be noted in the ledger of processes");
}

async fn receive(socket: &Socket) -> io::Result<Option<Report>> {
    loop {
        let mut ready = socket.readable().await?;
        match ready.try_io(|socket| Report::receive(socket.get_ref())) {
            Ok(received) => return received,
            Err(_would_block) => {}
        }
    }
}

/// Follows a command until nothing of it lives.
async fn listen(
    inner: &Arc<Inner>,
    mut line: Line,
    record: &Arc<Record>,
    socket: &Socket,
    keeper: i32,
) {
    let mut clean = false;
    loop {
        match receive(socket).await {
            Ok(Some(Report::Exited(exit))) => record.set_exit(exit),
            Ok(Some(Report::Empty)) => clean = true,
            Ok(Some(Report::Unlisted { errno })) => unlisted(errno),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the keeper of a command cannot be heard any more");
                break;
            }
        }
    }
    if !inner.backend.link.is_held() {
        // Without a holder the keeper has become our child, and is just about to end.
        let waited = tokio::task::spawn_blocking(move || census::bury_own(keeper));
        waited.await.ok();
    }
    if !clean {
        tracing::warn!(id = %line.id, "the keeper of a command was killed");
        if line.class == Class::Detached {
            line.command = Identity::of(record.pid().cast_signed());
            return adopt::without_keeper(inner, &line, record).await;
        }
        kill_by_evidence(vec![line]).await;
        inner.backend.ledger.remove(record.id());
    }
    inner.finish(record);
}

/// Kills what no keeper keeps any more.
async fn kill_by_evidence(lines: Vec<Line>) {
    let killing = tokio::task::spawn_blocking(move || {
        let tags: HashSet<String> = lines.iter().map(|line| line.id.to_string()).collect();
        let known: Vec<Identity> = lines
            .iter()
            .flat_map(|line| [line.keeper, line.command])
            .flatten()
            .collect();
        census::kill(&tags, &known)
    });
    if !matches!(killing.await, Ok(Killed::All)) {
        tracing::error!("processes without a keeper could not be killed");
    }
}

impl Control for Arc<Socket> {
    fn signal(&self, signal: Signal) {
        wish(self, Wish::signal(signal));
    }

    fn kill(&self) {
        wish(self, Wish::Kill);
    }
}

fn wish(socket: &Socket, wish: Wish) {
    // A keeper that is gone has nothing left to end.
    if let Err(error) = wish.send(socket.get_ref().as_fd()) {
        tracing::debug!(%error, "a keeper was not told");
    }
}

/// Both ends of what a command reads and writes.
struct Ends {
    wiring: Wiring,
    theirs: Vec<OwnedFd>,
    output: Option<OutputPipe>,
    errors: Option<OutputPipe>,
    input: Option<InputPipe>,
}

impl Ends {
    fn of(spawn: &Spawn) -> Result<Self, SpawnError> {
        let mut ends = Self {
            wiring: Wiring::One,
            theirs: Vec::new(),
            output: None,
            errors: None,
            input: None,
        };
        match &spawn.io {
            Io::Merged => {
                let (ours, theirs) = output().map_err(SpawnError::Pipe)?;
                ends.output = Some(ours);
                ends.theirs = vec![theirs];
            }
            Io::Piped => {
                let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
                let input = pipe::Sender::from_owned_fd(writer.into());
                let (ours, theirs) = output().map_err(SpawnError::Pipe)?;
                let (our_errors, their_errors) = output().map_err(SpawnError::Pipe)?;
                ends.wiring = Wiring::Three;
                ends.theirs = vec![reader.into(), theirs, their_errors];
                ends.input = Some(input.map_err(SpawnError::Pipe)?);
                ends.output = Some(ours);
                ends.errors = Some(our_errors);
            }
            Io::Terminal { tty } => ends.wiring = Wiring::Terminal(tty.clone()),
            Io::Log => {
                let log = spawn.lifetime.log().ok_or(SpawnError::LogWithoutDetached)?;
                ends.theirs = vec![open_log(log).map_err(|source| SpawnError::Log {
                    log: log.to_path_buf(),
                    source,
                })?];
            }
        }
        Ok(ends)
    }
}

fn output() -> io::Result<(OutputPipe, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((pipe::Receiver::from_owned_fd(reader.into())?, writer.into()))
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
