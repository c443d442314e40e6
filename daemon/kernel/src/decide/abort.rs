//! Aborting a turn. There is one command, and it means the same at every point of the turn.

use loopd_proto::event::ask::PermissionCompleted;
use loopd_proto::event::fact::{Answered, LoopOutcome, Unqueued};
use loopd_proto::event::session::Idle;
use loopd_proto::event::turn::Abort;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::permission::PermissionOutcome;

use super::{rest, tools, turn};
use crate::command::{Answer, CallOutcome, DecideEnv, Decision, Effect};
use crate::state::{Phase, State, Turn, TurnKey};
use crate::texts;
use crate::tool_call::CallStage;

/// Stops the turn at any point. Running tools get a short grace time to report how they ended.
pub(super) fn abort(state: &State, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    let aborts_again = state.turn().is_some_and(|turn| turn.aborting);
    if !state.is_busy() {
        // Agents in the background go on, but nobody waits for them any longer.
        if state.tasks.has_agents_at_work() {
            decision.tell(Ephemeral::SessionIdle(Idle {
                aborted: Some(true),
                mode: Some(state.mode),
            }));
        }
        return decision;
    }
    if !aborts_again {
        decision.store(Durable::Abort(Abort {
            reason: "user_initiated".to_owned(),
        }));
        decision.run(Effect::CancelTurn);
    }
    let waiting: Vec<_> = state
        .steering
        .iter()
        .map(|message| message.id.clone())
        .chain(state.queue.iter().map(|item| item.id().clone()))
        .collect();
    if !waiting.is_empty() {
        decision.store(Durable::Unqueued(Unqueued { ids: waiting }));
    }
    if aborts_again {
        // The grace time of the first abort ends the turn.
        return decision;
    }
    match &state.phase {
        Phase::Idle => {}
        Phase::Commanding(_) => rest(state, &mut decision, LoopOutcome::Aborted, env),
        Phase::Preparing(preparing) => {
            turn::deliver_unanswered(&mut decision, preparing);
            rest(state, &mut decision, LoopOutcome::Aborted, env);
        }
        Phase::Turn(turn) => {
            let running = close_waiting(&mut decision, turn, INTERRUPT_CODE, texts::INTERRUPTED);
            if running == 0 {
                turn::end_turn(&mut decision, &turn.key);
                rest(state, &mut decision, LoopOutcome::Aborted, env);
            } else {
                decision.run(Effect::StartGrace(turn.key.clone()));
            }
        }
    }
    decision
}

/// The error code of a result that an abort produced.
pub(super) const INTERRUPT_CODE: &str = texts::INTERRUPTED_CODE;

/// Records the calls that have not reported within the grace time as interrupted.
pub(super) fn grace_over(state: &State, key: &TurnKey, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let Some(turn) = state.turn_named(key).filter(|turn| turn.aborting) else {
        return decision;
    };
    for call in turn.calls().iter().filter(|call| call.is_open()) {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        tools::complete(&mut decision, turn, &call.call.id, outcome);
    }
    turn::end_turn(&mut decision, key);
    rest(state, &mut decision, LoopOutcome::Aborted, env);
    decision
}

/// Closes the calls that wait for a client or a person. Returns how many others may be running.
pub(super) fn close_waiting(decision: &mut Decision, turn: &Turn, code: &str, text: &str) -> usize {
    let mut running = 0;
    for call in turn.calls() {
        let id = &call.call.id;
        match &call.stage {
            CallStage::Recorded { .. } => continue,
            CallStage::Requested | CallStage::Intended | CallStage::Decided => {
                running += 1;
                continue;
            }
            CallStage::Asking { request } => {
                decision.store(Durable::PermissionCompleted(PermissionCompleted {
                    request_id: request.clone(),
                    tool_call_id: Some(id.clone()),
                    result: PermissionOutcome::Cancelled { reason: None },
                }));
            }
            CallStage::External { request } => {
                tools::tell_external_done(decision, request);
            }
            CallStage::UserInput { request } => {
                decision
                    .store(Durable::Answered(Answered {
                        request_id: request.clone(),
                    }))
                    .run(Effect::Withdraw(request.clone()));
            }
        }
        tools::complete(decision, turn, id, CallOutcome::failure(code, text));
    }
    running
}

#[cfg(test)]
mod tests;
