//! The keeper: the parent process of one command. It is a subreaper, so every descendant of the
//! command stays below it, even one that daemonises itself. The keeper can therefore kill all of
//! them and knows when none is left.
//!
//! A keeper is a fork of the holder (`holder.rs`), with one thread and no async runtime. It signals
//! only its own children and the command's group; the pid of a child cannot be reused before the
//! keeper has reaped it. Killing children until there are none reaches every descendant, because
//! the children of a dead child become children of the keeper.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::ancestry::KEEPER_NAME;
use super::ledger::{self, LedgerEntry};
use super::message::{
    KeeperKind, KeeperOrder, KeeperReport, KeeperRequest, StartStage, StdioSource,
};
use super::procfs::{ProcessIdentity, own_children};
use super::{CONTROL, Exit};
use crate::sandbox::Confinement;
use crate::sys::single_thread::SingleThread;

/// The signal that makes a keeper send SIGTERM to its command's group. Used by a daemon that has no
/// socket to the keeper.
pub(super) const TERMINATE: Signal = Signal::USR1;
/// The signal that makes a keeper kill all processes of its command.
pub(super) const KILL: Signal = Signal::USR2;

/// The signals that keepers and the holder read from a pipe. Those of a terminal are ignored.
pub(super) const HANDLED_SIGNALS: [Signal; 6] = [
    Signal::CHILD,
    Signal::HUP,
    Signal::INT,
    Signal::TERM,
    TERMINATE,
    KILL,
];

/// How long to wait for killed children before the next attempt.
const BETWEEN_KILLS: Duration = Duration::from_millis(10);

/// Starts a command and returns when all its processes are gone.
pub(super) fn run(
    thread: &SingleThread,
    kind: KeeperKind,
    holder: Pid,
    mut descriptors: Vec<OwnedFd>,
) {
    if descriptors.len() < 2 {
        return;
    }
    let daemon = descriptors.remove(0);
    let failed = |stage, error: &io::Error| {
        let errno = error.raw_os_error().unwrap_or_default();
        KeeperReport::Failed { stage, errno }.send(&daemon);
    };
    let signals = match thread.open_signal_pipe().and_then(|signals| {
        become_subreaper(kind, holder)?;
        Ok(signals)
    }) {
        Ok(signals) => signals,
        Err(error) => return failed(StartStage::Keeper, &error),
    };
    let Some(order) = KeeperOrder::read(descriptors.remove(0)) else {
        return failed(
            StartStage::Keeper,
            &io::Error::from_raw_os_error(libc::EINVAL),
        );
    };
    let command = match start(&order, descriptors) {
        Ok(command) => command,
        Err((stage, error)) => return failed(stage, &error),
    };
    let mut keeper = Keeper {
        kind,
        daemon: Some(daemon),
        command: Some(command),
        group: command,
        log: None,
        killing: false,
    };
    match kind {
        // Report first: the daemon need not wait for the ledger.
        KeeperKind::Attached => {
            keeper.report_started();
            keeper.write_ledger(&order);
        }
        // Write the ledger first: a daemon that crashes after the report must find the command.
        KeeperKind::Detached => {
            keeper.write_ledger(&order);
            keeper.report_started();
        }
    }
    keeper.supervise(thread, &signals);
    ledger::remove(&order.ledger);
    keeper.report(KeeperReport::Empty);
}

