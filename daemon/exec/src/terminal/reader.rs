//! Takes the output of a command to where it belongs: the text of its run, the file behind that,
//! and the watchers. Both backends use it; it never reads anything itself.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ShellSpec;
use super::output::Spool;
use super::run::{CommandEnd, CommandRun, CommandState};

/// How often watchers hear of new output.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How long a stopped command is waited for before it counts as ended anyway.
pub(super) const STOP_ANSWER: Duration = Duration::from_millis(80);

/// How long a command that was asked to end may take before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Output on its way into a run: to its text, its file and its watchers.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) run: CommandRun,
    spool: Spool,
    told: Option<Instant>,
    /// When the watchers hear of output they have not heard of.
    tell_at: Option<Instant>,
}

impl Reader {
    pub(super) fn new(run: CommandRun, spec: &ShellSpec) -> Self {
        Self {
            run,
            spool: Spool::new(spec.scratch.clone(), spec.name_output),
            told: None,
            tell_at: None,
        }
    }

    /// Takes output and returns what the terminal answers to it; [`Reader::save`] has to follow.
    pub(super) fn feed(&self, bytes: &[u8]) -> Vec<u8> {
        self.run.text().feed(bytes)
    }

    /// When the watchers hear of output next, if there is any they have not heard of.
    pub(super) fn tell_at(&self) -> Option<Instant> {
        self.tell_at
    }

    pub(super) fn tell(&mut self) {
        self.told = Some(Instant::now());
        self.tell_at = None;
        self.run.tell_output();
    }

    /// Makes the text final and tells how the command ended.
    pub(super) async fn end(&mut self, end: CommandEnd) {
        self.run.text().finish();
        self.save().await;
        self.run.set_state(CommandState::Ended(end));
    }

    /// Writes to the file what belongs there, and has the watchers told in time.
    pub(super) async fn save(&mut self) {
        if self.tell_at.is_none() {
            let now = Instant::now();
            self.tell_at = Some(self.told.map_or(now, |told| now.max(told + TELL_EVERY)));
        }
        let waiting = self.run.text().take_waiting();
        if let Some(bytes) = waiting {
            let saved = self.spool.write(&bytes).await;
            self.run.text().set_saved(saved);
        }
    }
}

/// Waits until a moment, if there is one.
pub(super) async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
