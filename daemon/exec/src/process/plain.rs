//! Starts commands as direct children with a process group each, on systems other than Linux.
//! Processes that leave their group are not killed, and no process is killed when the daemon is
//! killed. On Windows only the command itself is killed; job objects are not used yet.

#![expect(
    clippy::unused_async,
    reason = "the signatures are those of the Linux backend"
)]

#[cfg(unix)]
#[path = "plain/group.rs"]
mod group;
#[cfg(not(unix))]
#[path = "plain/no_group.rs"]
mod group;

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use loopd_proto::id::ProcessId;
use tokio::process::{Child, Command};
use tokio::sync::Notify;

use group::Group;

use super::record::{ProcessControl, ProcessFacts, ProcessRecord};
use super::{Class, Exit, Io, OwnedProcess, ProcessesInner, Signal, Spawn, SpawnError, TAG};

/// The backend without a holder.
#[derive(Debug)]
pub(super) struct ProcessBackend;

impl ProcessBackend {
    pub(super) fn new(_home: &Path) -> Self {
        Self
    }

    /// Keepers exist on Linux only: a command cannot be told from a client.
    #[cfg(unix)]
    pub(super) fn origin_of_peer(&self, _: std::os::fd::BorrowedFd<'_>) -> super::PeerOrigin {
        super::PeerOrigin::Outside
    }

    pub(super) async fn close(&self) {}
}

/// Recovers nothing: there is no ledger on this system.
pub(super) async fn recover(_inner: &Arc<ProcessesInner>) -> Vec<Arc<ProcessRecord>> {
    Vec::new()
}

pub(super) async fn spawn(
    inner: &Arc<ProcessesInner>,
    spawn: Spawn,
) -> Result<OwnedProcess, SpawnError> {
    // `Sandbox::prepare` has refused a sandbox on this system already.
    let id = ProcessId::from(inner.clock.id());
    let mut command = Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .current_dir(&spawn.cwd)
        .env_clear()
        .envs(&spawn.env)
        .env(TAG, id.as_str());
    let mut pipes = PipeEnds::default();
    wire(&mut command, &spawn, &mut pipes)?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(_) if !spawn.cwd.is_dir() => return Err(SpawnError::NoFolder(spawn.cwd)),
        Err(source) => {
            return Err(SpawnError::Program {
                program: spawn.program,
                source,
            });
        }
    };
    // Close our copies of the command's pipe ends, or its pipes would never reach end of file.
    drop(command);
    let class = spawn.lifetime.class();
    let counts = spawn.counts_as_work();
    let facts = ProcessFacts {
        id,
        pid: child.id().unwrap_or_default(),
        class,
        session: spawn.session,
        label: spawn.label,
        started: inner.clock.now(),
        log: spawn.lifetime.log().map(Path::to_path_buf),
    };
    let control = Arc::new(GroupControl {
        group: Group::of(&child),
        kill: Notify::new(),
    });
    let keep_alive = counts.then(|| inner.keep_alive.work());
    let record = Arc::new(ProcessRecord::new(
        facts,
        Box::new(control.clone()),
        keep_alive,
    ));
    inner.add(record.clone());
    let mut owned = OwnedProcess::of(record.clone(), &inner.keep_alive);
    owned.output = pipes.output;
    owned.errors = pipes.errors;
    owned.input = pipes.input;
    #[cfg(unix)]
    {
        owned.control = pipes.control;
    }
    let shared = inner.clone();
    inner.tasks.spawn(async move {
        watch(child, &control, &record).await;
        shared.finish(&record);
    });
    Ok(owned)
}

/// Waits for the command, then for the rest of its process group.
async fn watch(mut child: Child, control: &GroupControl, record: &ProcessRecord) {
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            () = control.kill.notified() => {
                // Fails for a child that has ended already.
                child.start_kill().ok();
                control.group.signal(Signal::Kill);
            }
        }
    };
    record.set_exit(match status {
        Ok(status) => group::exit(status),
        Err(_) => Exit::Unknown,
    });
    control.group.gone(&control.kill).await;
}

#[derive(Debug)]
struct GroupControl {
    group: Group,
    kill: Notify,
}

impl ProcessControl for Arc<GroupControl> {
    fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    fn kill(&self) {
        self.group.signal(Signal::Kill);
        self.kill.notify_one();
    }
}

/// The daemon's ends of a command's pipes.
#[derive(Default)]
struct PipeEnds {
    output: Option<super::OutputPipe>,
    errors: Option<super::OutputPipe>,
    input: Option<super::InputPipe>,
    #[cfg(unix)]
    control: Option<tokio::net::UnixStream>,
}

fn wire(command: &mut Command, spawn: &Spawn, pipes: &mut PipeEnds) -> Result<(), SpawnError> {
    if !matches!(spawn.io, Io::Terminal { .. }) {
        // With a terminal the command calls `setsid`, which fails for a process group leader.
        group::lead(command);
    }
    match &spawn.io {
        Io::Merged => {
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            let errors = writer.try_clone().map_err(SpawnError::Pipe)?;
            pipes.output = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        }
        Io::Piped | Io::Served | Io::Given { .. } => {
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            pipes.output = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stdout(writer);
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            pipes.errors = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stderr(writer);
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            pipes.input = Some(group::input(writer).map_err(SpawnError::Pipe)?);
            command.stdin(reader);
        }
        Io::Terminal { tty } => {
            let opened = group::terminal(command, tty, pipes);
            opened.map_err(|source| SpawnError::Terminal {
                tty: tty.clone(),
                source,
            })?;
        }
        Io::Log => {
            if let Some(log) = spawn.lifetime.log() {
                let failed = |source| SpawnError::Log {
                    log: log.to_path_buf(),
                    source,
                };
                let file = group::log(log).map_err(failed)?;
                let errors = file.try_clone().map_err(failed)?;
                command.stdin(Stdio::null()).stdout(file).stderr(errors);
            }
        }
    }
    Ok(())
}
