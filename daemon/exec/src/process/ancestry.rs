//! Finds out whether the other end of a local socket is a command of a session.
//!
//! Holders and keepers are subreapers: whatever a command starts stays below them. So the ancestors
//! of a process say whether it belongs to a command. A keeper is known by its name, which only the
//! keeper itself can change. The name also shows the keepers of other homes and of daemons that were
//! killed, whose entries in the ledger somebody may have deleted.
//!
//! A daemon that runs below a keeper itself was started by a command. It refuses only its own
//! commands, so that other commands of that session can use it.
//!
//! A pid alone proves nothing, because it may be reused. The peer is held by a pidfd during the
//! check, and a parent counts only if its child still has the same parent afterwards.
//!
//! A process outside of all commands stays outside: when its parent ends, it goes to an ancestor. So
//! the last processes that were found outside are remembered, and a connection of theirs, or of what
//! they started since, costs little.

use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::procfs::{ProcStat, ProcessIdentity};
use crate::sys;

/// The thread names of the processes that own commands. The keeper of a detached command adds how
/// its command ended.
pub(super) const HOLDER_NAME: &std::ffi::CStr = c"loopd-holder";
pub(super) const KEEPER_NAME: &std::ffi::CStr = c"loopd-keeper";

/// How often the ancestors are read again when they change meanwhile.
const TRIES: u32 = 100;

/// The maximum number of ancestors.
const MOST_ANCESTORS: usize = 4096;

/// How many processes are remembered.
const MOST_REMEMBERED: usize = 64;

/// Where the other end of a local socket runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerOrigin {
    /// Not below a command of a session.
    Outside,
    /// Below a command of a session.
    Command,
    /// The process has ended, or its ancestors could not be found.
    Unknown,
}

/// Judges the processes that connect.
#[derive(Debug, Default)]
pub(super) struct PeerJudge {
    /// The ancestors of the daemon when they were first found.
    own_ancestors: OnceLock<Ancestors>,
    /// The last processes that were found outside.
    outside: Mutex<VecDeque<ProcessIdentity>>,
}

impl PeerJudge {
    /// Where the process runs that connected this socket.
    pub(super) fn origin_of_peer(
        &self,
        socket: BorrowedFd<'_>,
        adopted: &HashSet<ProcessIdentity>,
    ) -> PeerOrigin {
        let own = std::process::id().cast_signed();
        let own_ancestors = match self.own_ancestors.get() {
            Some(known) => known,
            // Without /proc no holder can run, and so no command.
            None if ProcStat::of(own).is_none() => return PeerOrigin::Outside,
            None => match ancestors_of(own, |_| false) {
                Some(found) => self.own_ancestors.get_or_init(|| found),
                None => return PeerOrigin::Unknown,
            },
        };
        let Ok(pid) = sys::peer_pid(socket) else {
            return PeerOrigin::Unknown;
        };
        if pid == 0 {
            // A process that this pid namespace does not show. Commands are in this namespace or in
            // one below it.
            return PeerOrigin::Outside;
        }
        let Some(held) = sys::peer_pidfd(socket, pid) else {
            return PeerOrigin::Unknown;
        };
        let is_outside = |identity| self.outside.lock().contains(&identity);
        let ancestors = match ancestors_of(pid, is_outside) {
            Some(ancestors) if lives(&held) => ancestors,
            Some(_) | None => return PeerOrigin::Unknown,
        };
        let origin = judge(own, own_ancestors, &ancestors, adopted);
        if origin == PeerOrigin::Outside {
            self.remember(own, &ancestors);
        }
        origin
    }

    /// Remembers processes that were found outside, but never the daemon: what is below it is a
    /// command.
    fn remember(&self, own: i32, found: &Ancestors) {
        let mut outside = self.outside.lock();
        // The ancestors last: those that many processes share are forgotten last.
        for (pid, stat) in found.iter().filter(|(pid, _)| *pid != own) {
            if outside.len() == MOST_REMEMBERED {
                outside.pop_front();
            }
            outside.push_back(stat.identity(*pid));
        }
    }
}

/// A process and its ancestors, the nearest first.
type Ancestors = Vec<(i32, ProcStat)>;

fn judge(
    own: i32,
    own_ancestors: &Ancestors,
    ancestors: &Ancestors,
    adopted: &HashSet<ProcessIdentity>,
) -> PeerOrigin {
    let above_us = |identity: ProcessIdentity| {
        let mut above = own_ancestors.iter();
        above.any(|(pid, stat)| identity == stat.identity(*pid))
    };
    let nested = own_ancestors.iter().any(|(_, stat)| owns_commands(stat));
    let is_command = ancestors.iter().enumerate().any(|(distance, (pid, stat))| {
        let identity = stat.identity(*pid);
        // The daemon itself may connect to its socket; its descendants are commands, also when the
        // holder was killed.
        let below_us = *pid == own && distance > 0;
        let below_other = owns_commands(stat) && !above_us(identity) && !nested;
        below_us || below_other || adopted.contains(&identity)
    });
    if is_command {
        PeerOrigin::Command
    } else {
        PeerOrigin::Outside
    }
}

fn owns_commands(stat: &ProcStat) -> bool {
    [HOLDER_NAME, KEEPER_NAME]
        .iter()
        .any(|name| stat.name.as_bytes().starts_with(name.to_bytes()))
}

fn lives(process: &OwnedFd) -> bool {
    let mut sources = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
    matches!(poll(&mut sources, Some(&Timespec::default())), Ok(0))
}

/// The process and its ancestors below the first that is known; `None` if the process has ended or
/// they keep changing.
fn ancestors_of(pid: i32, is_known: impl Fn(ProcessIdentity) -> bool) -> Option<Ancestors> {
    (0..TRIES).find_map(|_| try_ancestors_of(pid, &is_known))
}

fn try_ancestors_of(pid: i32, is_known: impl Fn(ProcessIdentity) -> bool) -> Option<Ancestors> {
    let mut next = Some((pid, ProcStat::of(pid).filter(|stat| stat.lives)?));
    let mut found = Vec::new();
    while let Some((pid, stat)) = next {
        if is_known(stat.identity(pid)) {
            break;
        }
        let parent = ProcStat::of(stat.parent);
        // If the child has the same parent as before, the parent has lived all the time.
        let again = ProcStat::of(pid)?;
        if (again.parent, again.start) != (stat.parent, stat.start) || found.len() > MOST_ANCESTORS
        {
            return None;
        }
        // A parent that is hidden belongs to another user or is outside of this pid namespace.
        next = parent.map(|parent| (stat.parent, parent));
        found.push((pid, stat));
    }
    Some(found)
}

/// Notes the keepers of detached commands that an earlier daemon started.
pub(super) fn keepers_of(adopted: &[super::ledger::LedgerEntry]) -> HashSet<ProcessIdentity> {
    adopted.iter().filter_map(|entry| entry.keeper).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
