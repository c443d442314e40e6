//! The process below which all commands of a daemon live: the same program, started with a word that
//! no person types, with one thread and no runtime.
//!
//! It copies itself into a keeper (`keeper.rs`) per command and takes in what keepers that were killed
//! leave. When its socket ends, the daemon is gone, however that happened: it kills everything but the
//! detached, and leaves.

use std::collections::HashSet;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions};

use super::census::own_children;
use super::keeper;
use super::message::{Kind, Report, Stage, receive_order};
use crate::sys::alone::{Alone, Fork};

/// The word that makes the program a holder.
pub(super) const WORD: &str = "--hold-processes";

/// How long is waited for a killed child before the next look, and how often.
const BETWEEN_KILLS: Duration = Duration::from_millis(2);
const KILLS: u32 = 5000;

/// Whether this program looks for the word.
static OFFERED: AtomicBool = AtomicBool::new(false);

/// First thing in `main`: becomes the holder when that was asked for.
pub fn run_if_asked() -> Option<ExitCode> {
    OFFERED.store(true, Ordering::Relaxed);
    (std::env::args_os().nth(1)? == WORD).then(run)
}

/// Says whether this program can be started as a holder.
pub(super) fn is_offered() -> bool {
    OFFERED.load(Ordering::Relaxed)
}

/// Holds commands until the socket on standard input ends.
pub(super) fn run() -> ExitCode {
    match prepare() {
        Ok(mut holder) => {
            holder.hold();
            ExitCode::SUCCESS
        }
        // The daemon sees its socket end and says so.
        Err(_) => ExitCode::FAILURE,
    }
}

struct Holder {
    alone: Alone,
    own: Pid,
    /// Taken out of a keeper, which must not keep the daemon from seeing the holder's end.
    daemon: Option<OwnedFd>,
    signals: PipeReader,
    attached: HashSet<i32>,
    detached: HashSet<i32>,
    /// A keeper was killed, and what it kept may be here.
    bereaved: bool,
}

fn prepare() -> io::Result<Holder> {
    crate::sys::close_inherited_descriptors();
    let alone = Alone::check()?;
    let daemon = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Fails for a process that leads its group already, which then has a session of its own.
    rustix::process::setsid().ok();
    rustix::process::chdir("/")?;
    rustix::thread::set_name(c"loopd-holder")?;
    let signals = alone.take_signals(&keeper::TAKEN)?;
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))?;
    Ok(Holder {
        alone,
        own,
        daemon: Some(daemon),
        signals,
        attached: HashSet::new(),
        detached: HashSet::new(),
        bereaved: false,
    })
}

impl Holder {
    fn hold(&mut self) {
        while let Some(daemon) = &self.daemon {
            let mut sources = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::new(daemon, PollFlags::IN),
            ];
            // Woken early or not, everything is looked at again.
            poll(&mut sources, None).ok();
            while self.alone.next_signal(&self.signals).is_some() {}
            match receive_order(daemon) {
                Ok(Some((kind, descriptors))) => self.keep(kind, descriptors),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(None) | Err(_) => self.daemon = None,
            }
            self.bury();
        }
        self.kill_all();
    }

    fn keep(&mut self, kind: Kind, descriptors: Vec<OwnedFd>) {
        match self.alone.fork() {
            Ok(Fork::Child) => {
                self.daemon = None;
                keeper::run(&self.alone, kind, self.own, descriptors);
                self.alone.leave();
            }
            Ok(Fork::Parent(pid)) => {
                match kind {
                    Kind::Attached => self.attached.insert(pid.as_raw_pid()),
                    Kind::Detached => self.detached.insert(pid.as_raw_pid()),
                };
            }
            Err(error) => {
                if let Some(daemon) = descriptors.first() {
                    let errno = error.raw_os_error().unwrap_or_default();
                    let stage = Stage::Keeper;
                    Report::Failed { stage, errno }.send(daemon.as_fd());
                }
            }
        }
    }

    /// Waits for the children that have ended; kills what keepers left that did not end by
    /// themselves.
    fn bury(&mut self) {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    self.detached.remove(&pid.as_raw_pid());
                    let was_attached = self.attached.remove(&pid.as_raw_pid());
                    self.bereaved |= was_attached && !status.exited();
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if self.bereaved {
            // Each death wakes us again, until a look finds none.
            self.bereaved = false;
            for orphan in self.orphans() {
                self.bereaved = true;
                rustix::process::kill_process(orphan, Signal::KILL).ok();
            }
        }
    }

    /// Children that are no keepers.
    fn orphans(&self) -> Vec<Pid> {
        own_children()
            .into_iter()
            .filter(|pid| !self.attached.contains(pid) && !self.detached.contains(pid))
            .filter_map(Pid::from_raw)
            .collect()
    }

    /// Kills everything but the detached, keepers included: one that kills is faster than many, and
    /// the next daemon clears the ledger.
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
            while self.alone.next_signal(&self.signals).is_some() {}
        }
    }
}
