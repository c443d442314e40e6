//! Which clients' hooks guard the session.

use loopd_proto::event::Durable;
use loopd_proto::event::session::Warning;

use super::hooks::guards_changed;
use crate::command::{Answer, DecideEnv, Decision};
use crate::guards::{ClientGuards, GuardJoined, GuardLeft, LiftScope};
use crate::state::State;
use crate::texts;

/// Records that a client guards the session.
pub(super) fn joined(state: &State, joined: &GuardJoined) -> Decision {
    changed(state, &state.guards.after_join(joined))
}

/// Stops waiting for a client that leaves by its own will.
pub(super) fn left(state: &State, left: &GuardLeft) -> Decision {
    let mut decision = changed(state, &state.guards.after_leave(&left.name));
    if left.others_stay && decision.answer == Answer::Accepted(true) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "guard_left".to_owned(),
            message: texts::guard_left(&left.name),
            url: None,
        }));
    }
    decision
}

/// Stops waiting for those that are gone, or for all of them, and asks those that are there about the
/// calls that wait.
pub(super) fn lift(state: &State, scope: LiftScope, env: &DecideEnv<'_>) -> Decision {
    let lifted = state.guards.lifted(scope, &(env.hooks.answering)());
    let mut decision = changed(state, &lifted.stay);
    if decision.answer == Answer::Accepted(true) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "guard_lifted".to_owned(),
            message: texts::guard_lifted(&lifted.lifted),
            url: None,
        }));
        decision.steps.extend(guards_changed(state).steps);
    }
    decision.answer = Answer::GuardsLifted(lifted);
    decision
}

fn changed(state: &State, guards: &ClientGuards) -> Decision {
    let changed = state.guards != *guards;
    let mut decision = Decision::answering(Answer::Accepted(changed));
    if changed {
        decision.store(Durable::ClientGuard(guards.event()));
    }
    decision
}
