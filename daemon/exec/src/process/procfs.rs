//! Finds processes in /proc, and kills those that are ours.
//!
//! A process that is not a child of the caller is signalled only if its pid has the known start
//! time or its environment has our tag, or if it descends from such a process. The start time is
//! checked again after the process was opened as a pidfd, so that a reused pid is never signalled.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use super::TAG;

/// How many attempts are made to kill processes, and how long to wait between them.
const ROUNDS: u32 = 100;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(5);

/// Identifies a process uniquely within one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    /// The start time, in clock ticks since boot.
    pub(super) start: u64,
}

impl ProcessIdentity {
    pub(super) fn of(pid: i32) -> Option<Self> {
        Some(ProcStat::of(pid)?.identity(pid))
    }

    /// Opens a pidfd for exactly this process; `None` if it is not alive.
    pub(super) fn open(self) -> Option<OwnedFd> {
        let descriptor = open(self.pid)?;
        // Check the start time after the open: the pid may have been reused before it.
        let stat = ProcStat::of(self.pid)?;
        (stat.start == self.start && stat.lives).then_some(descriptor)
    }

    #[cfg(test)]
    pub(super) fn is_alive(self) -> bool {
        self.open().is_some()
    }
}

/// The boot id of the kernel, which changes with every reboot.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// What the kernel says about a process.
#[derive(Debug)]
pub(super) struct ProcStat {
    /// The name of the main thread.
    pub(super) name: String,
    pub(super) parent: i32,
    pub(super) start: u64,
    pub(super) lives: bool,
    /// A signal such as SIGSTOP has stopped it.
    pub(super) stopped: bool,
}

impl ProcStat {
    pub(super) fn of(pid: i32) -> Option<Self> {
        // One read gets all of it: it is a line of numbers and a short name.
        let mut bytes = [0; 1024];
        let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(bytes.get(..length)?);
        // The program name before this bracket may itself contain brackets.
        let (name, fields) = text.rsplit_once(')')?;
        let (_, name) = name.split_once('(')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self {
            name: name.to_owned(),
            parent,
            start,
            lives: !matches!(state, "Z" | "X"),
            stopped: matches!(state, "T" | "t"),
        })
    }

    pub(super) fn identity(&self, pid: i32) -> ProcessIdentity {
        ProcessIdentity {
            pid,
            start: self.start,
        }
    }
}

fn open(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::NONBLOCK).ok()
}

fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// The children of the calling process. Searches all processes if the kernel does not list
/// children.
pub(super) fn own_children() -> Vec<i32> {
    let own = std::process::id().cast_signed();
    if let Ok(list) = fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        return list
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect();
    }
    all()
        .into_iter()
        .filter(|pid| ProcStat::of(*pid).is_some_and(|stat| stat.parent == own))
        .collect()
}

/// The children of any process.
pub(super) fn children_of(parent: i32) -> Vec<ProcessIdentity> {
    let found = all().into_iter().filter_map(|pid| {
        let stat = ProcStat::of(pid).filter(|stat| stat.parent == parent)?;
        Some(ProcessIdentity {
            pid,
            start: stat.start,
        })
    });
    found.collect()
}

/// Continues processes that somebody stopped.
pub(super) fn continue_keepers(keepers: &[ProcessIdentity]) {
    for keeper in keepers.iter().filter_map(|keeper| keeper.open()) {
        signal(&keeper, Signal::CONT);
    }
}

/// Sends a signal to a process; nothing happens if it has ended.
pub(super) fn signal(process: &OwnedFd, signal: Signal) {
    rustix::process::pidfd_send_signal(process, signal).ok();
}

fn has_tag(pid: i32, tags: &HashSet<String>) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| std::str::from_utf8(variable).ok()?.split_once('='))
        .any(|(name, value)| name == TAG && tags.contains(value))
}

/// The calling process and its ancestors, which must not be killed.
fn ancestors() -> BTreeSet<i32> {
    let mut above = BTreeSet::new();
    let mut next = Some(std::process::id().cast_signed());
    while let Some(pid) = next.filter(|pid| *pid > 1 && above.insert(*pid)) {
        next = ProcStat::of(pid).map(|stat| stat.parent);
    }
    above
}

/// Whether all processes that should be killed are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillOutcome {
    All,
    NotAll,
}

/// Kills the known processes, those with one of the tags, and the descendants of both. Blocks.
pub(super) fn kill(tags: &HashSet<String>, known: &[ProcessIdentity]) -> KillOutcome {
    let spared = ancestors();
    for _ in 0..ROUNDS {
        let found = find_ours(tags, known, &spared);
        if found.is_empty() {
            return KillOutcome::All;
        }
        for process in found {
            kill_one(process);
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
    KillOutcome::NotAll
}

/// Finds the living processes that are ours by identity, by tag, or as descendants of such a
/// process.
fn find_ours(
    tags: &HashSet<String>,
    known: &[ProcessIdentity],
    spared: &BTreeSet<i32>,
) -> HashSet<ProcessIdentity> {
    let living: Vec<(i32, ProcStat)> = all()
        .into_iter()
        .filter(|pid| !spared.contains(pid))
        .filter_map(|pid| Some((pid, ProcStat::of(pid)?)))
        .filter(|(_, stat)| stat.lives)
        .collect();
    let mut ours: HashSet<i32> = living
        .iter()
        .filter(|(pid, stat)| {
            let identity = ProcessIdentity {
                pid: *pid,
                start: stat.start,
            };
            known.contains(&identity) || has_tag(*pid, tags)
        })
        .map(|(pid, _)| *pid)
        .collect();
    loop {
        let before = ours.len();
        for (pid, stat) in &living {
            if ours.contains(&stat.parent) {
                ours.insert(*pid);
            }
        }
        if ours.len() == before {
            break;
        }
    }
    living
        .iter()
        .filter(|(pid, _)| ours.contains(pid))
        .map(|(pid, stat)| ProcessIdentity {
            pid: *pid,
            start: stat.start,
        })
        .collect()
}

fn kill_one(process: ProcessIdentity) {
    let Some(descriptor) = process.open() else {
        return;
    };
    // Fails for a process that has ended or has changed its user.
    rustix::process::pidfd_send_signal(&descriptor, Signal::KILL).ok();
    reap(&descriptor);
}

/// Reaps a process if it is an ended child of the caller.
pub(super) fn reap(descriptor: &OwnedFd) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    // Fails for a process that is not our child; its parent reaps it.
    rustix::process::waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(descriptor)), options).ok();
}

/// Continues a child if somebody stopped it since the last call; returns whether that was so.
pub(super) fn continue_child(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return false;
    };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    let stopped = rustix::process::waitid(WaitId::Pid(pid), options);
    let stopped = matches!(stopped, Ok(Some(_)));
    if stopped {
        // Cannot fail: a child exists until it is reaped.
        rustix::process::kill_process(pid, Signal::CONT).ok();
    }
    stopped
}

/// Waits for a child that is about to end and reaps it; returns at once if it is not a child.
/// Blocks.
pub(super) fn reap_child(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Fails for a process that is not our child; its parent reaps it.
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).ok();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
