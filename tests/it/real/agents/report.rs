//! The figures of one run, for who runs it by hand.
#![expect(clippy::print_stderr, reason = "figures are for who watches the test")]

use std::time::Duration;

use super::Run;
use super::judge::Figures;

pub(super) struct Report<'a> {
    pub(super) run: &'a Run,
    pub(super) figures: &'a Figures,
    pub(super) time: Duration,
    /// The most memory that a daemon had, and what the last one had in the end, in KiB.
    pub(super) peak: usize,
    pub(super) resting: usize,
    /// Bytes.
    pub(super) database: u64,
}

impl Report<'_> {
    pub(super) fn tell(&self) {
        let Run {
            parents,
            kills,
            seed,
            ..
        } = self.run;
        let Figures {
            tasks,
            runs,
            answered,
            interrupted,
            notifications,
            heard,
            starts,
            wakes,
        } = self.figures;
        eprintln!("seed {seed}: {tasks} agents of {parents} sessions, {kills} kills of the daemon");
        eprintln!("prompts to agents  {runs}: {answered} answered, {interrupted} interrupted");
        eprintln!(
            "told               {notifications} by notifications, {heard} by results of calls"
        );
        for (what, times) in [
            ("call to agent     ", starts),
            ("answer to parent  ", wakes),
        ] {
            let (half, most) = (share(times, 50), share(times, 95));
            eprintln!("{what} {half} ms (median), {most} ms (95 %)");
        }
        eprintln!("time               {:.1} s", self.time.as_secs_f64());
        let (peak, resting) = (self.peak / 1024, self.resting / 1024);
        eprintln!("memory             {peak} MiB at most, {resting} MiB in the end");
        eprintln!("database           {} KiB", self.database / 1024);
    }
}

/// The number below which this many percent of all are.
fn share(numbers: &[i64], percent: usize) -> i64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let at = numbers.len() * percent / 100;
    numbers.get(at).copied().unwrap_or_default()
}
