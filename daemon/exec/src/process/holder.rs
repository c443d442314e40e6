//! The holder: the process that is the ancestor of all commands of a daemon. It is the same
//! program, started with the internal flag `--hold-processes`, with one thread and no async
//! runtime.
//!
//! It forks a keeper (`keeper.rs`) per command, continues keepers that somebody stopped, and adopts
//! the processes of keepers that were killed. When its socket closes, the daemon has ended or was killed: the holder kills everything
//! except detached commands, and exits.

use std::collections::{HashMap, HashSet};
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::ancestry::HOLDER_NAME;
use super::keeper;
use super::message::{KeeperKind, KeeperReport, StartStage, receive_order};
use super::procfs::own_children;
use crate::sys::single_thread::{Fork, SingleThread};

/// The first argument that makes the program a holder.
pub(super) const FLAG: &str = "--hold-processes";

/// How long to wait for killed children before the next attempt, and how many attempts.
const BETWEEN_KILLS: Duration = Duration::from_millis(2);
const KILLS: u32 = 5000;

/// How often a keeper is continued after somebody stopped it, before it is killed.
const MOST_STOPS: u32 = 100;

/// Whether `main` of this program has called [`run_if_asked`].
static AVAILABLE: AtomicBool = AtomicBool::new(false);

/// Runs the holder if the first argument asks for it; must be called first in `main`.
pub fn run_if_asked() -> Option<ExitCode> {
    AVAILABLE.store(true, Ordering::Relaxed);
    (std::env::args_os().nth(1)? == FLAG).then(run)
}

/// Whether this program can be started as a holder.
pub(super) fn is_available() -> bool {
    AVAILABLE.load(Ordering::Relaxed)
}

/// Runs the holder until the socket on standard input closes.
pub(super) fn run() -> ExitCode {
    match prepare() {
        Ok(mut holder) => {
            holder.hold();
            ExitCode::SUCCESS
        }
        // The daemon sees that its socket closed, and reports the failure.
        Err(_) => ExitCode::FAILURE,
    }
}

struct Holder {
    thread: SingleThread,
    own: Pid,
    /// The socket to the daemon. `None` in a keeper: an open copy there would hide the holder's end
    /// from the daemon.
    daemon: Option<OwnedFd>,
    signals: PipeReader,
    attached: HashSet<i32>,
    detached: HashSet<i32>,
    /// How often each keeper was stopped.
    stops: HashMap<i32, u32>,
    /// A keeper was killed, and its processes may have become children of the holder.
    keeper_killed: bool,
}

fn prepare() -> io::Result<Holder> {
    crate::sys::close_inherited_descriptors();
    // It has the socket to the daemon and the environments of commands. What it runs can be inspected again.
    crate::sys::refuse_inspection()?;
    let thread = SingleThread::check()?;
    let daemon = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Fails only for a process group leader, which has a session of its own already.
    rustix::process::setsid().ok();
    rustix::process::chdir("/")?;
    rustix::thread::set_name(HOLDER_NAME)?;
    let signals = thread.take_signals(&keeper::HANDLED_SIGNALS)?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))?;
    Ok(Holder {
        thread,
        own,
        daemon: Some(daemon),
        signals,
        attached: HashSet::new(),
        detached: HashSet::new(),
        stops: HashMap::new(),
        keeper_killed: false,
    })
}

impl Holder {
    fn hold(&mut self) {
        while let Some(daemon) = &self.daemon {
            let mut sources = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(daemon, PollFlags::IN),
            ];
            // The result does not matter: all sources are checked below.
            poll(&mut sources, None).ok();
            while self.thread.next_signal(&self.signals).is_some() {}
            match receive_order(daemon) {
                Ok(Some((kind, descriptors))) => self.start_keeper(kind, descriptors),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(None) | Err(_) => self.daemon = None,
            }
            self.reap();
        }
        self.kill_all();
    }

    fn start_keeper(&mut self, kind: KeeperKind, descriptors: Vec<OwnedFd>) {
        match self.thread.fork() {
            Ok(Fork::Child) => {
                self.daemon = None;
                keeper::run(&self.thread, kind, self.own, descriptors);
                self.thread.exit_now();
            }
            Ok(Fork::Parent(pid)) => {
                match kind {
                    KeeperKind::Attached => self.attached.insert(pid.as_raw_pid()),
                    KeeperKind::Detached => self.detached.insert(pid.as_raw_pid()),
                };
            }
            Err(error) => {
                if let Some(daemon) = descriptors.first() {
                    let errno = error.raw_os_error().unwrap_or_default();
                    let stage = StartStage::Keeper;
                    KeeperReport::Failed { stage, errno }.send(daemon.as_fd());
                }
            }
        }
    }

    /// Reaps ended children, and kills the orphans of keepers that were killed.
    fn reap(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if status.stopped() => self.continue_keeper(pid),
                Ok(Some((pid, status))) => {
                    self.stops.remove(&pid.as_raw_pid());
                    self.detached.remove(&pid.as_raw_pid());
                    let was_attached = self.attached.remove(&pid.as_raw_pid());
                    self.keeper_killed |= was_attached && !status.exited();
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if self.keeper_killed {
            // Each SIGCHLD repeats this until there are no orphans.
            self.keeper_killed = false;
            for orphan in self.orphans() {
                self.keeper_killed = true;
                rustix::process::kill_process(orphan, Signal::KILL).ok();
            }
        }
    }

    /// Continues a keeper that somebody stopped. One that is stopped again and again is killed, and
    /// its command with it, unless the command is detached.
    fn continue_keeper(&mut self, pid: Pid) {
        let attached = self.attached.contains(&pid.as_raw_pid());
        if !attached && !self.detached.contains(&pid.as_raw_pid()) {
            return;
        }
        let stops = self.stops.entry(pid.as_raw_pid()).or_default();
        *stops = stops.saturating_add(1);
        let signal = if attached && *stops > MOST_STOPS {
            Signal::KILL
        } else {
            Signal::CONT
        };
        // Cannot fail: a child exists until it is reaped.
        rustix::process::kill_process(pid, signal).ok();
    }

    /// The children that are not keepers.
    fn orphans(&self) -> Vec<Pid> {
        own_children()
            .into_iter()
            .filter(|pid| !self.attached.contains(pid) && !self.detached.contains(pid))
            .filter_map(Pid::from_raw)
            .collect()
    }

    /// Kills all children and keepers except those of detached commands. The holder kills
    /// everything itself, which is faster than asking every keeper; the next daemon cleans the
    /// ledger.
    fn kill_all(&mut self) {
        self.attached.clear();
        for _ in 0..KILLS {
            let mut left = false;
            for child in self.orphans() {
                left = true;
                rustix::process::kill_process(child, Signal::KILL).ok();
            }
            let mut ended = false;
            while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
                ended = true;
                self.detached.remove(&pid.as_raw_pid());
            }
            if !left && !ended {
                return;
            }
            let timeout = Timespec::try_from(BETWEEN_KILLS).unwrap_or_default();
            poll(
                &mut [PollFd::new(&self.signals, PollFlags::IN)],
                Some(&timeout),
            )
            .ok();
            while self.thread.next_signal(&self.signals).is_some() {}
        }
    }
}
