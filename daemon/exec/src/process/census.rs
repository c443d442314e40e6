//! Who is alive, by what the kernel says in /proc; and the only two ways in which a process that is
//! not our child is signalled: by a pid whose start time is the known one, or by our tag in its
//! environment, both looked at again once the process is held by a descriptor.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use super::TAG;

/// How often what will not die is killed again, and how long is waited in between.
const ROUNDS: u32 = 100;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(5);

/// A process that cannot be taken for another one within one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// When it started, in clock ticks since boot.
    pub(super) start: u64,
}

impl Identity {
    pub(super) fn of(pid: i32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        Some(Self {
            pid,
            start: stat.start,
        })
    }

    /// A descriptor for this very process, when it is alive.
    pub(super) fn open(self) -> Option<OwnedFd> {
        let descriptor = open(self.pid)?;
        // Looked at after it was opened: the number cannot go to another process in between.
        let stat = Stat::of(self.pid)?;
        (stat.start == self.start && stat.lives).then_some(descriptor)
    }

    #[cfg(test)]
    pub(super) fn is_alive(self) -> bool {
        self.open().is_some()
    }
}

/// Tells this run of the system from the ones before it.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

struct Stat {
    parent: i32,
    start: u64,
    lives: bool,
}

impl Stat {
    fn of(pid: i32) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // The name before it may contain anything, closing brackets too.
        let (_, fields) = text.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Self {
            parent,
            start,
            lives: !matches!(state, "Z" | "X"),
        })
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

/// The children of the calling process; where the kernel does not list them, by looking at all.
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
        .filter(|pid| Stat::of(*pid).is_some_and(|stat| stat.parent == own))
        .collect()
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

/// The calling process and everything above it, which must not be killed.
fn lineage() -> BTreeSet<i32> {
    let mut above = BTreeSet::new();
    let mut next = Some(std::process::id().cast_signed());
    while let Some(pid) = next.filter(|pid| *pid > 1 && above.insert(*pid)) {
        next = Stat::of(pid).map(|stat| stat.parent);
    }
    above
}

/// Whether nothing that was to be killed is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    All,
    NotAll,
}

/// Kills these processes, those that carry one of these tags, and all below either. Blocks.
pub(super) fn kill(tags: &HashSet<String>, known: &[Identity]) -> Killed {
    let spared = lineage();
    for _ in 0..ROUNDS {
        let found = evidence(tags, known, &spared);
        if found.is_empty() {
            return Killed::All;
        }
        for victim in found {
            kill_one(victim);
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
    Killed::NotAll
}

/// What lives and is ours: by identity, by tag, or by a parent that is ours.
fn evidence(
    tags: &HashSet<String>,
    known: &[Identity],
    spared: &BTreeSet<i32>,
) -> HashSet<Identity> {
    let everybody: Vec<(i32, Stat)> = all()
        .into_iter()
        .filter(|pid| !spared.contains(pid))
        .filter_map(|pid| Some((pid, Stat::of(pid)?)))
        .filter(|(_, stat)| stat.lives)
        .collect();
    let mut ours: HashSet<i32> = everybody
        .iter()
        .filter(|(pid, stat)| {
            let identity = Identity {
                pid: *pid,
                start: stat.start,
            };
            known.contains(&identity) || has_tag(*pid, tags)
        })
        .map(|(pid, _)| *pid)
        .collect();
    loop {
        let before = ours.len();
        for (pid, stat) in &everybody {
            if ours.contains(&stat.parent) {
                ours.insert(*pid);
            }
        }
        if ours.len() == before {
            break;
        }
    }
    everybody
        .iter()
        .filter(|(pid, _)| ours.contains(pid))
        .map(|(pid, stat)| Identity {
            pid: *pid,
            start: stat.start,
        })
        .collect()
}

fn kill_one(victim: Identity) {
    let Some(descriptor) = victim.open() else {
        return;
    };
    // Fails for what has ended by now, or belongs to somebody else by now.
    rustix::process::pidfd_send_signal(&descriptor, Signal::KILL).ok();
    bury(&descriptor);
}

/// Takes the exit status of a process if it is a child of ours that nobody else waits for.
pub(super) fn bury(descriptor: &OwnedFd) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    // Fails for what is not our child, whose parent takes it.
    rustix::process::waitid(WaitId::PidFd(std::os::fd::AsFd::as_fd(descriptor)), options).ok();
}

/// Waits for a child that is about to end; returns at once when it is not ours. Blocks.
pub(super) fn bury_own(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Fails for what is not our child, whose parent takes it.
        rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).ok();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
