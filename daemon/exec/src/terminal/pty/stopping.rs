//! The steps by which a command on a terminal is stopped, and who waits for that. Sends nothing
//! itself: the actor asks what is due.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::terminal::reader::{GRACE, STOP_ANSWER};

/// How long after the interrupt the program is asked to end.
const TERMINATE_AFTER: Duration = Duration::from_millis(300);

/// How long after it was killed the whole shell is.
const CLOSE_AFTER: Duration = Duration::from_secs(1);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Count the command as ended, although it lives.
    Answer,
    Terminate,
    Kill,
    Close,
}

/// A command on its way out.
#[derive(Debug)]
pub(super) struct Stopping {
    since: Instant,
    next: Step,
    answers: Vec<oneshot::Sender<()>>,
}

impl Stopping {
    pub(super) fn begin(now: Instant, answer: oneshot::Sender<()>) -> Self {
        Self {
            since: now,
            next: Step::Answer,
            answers: vec![answer],
        }
    }

    /// Somebody else wants to know too.
    pub(super) fn also(&mut self, answer: oneshot::Sender<()>) {
        self.answers.push(answer);
    }

    pub(super) fn next(&self) -> Instant {
        self.since
            + match self.next {
                Step::Answer => STOP_ANSWER,
                Step::Terminate => TERMINATE_AFTER,
                Step::Kill => GRACE,
                Step::Close => GRACE + CLOSE_AFTER,
            }
    }

    /// The step that is due now, if one is.
    pub(super) fn step(&mut self, now: Instant) -> Option<Step> {
        if self.next() > now {
            return None;
        }
        let step = self.next;
        self.next = match step {
            Step::Answer => Step::Terminate,
            Step::Terminate => Step::Kill,
            Step::Kill | Step::Close => Step::Close,
        };
        if step == Step::Close {
            // Once more only if even that does not help.
            self.since = now;
        }
        Some(step)
    }

    pub(super) fn answer_all(&mut self) {
        for answer in self.answers.drain(..) {
            // Whoever asked may have stopped waiting.
            answer.send(()).ok();
        }
    }

    pub(super) fn answer(mut self) {
        self.answer_all();
    }
}
