//! What processes use, as the kernel tells it in `/proc`.

use std::fs;
use std::time::Duration;

/// The memory of processes and all their children, in MB, shared pages counted in shares.
pub(crate) fn memory(pids: &[u32]) -> f64 {
    tree(pids).into_iter().map(memory_of).sum()
}

/// The memory of one process, in MB; one that is gone has none.
pub(crate) fn memory_of(pid: u32) -> f64 {
    share_of(pid).unwrap_or_default() / 1024.0
}

/// The processes and everything below them.
fn tree(pids: &[u32]) -> Vec<u32> {
    let mut all = pids.to_vec();
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok());
            for child in children {
                if !all.contains(&child) {
                    all.push(child);
                }
            }
        }
    }
    all
}

/// Kilobytes of one process; `None` when it is gone.
fn share_of(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How many ticks of `/proc/*/stat` are a second; the kernel tells programs in this unit on every
/// machine it runs on.
const TICKS_PER_SECOND: u64 = 100;

/// The processor time of processes and of the children they have waited for.
pub(crate) fn processor(pids: &[u32]) -> Duration {
    let ticks: u64 = pids.iter().filter_map(|pid| ticks(*pid)).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

fn ticks(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program may hold blanks; what follows it does not.
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    Some(times.filter_map(|field| field.parse::<u64>().ok()).sum())
}

/// Whether a process is there and has not ended.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    text.rsplit_once(')')
        .is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}
