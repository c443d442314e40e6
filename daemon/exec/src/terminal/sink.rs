//! Passes the output of a command to the text of its run, to its file and to its watchers. Both
//! backends use it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ShellSpec;
use super::output::OutputFile;
use super::run::{CommandEnd, CommandRun, CommandState};

/// The minimum time between two notifications of watchers about new output.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(100);

/// How long to wait for a stopped command before it counts as ended.
pub(super) const STOP_ANSWER: Duration = Duration::from_millis(80);

/// How long a command may take to end after a signal before it is killed.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Receives the output of one command.
#[derive(Debug)]
pub(super) struct OutputSink {
    pub(super) run: CommandRun,
    file: OutputFile,
    notified_at: Option<Instant>,
    /// When to notify watchers of new output; `None` if there is no new output.
    notify_at: Option<Instant>,
}

impl OutputSink {
    pub(super) fn new(run: CommandRun, spec: &ShellSpec) -> Self {
        Self {
            run,
            file: OutputFile::new(spec.scratch.clone(), spec.name_output, spec.filters.begin()),
            notified_at: None,
            notify_at: None,
        }
    }

    /// Adds output and returns the replies of the terminal; [`OutputSink::save`] must follow.
    pub(super) fn feed(&self, bytes: &[u8]) -> Vec<u8> {
        self.run.text().feed(bytes)
    }

    /// When to call [`OutputSink::notify`]; `None` if there is no new output.
    pub(super) fn notify_at(&self) -> Option<Instant> {
        self.notify_at
    }

    pub(super) fn notify(&mut self) {
        self.notified_at = Some(Instant::now());
        self.notify_at = None;
        self.run.notify_output();
    }

    /// Makes the text final and sets how the command ended.
    pub(super) async fn end(&mut self, end: CommandEnd) {
        self.run.text().finish();
        self.save().await;
        self.file.finish().await;
        self.run.set_state(CommandState::Ended(end));
    }

    /// Writes waiting bytes to the file and schedules the next notification.
    pub(super) async fn save(&mut self) {
        if self.notify_at.is_none() {
            let now = Instant::now();
            self.notify_at = Some(
                self.notified_at
                    .map_or(now, |last| now.max(last + NOTIFY_INTERVAL)),
            );
        }
        let waiting = self.run.text().take_waiting();
        if let Some(bytes) = waiting {
            let saved = self.file.write(&bytes).await;
            self.run.text().set_saved(saved);
        }
    }
}

/// Waits until a time; never resolves without one.
pub(super) async fn sleep_until_some(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