/// Makes this process a subreaper and, if attached, ties its end to that of the holder.
fn become_subreaper(kind: KeeperKind, holder: Pid) -> io::Result<()> {
    rustix::thread::set_name(KEEPER_NAME)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    match kind {
        KeeperKind::Attached => {
            rustix::process::set_parent_process_death_signal(Some(KILL))?;
            if rustix::process::getppid() != Some(holder) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        KeeperKind::Detached => {
            rustix::process::setsid()?;
        }
    }
    Ok(())
}

fn start(order: &KeeperOrder, descriptors: Vec<OwnedFd>) -> Result<Pid, (StartStage, io::Error)> {
    let program = |error| (StartStage::Program, error);
    let found = find(order).map_err(program)?;
    let mut command = Command::new(found);
    command
        .arg0(&order.program)
        .args(&order.args)
        .current_dir(&order.cwd)
        .env_clear();
    for variable in &order.env {
        let bytes = variable.as_encoded_bytes();
        if let Some(at) = bytes.iter().position(|byte| *byte == b'=') {
            let (name, value) = bytes.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            command.env(as_os(name), as_os(value));
        }
    }
    let mut descriptors = descriptors.into_iter();
    match &order.stdio {
        StdioSource::One => {
            let output = descriptors.next().ok_or_else(|| program(missing()))?;
            let errors = output.try_clone().map_err(program)?;
            command
                .stdin(Stdio::null())
                .stdout(output)
                .stderr(errors)
                .process_group(0);
        }
        StdioSource::Three => {
            let mut next = || descriptors.next().ok_or_else(|| program(missing()));
            command
                .stdin(next()?)
                .stdout(next()?)
                .stderr(next()?)
                .process_group(0);
        }
        StdioSource::Terminal(tty) => {
            let control = descriptors.next().ok_or_else(|| program(missing()))?;
            terminal(&mut command, tty, &control).map_err(|error| (StartStage::Terminal, error))?;
        }
    }
    if let Some(network) = order.sandbox {
        let scratch = descriptors.next_back();
        let scratch = scratch.ok_or_else(|| (StartStage::Sandbox, missing()))?;
        // After the terminal: the command has to become the leader of a session first.
        let tty = match &order.stdio {
            StdioSource::Terminal(tty) => Some(tty.as_path()),
            StdioSource::One | StdioSource::Three => None,
        };
        // The ledger is a folder in the home.
        let home = order.ledger.ancestors().nth(2).unwrap_or(&order.ledger);
        let confinement = Confinement::of(network, &scratch, tty, home);
        let confinement = confinement.map_err(|error| (StartStage::Sandbox, error))?;
        crate::sys::before_exec(&mut command, move || confinement.enter());
    }
    match command.spawn() {
        Ok(child) => Pid::from_raw(child.id().cast_signed()).ok_or_else(|| program(missing())),
        Err(error) if !order.cwd.is_dir() => Err((StartStage::Folder, error)),
        Err(error) => Err(program(error)),
    }
}

fn terminal(command: &mut Command, tty: &Path, control: &OwnedFd) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(tty, flags, Mode::empty())?;
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal);
    crate::sys::own_terminal_on_stdin(command, control, CONTROL)
}

fn missing() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

