//! The timetable for stopping a command on a terminal, and the callers that wait for it. The actor
//! asks for the step that is due and performs it.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::terminal::sink::{GRACE, STOP_ANSWER};

/// How long after the interrupt SIGTERM is sent.
const TERMINATE_AFTER: Duration = Duration::from_millis(300);

/// How long after the kill of the program the whole shell is killed.
const CLOSE_AFTER: Duration = Duration::from_secs(1);

/// A step of stopping a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopStep {
    /// Report the command as ended, although it still runs.
    Answer,
    Terminate,
    Kill,
    Close,
}

/// A command that is being stopped.
#[derive(Debug)]
pub(super) struct Stopping {
    since: Instant,
    next: StopStep,
    answers: Vec<oneshot::Sender<()>>,
}

impl Stopping {
    pub(super) fn begin(now: Instant, answer: oneshot::Sender<()>) -> Self {
        Self {
            since: now,
            next: StopStep::Answer,
            answers: vec![answer],
        }
    }

    /// Adds another caller that waits for the stop.
    pub(super) fn also(&mut self, answer: oneshot::Sender<()>) {
        self.answers.push(answer);
    }

    pub(super) fn next(&self) -> Instant {
        self.since
            + match self.next {
                StopStep::Answer => STOP_ANSWER,
                StopStep::Terminate => TERMINATE_AFTER,
                StopStep::Kill => GRACE,
                StopStep::Close => GRACE + CLOSE_AFTER,
            }
    }

    /// The step that is due now, if one is.
    pub(super) fn step(&mut self, now: Instant) -> Option<StopStep> {
        if self.next() > now {
            return None;
        }
        let step = self.next;
        self.next = match step {
            StopStep::Answer => StopStep::Terminate,
            StopStep::Terminate => StopStep::Kill,
            StopStep::Kill | StopStep::Close => StopStep::Close,
        };
        if step == StopStep::Close {
            // Repeat the last step if the shell survives it.
            self.since = now;
        }
        Some(step)
    }

    pub(super) fn answer_all(&mut self) {
        for answer in self.answers.drain(..) {
            // Fails if the caller no longer waits.
            answer.send(()).ok();
        }
    }

    pub(super) fn answer(mut self) {
        self.answer_all();
    }
}
