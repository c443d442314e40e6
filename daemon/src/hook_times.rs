//! How often the hooks of files ran since the daemon started, and how long they took.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use crate::discovery::content_hash::ContentHash;

/// How many hooks are counted.
const MOST_HOOKS: usize = 4_096;

/// The times of hooks, by what they do.
#[derive(Default)]
pub struct HookTimes(Mutex<HashMap<ContentHash, HookTime>>);

/// The times of one hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookTime {
    pub runs: u64,
    pub last: Duration,
}

impl HookTimes {
    /// Counts a run. Beyond the limit, new hooks are not counted.
    pub fn took(&self, hook: &ContentHash, time: Duration) {
        let mut times = self.0.lock();
        if times.len() >= MOST_HOOKS && !times.contains_key(hook) {
            return;
        }
        let known = times.entry(hook.clone()).or_default();
        known.runs += 1;
        known.last = time;
    }

    pub fn of(&self, hook: &ContentHash) -> Option<HookTime> {
        self.0.lock().get(hook).copied()
    }
}
