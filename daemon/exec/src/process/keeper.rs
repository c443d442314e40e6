//! The process above one command. Whatever the command starts, and however that cuts itself loose,
//! ends up below its keeper, which can therefore end all of it and knows when none is left.
//!
//! It is a copy of the holder (`holder.rs`), with one thread and no runtime. It signals nothing but its
//! own children, whose pids nobody else can have before it has waited for them: killing the children
//! until there are none reaches everything, because what a dead child leaves becomes a child.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::Exit;
use super::census::{Identity, own_children};
use super::ledger::{self, Line};
use super::message::{Kind, Order, Report, Stage, Wiring, Wish};
use crate::sys::alone::Alone;

/// Asks a keeper to end its command's group, when there is no daemon with a socket.
pub(super) const TERMINATE: Signal = Signal::USR1;
/// Asks a keeper to kill everything.
pub(super) const KILL: Signal = Signal::USR2;

/// The signals that keepers and their holder take as data; those of a terminal mean nothing to them.
pub(super) const TAKEN: [Signal; 6] = [
    Signal::CHILD,
    Signal::HUP,
    Signal::INT,
    Signal::TERM,
    TERMINATE,
    KILL,
];

/// How long is waited for a killed child before the next look.
const BETWEEN_KILLS: Duration = Duration::from_millis(10);

/// Keeps one command until nothing of it lives.
pub(super) fn run(alone: &Alone, kind: Kind, holder: Pid, mut descriptors: Vec<OwnedFd>) {
    if descriptors.len() < 2 {
        return;
    }
    let daemon = descriptors.remove(0);
    let failed = |stage, error: &io::Error| {
        let errno = error.raw_os_error().unwrap_or_default();
        Report::Failed { stage, errno }.send(&daemon);
    };
    let signals = match alone.take_notes().and_then(|signals| {
        settle(kind, holder)?;
        Ok(signals)
    }) {
        Ok(signals) => signals,
        Err(error) => return failed(Stage::Keeper, &error),
    };
    let Some(order) = Order::read(descriptors.remove(0)) else {
        return failed(Stage::Keeper, &io::Error::from_raw_os_error(libc::EINVAL));
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
        // The daemon goes on while the ledger is written.
        Kind::Attached => {
            keeper.started();
            keeper.note(&order);
        }
        // Who hears of it can find it.
        Kind::Detached => {
            keeper.note(&order);
            keeper.started();
        }
    }
    keeper.keep(alone, &signals);
    ledger::remove(&order.ledger);
    keeper.report(Report::Empty);
}

/// Makes this process the one that orphans come to, and lets it end with the holder.
fn settle(kind: Kind, holder: Pid) -> io::Result<()> {
    rustix::thread::set_name(c"loopd-keeper")?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    match kind {
        Kind::Attached => {
            rustix::process::set_parent_process_death_signal(Some(KILL))?;
            if rustix::process::getppid() != Some(holder) {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Kind::Detached => {
            rustix::process::setsid()?;
        }
    }
    Ok(())
}

fn start(order: &Order, descriptors: Vec<OwnedFd>) -> Result<Pid, (Stage, io::Error)> {
    let program = |error| (Stage::Program, error);
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
    match &order.wiring {
        Wiring::One => {
            let output = descriptors.next().ok_or_else(|| program(missing()))?;
            let errors = output.try_clone().map_err(program)?;
            command
                .stdin(Stdio::null())
                .stdout(output)
                .stderr(errors)
                .process_group(0);
        }
        Wiring::Three => {
            let mut next = || descriptors.next().ok_or_else(|| program(missing()));
            command
                .stdin(next()?)
                .stdout(next()?)
                .stderr(next()?)
                .process_group(0);
        }
        Wiring::Terminal(tty) => {
            terminal(&mut command, tty).map_err(|error| (Stage::Terminal, error))?;
        }
    }
    match command.spawn() {
        Ok(child) => Pid::from_raw(child.id().cast_signed()).ok_or_else(|| program(missing())),
        Err(error) if !order.cwd.is_dir() => Err((Stage::Folder, error)),
        Err(error) => Err(program(error)),
    }
}

fn terminal(command: &mut Command, tty: &Path) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(tty, flags, Mode::empty())?;
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal);
    crate::sys::own_terminal_on_stdin(command);
    Ok(())
}

