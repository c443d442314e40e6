//! Which conditions of a session the random lives get to, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use loopd_kernel::state::{Phase, Stage, State};
use loopd_kernel::tool_call::CallStage;

/// The conditions that random lives have to get to.
pub(super) const CONDITIONS: [&str; 20] = [
    "idle",
    "idle, agents at work",
    "preparing a message",
    "preparing messages that join a turn",
    "preparing after a notification",
    "a slash command is out",
    "the model is called",
    "the model is called in the third turn or later",
    "tool calls are open",
    "several tool calls are open",
    "a call is assessed or runs",
    "a call asks for permission",
    "a client runs a call",
    "a call asks the user",
    "a call is done and another is open",
    "a person said no",
    "a turn is being aborted",
    "messages are queued",
    "messages wait to join the turn",
    "an elicitation is open",
];

/// How many lives got to a condition, and after how many actions it held.
#[derive(Default)]
pub(super) struct Reached {
    lives: BTreeMap<&'static str, usize>,
    moments: BTreeMap<&'static str, usize>,
    in_this_life: BTreeSet<&'static str>,
}

impl Reached {
    pub(super) fn begin_life(&mut self) {
        self.in_this_life.clear();
    }

    /// Counts what holds of the state after an action.
    pub(super) fn count(&mut self, state: &State) {
        for condition in conditions(state) {
            *self.moments.entry(condition).or_default() += 1;
            if self.in_this_life.insert(condition) {
                *self.lives.entry(condition).or_default() += 1;
            }
        }
    }

    pub(super) fn lives(&self, condition: &str) -> usize {
        self.lives.get(condition).copied().unwrap_or_default()
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>8} {:>8}", "lives", "moments")?;
        for condition in CONDITIONS {
            let moments = self.moments.get(condition).copied().unwrap_or_default();
            writeln!(f, "{:>8} {moments:>8}  {condition}", self.lives(condition))?;
        }
        Ok(())
    }
}

fn conditions(state: &State) -> Vec<&'static str> {
    let mut held = Vec::new();
    let mut note = |holds: bool, condition| {
        if holds {
            held.push(condition);
        }
    };
    note(!state.queue.is_empty(), "messages are queued");
    note(!state.steering.is_empty(), "messages wait to join the turn");
    let elicits = state.questions.forms().next().is_some();
    note(elicits, "an elicitation is open");
    match &state.phase {
        Phase::Idle => {
            note(true, "idle");
            note(state.tasks.has_agents_at_work(), "idle, agents at work");
        }
        Phase::Preparing(preparing) => {
            let joins = preparing.joins.is_some();
            note(joins, "preparing messages that join a turn");
            note(preparing.run.woken, "preparing after a notification");
            note(!joins && !preparing.run.woken, "preparing a message");
        }
        Phase::Commanding(_) => note(true, "a slash command is out"),
        Phase::Rewinding(_) => note(true, "files are being restored"),
        Phase::Turn(turn) => {
            let calling = turn.stage == Stage::Calling;
            let third = turn.key.number >= 2;
            note(calling, "the model is called");
            note(
                calling && third,
                "the model is called in the third turn or later",
            );
            note(turn.aborting, "a turn is being aborted");
            note(turn.was_rejected(), "a person said no");
            let open = turn.calls().iter().filter(|it| it.is_open()).count();
            let done = turn.calls().len() - open;
            note(open > 0, "tool calls are open");
            note(open > 1, "several tool calls are open");
            note(open > 0 && done > 0, "a call is done and another is open");
            let any = |wanted: fn(&CallStage) -> bool| {
                turn.calls().iter().any(|call| wanted(&call.stage))
            };
            let started = any(|it| matches!(it, CallStage::Intended | CallStage::Decided));
            note(started, "a call is assessed or runs");
            let asking = any(|it| matches!(it, CallStage::Asking { .. }));
            note(asking, "a call asks for permission");
            let external = any(|it| matches!(it, CallStage::External { .. }));
            note(external, "a client runs a call");
            note(any(asks_user), "a call asks the user");
        }
    }
    held
}

fn asks_user(stage: &CallStage) -> bool {
    matches!(stage, CallStage::UserInput { .. })
}