fn as_os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Looks up a bare program name in the command's own `PATH`. The standard library could do this,
/// but would then use a slow fork instead of `posix_spawn`.
fn find(order: &KeeperOrder) -> io::Result<PathBuf> {
    if order.program.components().count() != 1 || order.program.is_absolute() {
        return Ok(order.cwd.join(&order.program));
    }
    let path = order
        .env
        .iter()
        .find_map(|variable| variable.as_encoded_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    let mut worst = io::Error::from_raw_os_error(libc::ENOENT);
    for folder in path.split(|byte| *byte == b':') {
        let found = order.cwd.join(as_os(folder)).join(&order.program);
        match rustix::fs::access(&found, rustix::fs::Access::EXEC_OK) {
            Ok(()) if !found.is_dir() => return Ok(found),
            Err(rustix::io::Errno::ACCESS) => worst = io::Error::from_raw_os_error(libc::EACCES),
            Ok(()) | Err(_) => {}
        }
    }
    Err(worst)
}

struct Keeper {
    kind: KeeperKind,
    daemon: Option<OwnedFd>,
    /// `None` after it was reaped, because its pid may be reused from then on.
    command: Option<Pid>,
    group: Pid,
    log: Option<PathBuf>,
    killing: bool,
}

impl Keeper {
    fn report_started(&self) {
        self.report(KeeperReport::Started {
            pid: self.group.as_raw_pid(),
            keeper: std::process::id().cast_signed(),
        });
    }

    /// Writes the ledger file, and the pid file beside the log of a detached command.
    fn write_ledger(&mut self, order: &KeeperOrder) {
        if let Err(error) = self.try_write_ledger(order) {
            let errno = error.raw_os_error().unwrap_or_default();
            self.report(KeeperReport::LedgerFailed { errno });
        }
    }

    fn try_write_ledger(&mut self, order: &KeeperOrder) -> io::Result<()> {
        let mut entry: LedgerEntry = serde_json::from_str(&order.entry)?;
        entry.command = ProcessIdentity::of(self.group.as_raw_pid());
        entry.keeper = ProcessIdentity::of(std::process::id().cast_signed());
        self.log.clone_from(&entry.log);
        ledger::write(&order.ledger, &entry)?;
        if let Some(log) = &entry.log {
            let text = format!("{}\n", self.group.as_raw_pid());
            ledger::write_beside(&ledger::pid_file(log), &text)?;
        }
        Ok(())
    }

    /// Returns when there are no children left.
    fn supervise(&mut self, thread: &SingleThread, signals: &PipeReader) {
        loop {
            if self.killing {
                self.kill_children();
            }
            if self.reap() == Children::None {
                return;
            }
            self.wait(signals);
            while let Some(signal) = thread.next_signal(signals) {
                if signal == KILL.as_raw() {
                    self.killing = true;
                } else if signal == TERMINATE.as_raw() {
                    self.signal_group(Signal::TERM);
                }
            }
            self.handle_requests();
        }
    }

    fn wait(&self, signals: &PipeReader) {
        let mut sources = vec![PollFd::new(signals, PollFlags::IN)];
        if let Some(daemon) = &self.daemon {
            sources.push(PollFd::new(daemon, PollFlags::IN));
        }
        let timeout = self
            .killing
            .then(|| Timespec::try_from(BETWEEN_KILLS).unwrap_or_default());
        // The result does not matter: all sources are checked again.
        poll(&mut sources, timeout.as_ref()).ok();
    }

    fn handle_requests(&mut self) {
        while let Some(daemon) = &self.daemon {
            match KeeperRequest::receive(daemon) {
                Ok(Some(KeeperRequest::Kill)) => self.killing = true,
                Ok(Some(KeeperRequest::Signal(number))) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.signal_group(signal);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    self.daemon = None;
                    if self.kind == KeeperKind::Attached {
                        self.killing = true;
                    }
                }
            }
        }
    }

    /// Signals the command's process group. After the command has ended, its group id may be
    /// reused, so only children of the keeper are signalled.
    fn signal_group(&self, signal: Signal) {
        if self.command.is_some() {
            // Fails only if the group is empty.
            rustix::process::kill_process_group(self.group, signal).ok();
            return;
        }
        for child in own_children().into_iter().filter_map(Pid::from_raw) {
            if rustix::process::getpgid(Some(child)) == Ok(self.group) {
                rustix::process::kill_process(child, signal).ok();
            }
        }
    }

    fn kill_children(&self) {
        if self.command.is_some() {
            rustix::process::kill_process_group(self.group, Signal::KILL).ok();
        }
        for child in own_children().into_iter().filter_map(Pid::from_raw) {
            // Cannot fail: a child exists until it is reaped.
            rustix::process::kill_process(child, Signal::KILL).ok();
        }
    }

    /// Reaps the children that have ended.
    fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if self.command == Some(pid) => {
                    self.command = None;
                    self.report_exit(exit(ExitStatus::from_raw(status.as_raw())));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
    }

    fn report_exit(&mut self, exit: Exit) {
        if let Some(log) = &self.log {
            // The name comes first: the file tells the daemon to look at it. Everybody can write
            // the file, but only this process can change its name.
            ledger::show_exit(exit);
            let text = ledger::exit_text(exit);
            // A failure cannot be reported here. The daemon treats a missing exit file as an
            // unknown exit.
            ledger::write_beside(&ledger::exit_file(log), &text).ok();
        }
        self.report(KeeperReport::Exited(exit));
    }

    fn report(&self, report: KeeperReport) {
        if let Some(daemon) = &self.daemon {
            report.send(daemon.as_fd());
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}
