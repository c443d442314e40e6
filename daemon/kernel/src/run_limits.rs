//! The limits that a message sets for its own run: how many model calls it may take, sub-agents
//! included, and how long. They hold for nothing else in the session, and they end with the run.

use loopd_proto::event::fleet::FleetStarted;
use loopd_proto::id::MessageId;
use loopd_proto::run_scope::{CommandRun, RunLimits};
use loopd_proto::session::{LimitKind, SessionLimits};
use loopd_proto::time::Timestamp;

use crate::budget::{self, LimitReached};
use crate::state::{Run, State};

/// The limits of the last run that had some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedRun {
    pub message: MessageId,
    limits: RunLimits,
    /// How many model calls belong to the run.
    turns: u64,
    since: Timestamp,
}

/// How many model calls of a session belong to others than the limited run, and how many the run may
/// make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTurns {
    others: u64,
    most: u64,
}

impl RunTurns {
    /// Says of a limit that is reached what the message allowed, if it is that limit.
    #[must_use]
    pub fn told(self, reached: LimitReached) -> LimitReached {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let (all, others, most) = (
            self.others.saturating_add(self.most) as f64,
            self.others as f64,
            self.most as f64,
        );
        let is_this = reached.kind == LimitKind::Turns && reached.limit >= all;
        if is_this {
            LimitReached {
                used: reached.used - others,
                limit: most,
                of_run: true,
                ..reached
            }
        } else {
            reached
        }
    }
}

/// Notes that a run begins with these messages, which may set limits for it.
pub(crate) fn begin(state: &mut State, now: Timestamp) {
    let limits = |run: &Run| run.scopes.iter().rev().find_map(|scope| scope.limits);
    let run = state.run();
    let Some((limits, message)) = run.and_then(|run| limits(run).zip(run.origin.clone())) else {
        return;
    };
    if state
        .limited_run
        .as_ref()
        .is_some_and(|known| known.message == message)
    {
        return;
    }
    state.limited_run = Some(LimitedRun {
        message,
        limits,
        turns: 0,
        since: now,
    });
}

/// Notes that a slash command begins to run in a sub-agent.
pub(crate) fn begin_command(state: &mut State, command: &CommandRun, now: Timestamp) {
    if let Some(limits) = command.limits {
        state.limited_run = Some(LimitedRun {
            message: command.id.clone(),
            limits,
            turns: 0,
            since: now,
        });
    }
}

/// Notes that a fleet begins. If its work is divided first, the run of that message begins its limits.
pub(crate) fn begin_fleet(state: &mut State, started: &FleetStarted, now: Timestamp) {
    if started.planned_by.is_none()
        && let Some(run) = &started.run
    {
        begin_command(state, run, now);
    }
}

/// Notes a model call of the session itself.
pub(crate) fn called(state: &mut State) {
    if state.limited_run_in_force().is_some()
        && let Some(limited) = &mut state.limited_run
    {
        limited.turns += 1;
    }
}

/// Notes a model call of a sub-agent that works for this message.
pub(crate) fn agent_called(state: &mut State, origin: Option<&MessageId>) {
    if let Some(limited) = &mut state.limited_run
        && origin == Some(&limited.message)
    {
        limited.turns += 1;
    }
}

impl State {
    /// Returns the run under way and its limits, for a fleet that it starts.
    pub(crate) fn limited_command(&self) -> Option<CommandRun> {
        self.limited_run_in_force().map(|limited| CommandRun {
            id: limited.message.clone(),
            limits: Some(limited.limits),
        })
    }

    /// Returns the limited run, if it is under way: the session works on its message, or its sub-agents
    /// work while the session rests.
    fn limited_run_in_force(&self) -> Option<&LimitedRun> {
        let limited = self.limited_run.as_ref()?;
        let is_own = |run: &Run| {
            run.origin.as_ref() == Some(&limited.message) || run.messages.contains(&limited.message)
        };
        let in_force = if let Some(run) = self.run() {
            is_own(run)
        } else {
            let mut agents = self.tasks.running().filter(|task| task.agent().is_some());
            agents.any(|task| task.origin.as_ref() == Some(&limited.message))
        };
        in_force.then_some(limited)
    }

    /// Returns how many model calls the run under way may make.
    pub fn run_turns(&self) -> Option<RunTurns> {
        let limited = self.limited_run_in_force()?;
        let all = budget::spent(self).turns;
        Some(RunTurns {
            others: all.saturating_sub(limited.turns),
            most: limited.limits.max_turns?,
        })
    }

    /// Returns the limits that hold now: those of the session, and those of the run under way.
    pub fn limits_in_force(&self) -> Option<SessionLimits> {
        let own = self.options.session_limits;
        let Some(turns) = self.run_turns() else {
            return own;
        };
        let most = turns.others.saturating_add(turns.most);
        let mut limits = own.unwrap_or_default();
        limits.max_turns = Some(limits.max_turns.map_or(most, |limit| limit.min(most)));
        Some(limits)
    }

    /// Returns the time that the run under way may take, in milliseconds, and what it has taken.
    pub(crate) fn run_time(&self, now: Timestamp) -> Option<(u64, u64)> {
        let limited = self.limited_run_in_force()?;
        let most = limited.limits.timeout_ms?;
        Some((most, now.millis_since(limited.since)))
    }

    /// Returns whether the limit of time of the run under way, or its number of calls, is reached.
    pub(crate) fn run_is_over(&self, now: Timestamp) -> bool {
        let limited = self.limited_run_in_force();
        let turns =
            limited.is_some_and(|it| it.limits.max_turns.is_some_and(|most| it.turns >= most));
        turns
            || self
                .run_time(now)
                .is_some_and(|(most, taken)| taken >= most)
    }
}
