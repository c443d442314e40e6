//! Starts commands as plain children with a process group each, where the system has no holder: what
//! leaves its group escapes, and so does everything when the daemon is killed. Windows kills only the
//! command itself; job objects are not used yet.

#![expect(
    clippy::unused_async,
    reason = "the holder, which this stands in for, has to be waited for"
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

use super::record::{Control, Facts, Record};
use super::{Class, Exit, Inner, Io, Owned, Signal, Spawn, SpawnError, TAG};

/// Needs nothing to start a child.
#[derive(Debug)]
pub(super) struct Backend;

impl Backend {
    pub(super) fn new(_home: &Path) -> Self {
        Self
    }

    pub(super) async fn close(&self) {}
}

/// Nothing is found again on this system.
pub(super) async fn recover(_inner: &Arc<Inner>) -> Vec<Arc<Record>> {
    Vec::new()
}

pub(super) async fn spawn(inner: &Arc<Inner>, spawn: Spawn) -> Result<Owned, SpawnError> {
    let id = ProcessId::from(inner.clock.id());
    let mut command = Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .current_dir(&spawn.cwd)
        .env_clear()
        .envs(&spawn.env)
        .env(TAG, id.as_str());
    let mut ends = Ends::default();
    wire(&mut command, &spawn, &mut ends)?;
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
    // Our copies of the command's ends go, or its pipes would never end.
    drop(command);
    let class = spawn.lifetime.class();
    let facts = Facts {
        id,
        pid: child.id().unwrap_or_default(),
        class,
        session: spawn.session,
        label: spawn.label,
        started: inner.clock.now(),
        log: spawn.lifetime.log().map(Path::to_path_buf),
    };
    let control = Arc::new(Reach {
        group: Group::of(&child),
        kill: Notify::new(),
    });
    let stay = (class != Class::Detached).then(|| inner.keep_alive.work());
    let record = Arc::new(Record::new(facts, Box::new(control.clone()), stay));
    inner.add(record.clone());
    let mut owned = Owned::of(record.clone());
    owned.output = ends.output;
    owned.errors = ends.errors;
    owned.input = ends.input;
    let inner_too = inner.clone();
    inner.tasks.spawn(async move {
        watch(child, &control, &record).await;
        inner_too.finish(&record);
    });
    Ok(owned)
}

/// Waits for the command and then for what it left behind.
async fn watch(mut child: Child, control: &Reach, record: &Record) {
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            () = control.kill.notified() => {
                // Fails for a child that has ended, which is what was wanted.
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
struct Reach {
    group: Group,
    kill: Notify,
}

impl Control for Arc<Reach> {
    fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    fn kill(&self) {
        self.group.signal(Signal::Kill);
        self.kill.notify_one();
    }
}

/// Our ends of a command's pipes.
#[derive(Default)]
struct Ends {
    output: Option<super::OutputPipe>,
    errors: Option<super::OutputPipe>,
    input: Option<super::InputPipe>,
}

fn wire(command: &mut Command, spawn: &Spawn, ends: &mut Ends) -> Result<(), SpawnError> {
    if !matches!(spawn.io, Io::Terminal { .. }) {
        // Who leads a session leads a group as well, and cannot lead one before.
        group::lead(command);
    }
    match &spawn.io {
        Io::Merged => {
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            let errors = writer.try_clone().map_err(SpawnError::Pipe)?;
            ends.output = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        }
        Io::Piped => {
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            ends.output = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stdout(writer);
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            ends.errors = Some(group::output(reader).map_err(SpawnError::Pipe)?);
            command.stderr(writer);
            let (reader, writer) = io::pipe().map_err(SpawnError::Pipe)?;
            ends.input = Some(group::input(writer).map_err(SpawnError::Pipe)?);
            command.stdin(reader);
        }
        Io::Terminal { tty } => {
            group::terminal(command, tty).map_err(|source| SpawnError::Terminal {
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
