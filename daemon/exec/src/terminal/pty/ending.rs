//! The end of a command on a terminal: bash says that it is done, the terminal is free again, and
//! bash answers a nonce with a marker and its status. `channel.rs` says why the nonce is needed.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::Instant;

use crate::process::Activity;
use crate::terminal::run::CommandEnd;

use super::actor::{EndAnswer, PtyActor, ShellStage};
use super::channel::random_word;
use super::device::Foreground;

/// How long another program may stay in the foreground after bash is done, before it is killed.
const RETURN_WITHIN: Duration = Duration::from_secs(1);

/// How often the foreground is checked meanwhile.
const CHECK_FOREGROUND: Duration = Duration::from_millis(20);

/// How long bash may take to answer the nonce.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl PtyActor {
    /// Handles that bash says that it has ended the command with this word. After an interrupt bash
    /// may say so again of an earlier command.
    pub(super) fn shell_done(&mut self, word: &str) {
        // Without a word, the command removed the variable that holds it.
        let has_forgotten = word.is_empty() && self.stage == ShellStage::Running;
        if word != self.command_word && !has_forgotten {
            if let ShellStage::Starting { .. } = self.stage {
                // The interrupt may have cost bash the command. If not, bash skips the second copy.
                self.channel.send_command(&self.word, &self.command);
            }
            return;
        }
        if let Err(error) = self.device.resume_output() {
            tracing::debug!(%error, "the terminal of a shell is gone already");
        }
        match self.stage {
            ShellStage::Opening => {
                self.stage = ShellStage::Idle;
                self.owned.set_activity(Activity::Unused);
            }
            ShellStage::Running => self.ask_for_status(Instant::now()),
            ShellStage::Returning { since, .. } => self.ask_for_status(since),
            // An interrupt may have cost bash the nonce. A second copy does no harm: bash reads it
            // before the next command.
            ShellStage::Ending { .. } => self.channel.send_nonce(&self.word),
            ShellStage::Starting { until, .. } => {
                self.stage = ShellStage::Starting { until, done: true };
            }
            ShellStage::Idle => {}
        }
    }

    /// Sends the nonce if the terminal is free; otherwise the next check follows soon. `since` is
    /// when bash said that it is done.
    pub(super) fn ask_for_status(&mut self, since: Instant) {
        let now = Instant::now();
        let waited = now.saturating_duration_since(since);
        if self.device.foreground_state(self.owned.pid) == Foreground::Other
            && waited < RETURN_WITHIN * 2
        {
            if waited >= RETURN_WITHIN {
                tracing::warn!("a program keeps the terminal of an ended command and is killed");
                self.device.signal_foreground(Signal::KILL);
            }
            let check_at = now + CHECK_FOREGROUND;
            self.stage = ShellStage::Returning { since, check_at };
            return;
        }
        self.word = random_word();
        self.markers.expect(&self.word);
        self.channel.send_nonce(&self.word);
        self.stage = ShellStage::Ending {
            until: now + ANSWER_WITHIN,
            answer: EndAnswer::Nothing,
        };
    }

    /// Handles that bash says the status of the command that it has ended.
    pub(super) async fn status_said(&mut self, nonce: &str, status: i32) {
        if nonce != self.word {
            return;
        }
        match self.stage {
            ShellStage::Ending {
                answer: EndAnswer::Marker,
                ..
            } => {
                self.stage = ShellStage::Idle;
                self.command_ended(status).await;
            }
            ShellStage::Ending { until, .. } => {
                let answer = EndAnswer::Status(status);
                self.stage = ShellStage::Ending { until, answer };
            }
            ShellStage::Opening
            | ShellStage::Idle
            | ShellStage::Starting { .. }
            | ShellStage::Running
            | ShellStage::Returning { .. } => {}
        }
    }

    /// Reports the end of the command; the shell is idle again.
    pub(super) async fn command_ended(&mut self, status: i32) {
        let stopping = self.stopping.take();
        let end = match &stopping {
            Some(_) => CommandEnd::Interrupted,
            None => CommandEnd::Exited(status),
        };
        self.owned.set_activity(Activity::Idle);
        self.end_current(end).await;
        if let Some(stopping) = stopping {
            stopping.answer();
        }
        if let Some(start) = self.queued.take() {
            self.start(start);
        }
    }
}
