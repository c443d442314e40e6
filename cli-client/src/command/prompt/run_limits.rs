//! When a run has to stop: after some time, or after some calls of the model.

use std::time::Duration;

use loopd_sdk::proto::run_scope::RunLimits;
use loopd_sdk::{Body, Durable, Event, Message, SessionId};
use tokio::time::Instant;

use crate::args::RunOptions;
use crate::outcome::Outcome;

/// Who counts the calls of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Here,
    TheDaemon,
}

/// Returns the message with the limits of its run, which the daemon keeps even if this process ends.
pub(super) fn of_message(options: &RunOptions, mut message: Message) -> Message {
    if let Some(limits) = of_run(options) {
        message.scope.get_or_insert_default().limits = Some(limits);
    }
    message
}

/// Returns the limits of a run, if there are any.
pub(super) fn of_run(options: &RunOptions) -> Option<RunLimits> {
    let limits = RunLimits {
        max_turns: options.max_turns,
        timeout_ms: options.timeout.map(|time| {
            u64::try_from(time.saturating_add(AFTER_US).as_millis()).unwrap_or(u64::MAX)
        }),
    };
    (limits != RunLimits::default()).then_some(limits)
}

/// How much later the daemon stops a run by itself, so that this process is first while it is there.
const AFTER_US: Duration = Duration::from_secs(2);

/// How long the daemon may take to stop a run.
pub(super) const STOPPING: Duration = Duration::from_secs(10);

/// The limits of one run as they are kept here, and whether one of them was reached. The daemon counts
/// the calls for a message, for a command in a sub-agent and for a fleet; here they are counted for other commands.
#[derive(Debug, Default)]
pub(super) struct WatchedLimits {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
    most_turns: Option<u64>,
    turns: u64,
    stopped: Option<Outcome>,
}

impl WatchedLimits {
    pub(super) fn new(options: &RunOptions, counts: Counts) -> Self {
        Self {
            deadline: options
                .timeout
                .and_then(|time| Instant::now().checked_add(time)),
            timeout: options.timeout,
            most_turns: options.max_turns.filter(|_| counts == Counts::Here),
            turns: 0,
            stopped: None,
        }
    }

    /// Counts the calls of the model. Those of sub-agents are theirs.
    pub(super) fn note(&mut self, event: &Event) {
        if event.head.agent_id.is_none()
            && let Body::Durable(Durable::TurnStart(_)) = &event.body
        {
            self.turns += 1;
        }
    }

    /// Waits until a limit is reached. Without limits it waits for ever.
    pub(super) async fn over(&self) -> Outcome {
        let reached = self.most_turns.is_some_and(|most| self.turns > most);
        if reached && self.stopped.is_none() {
            return Outcome::Limit;
        }
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
        self.stopped.unwrap_or(Outcome::TimedOut)
    }

    /// Records that the run is being stopped. Returns `false` if that was asked for before and took
    /// too long.
    pub(super) fn stops(&mut self, outcome: Outcome) -> bool {
        let is_first = self.stopped.is_none();
        self.stopped = Some(outcome);
        self.deadline = Some(Instant::now() + STOPPING);
        is_first
    }

    /// Returns the limit that was reached.
    pub(super) fn stopped(&self) -> Option<Outcome> {
        self.stopped
    }

    /// Says which limit was reached.
    pub(super) fn words(&self, outcome: Outcome, session: &SessionId) -> String {
        let what = match outcome {
            Outcome::TimedOut => {
                let time = self.timeout.unwrap_or_default().as_secs_f64();
                format!("stopped after {time} seconds")
            }
            Outcome::Done
            | Outcome::Failed
            | Outcome::NobodyToAsk
            | Outcome::Limit
            | Outcome::Blocked
            | Outcome::Interrupted
            | Outcome::Left => {
                format!(
                    "stopped after {} calls of the model",
                    self.most_turns.unwrap_or_default()
                )
            }
        };
        format!("{what}; the session is kept: loop resume {session}")
    }
}