fn missing() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

fn as_os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// Looks a bare name up in the command's own `PATH`; done here, because the standard library copies
/// the process the slow way when it has to look itself.
fn find(order: &Order) -> io::Result<PathBuf> {
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
    kind: Kind,
    daemon: Option<OwnedFd>,
    /// Until it has been waited for, so that its number is its own.
    command: Option<Pid>,
    group: Pid,
    log: Option<PathBuf>,
    killing: bool,
}

impl Keeper {
    fn started(&self) {
        self.report(Report::Started {
            pid: self.group.as_raw_pid(),
            keeper: std::process::id().cast_signed(),
        });
    }

    /// Notes in the ledger, and beside its log, that the command runs.
    fn note(&mut self, order: &Order) {
        if let Err(error) = self.try_note(order) {
            let errno = error.raw_os_error().unwrap_or_default();
            self.report(Report::Unlisted { errno });
        }
    }

    fn try_note(&mut self, order: &Order) -> io::Result<()> {
        let mut line: Line = serde_json::from_str(&order.line)?;
        line.command = Identity::of(self.group.as_raw_pid());
        if self.kind == Kind::Detached {
            line.keeper = Identity::of(std::process::id().cast_signed());
        }
        self.log.clone_from(&line.log);
        ledger::write(&order.ledger, &line)?;
        if let Some(log) = &line.log {
            let text = format!("{}\n", self.group.as_raw_pid());
            ledger::write_beside(&ledger::pid_file(log), &text)?;
        }
        Ok(())
    }

    /// Resolves when there is no child any more.
    fn keep(&mut self, alone: &Alone, signals: &PipeReader) {
        loop {
            if self.killing {
                self.kill_children();
            }
            if self.bury() == Children::None {
                return;
            }
            self.wait(signals);
            while let Some(signal) = alone.next_signal(signals) {
                if signal == KILL.as_raw() {
                    self.killing = true;
                } else if signal == TERMINATE.as_raw() {
                    self.signal_group(Signal::TERM);
                }
            }
            self.listen();
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
        // Woken early or not, everything is looked at again.
        poll(&mut sources, timeout.as_ref()).ok();
    }

    fn listen(&mut self) {
        while let Some(daemon) = &self.daemon {
            match Wish::receive(daemon) {
                Ok(Some(Wish::Kill)) => self.killing = true,
                Ok(Some(Wish::Signal(number))) => {
                    if let Some(signal) = Signal::from_named_raw(number) {
                        self.signal_group(signal);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => {
                    self.daemon = None;
                    if self.kind == Kind::Attached {
                        self.killing = true;
                    }
                }
            }
        }
    }

    /// Signals the command's group, of which only children are known for sure once it has ended.
    fn signal_group(&self, signal: Signal) {
        if self.command.is_some() {
            // Fails only when nobody of the group is left.
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
            // Fails for nobody: a child is there until it has been waited for.
            rustix::process::kill_process(child, Signal::KILL).ok();
        }
    }

    /// Waits for the children that have ended.
    fn bury(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if self.command == Some(pid) => {
                    self.command = None;
                    self.ended(exit(ExitStatus::from_raw(status.as_raw())));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return Children::Some,
                Err(_) => return Children::None,
            }
        }
    }

    fn ended(&mut self, exit: Exit) {
        if let Some(log) = &self.log {
            let text = ledger::exit_text(exit);
            // Nobody is there to be told; the daemon says "unknown" of a command without this file.
            ledger::write_beside(&ledger::exit_file(log), &text).ok();
        }
        self.report(Report::Exited(exit));
    }

    fn report(&self, report: Report) {
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
