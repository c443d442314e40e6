//! Aborting a turn. There is one command, and it means the same at every point of the turn.

use loopd_proto::event::Durable;
use loopd_proto::event::ask::PermissionCompleted;
use loopd_proto::event::fact::{Answered, ClientRef, LoopOutcome, Unqueued};
use loopd_proto::event::turn::Abort;
use loopd_proto::id::MessageId;
use loopd_proto::permission::PermissionOutcome;

use super::queue::{modified, slash};
use super::{compaction, limits, rest, tell_idle, tools, turn};
use crate::command::{
    AbortOutcome, AbortRequest, AbortWaiting, Answer, CallOutcome, DecideEnv, Decision, Effect,
    Step,
};
use crate::state::{Phase, State, Turn, TurnKey};
use crate::texts;
use crate::tool_call::CallStage;

/// Stops the turn at any point. Running tools get a short grace time to report how they ended.
pub(super) fn abort(state: &State, request: AbortRequest, env: &DecideEnv<'_>) -> Decision {
    let outcome = |outcome| Decision::answering(Answer::Aborted(outcome));
    // A rewind cannot be stopped halfway.
    if !state.is_busy() || matches!(state.phase, Phase::Rewinding(_)) {
        let mut decision = outcome(AbortOutcome::default());
        // Agents in the background go on, but nobody waits for them any longer.
        if state.tasks.has_agents_at_work() {
            tell_idle(state, &mut decision, Some(true));
        }
        return decision;
    }
    if let Some(only) = &request.only
        && !belongs_to(state, only)
    {
        let owner = state.origin();
        return outcome(AbortOutcome {
            spared: owner.map(|id| (id.clone(), state.sender_of(&id).cloned())),
            ..AbortOutcome::default()
        });
    }
    let removed = removed_by(state, &request);
    let mut decision = outcome(AbortOutcome {
        interrupted: true,
        removed: removed.clone(),
        spared: None,
    });
    let aborts_again = state.turn().is_some_and(|turn| turn.aborting);
    if !aborts_again {
        decision.store(Durable::Abort(Abort {
            reason: request.reason.name().to_owned(),
            aborted_by: request.by,
            removed_message_ids: removed.clone(),
        }));
        decision.run(Effect::CancelTurn);
    }
    if !removed.is_empty() {
        decision
            .store(Durable::Unqueued(Unqueued { ids: removed }))
            .tell(modified());
    }
    if aborts_again {
        // The grace time of the first abort ends the turn.
        return decision;
    }
    close(state, &mut decision, env);
    decision
}

/// Closes what the loop does. Running tools get a short grace time.
pub(super) fn close(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    match &state.phase {
        Phase::Idle | Phase::Rewinding(_) => {}
        Phase::Commanding(command) => {
            slash::completed(decision, command);
            stopped(state, decision, env);
        }
        Phase::Preparing(preparing) => {
            turn::deliver_unanswered(decision, preparing, env);
            stopped(state, decision, env);
        }
        Phase::Turn(turn) => {
            compaction::aborted(state, decision);
            let running = close_waiting(decision, turn, INTERRUPT_CODE, texts::INTERRUPTED);
            for asked in state.questions.switches() {
                decision.run(Effect::Withdraw(asked.request_id.clone()));
            }
            if running == 0 {
                turn::end_turn(decision, &turn.key);
                stopped(state, decision, env);
            } else {
                decision.run(Effect::StartGrace(turn.key.clone()));
            }
        }
    }
}

/// Ends the run that an abort or a limit has stopped.
pub(super) fn stopped(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    let is_limit = |step: &Step| matches!(step, Step::Store(Durable::TimeUp(_)));
    let limited = state.run().is_some_and(|run| run.limited) || decision.steps.iter().any(is_limit);
    if limited {
        limits::end_limited(state, decision, env);
    } else {
        rest(state, decision, LoopOutcome::Aborted, env);
    }
}

/// Returns the waiting items that an abort removes, steering messages first.
fn removed_by(state: &State, request: &AbortRequest) -> Vec<MessageId> {
    let goes = |sender: Option<&ClientRef>| match request.waiting {
        AbortWaiting::RemoveAll => true,
        AbortWaiting::Keep => false,
        AbortWaiting::RemoveOwn => match (sender, &request.by) {
            (Some(sender), Some(by)) => sender.id == by.id,
            // Logs of earlier versions do not say who sent a message.
            (None, _) | (_, None) => true,
        },
    };
    let steering = state.steering.iter();
    let steering = steering.map(|message| (&message.id, message.sender.as_ref()));
    let queue = state.queue.iter().map(|item| (item.id(), item.sender()));
    let removed = steering.chain(queue).filter(|(_, sender)| goes(*sender));
    removed.map(|(id, _)| id.clone()).collect()
}

/// Whether the running turn belongs to a message: it works on this message, and the message that
/// started it is this one or one of the same client.
fn belongs_to(state: &State, message: &MessageId) -> bool {
    let run = match &state.phase {
        Phase::Idle | Phase::Rewinding(_) => return false,
        Phase::Commanding(command) => return command.id == *message,
        Phase::Preparing(preparing) => &preparing.run,
        Phase::Turn(turn) => &turn.run,
    };
    let sender = state.sender_of(message);
    let is_ours = |other: &MessageId| {
        let same =
            || sender.is_some_and(|it| state.sender_of(other).is_some_and(|o| o.id == it.id));
        other == message || same()
    };
    run.messages.contains(message)
        && match &run.origin {
            Some(origin) => is_ours(origin),
            None => run.messages.iter().all(is_ours),
        }
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
    stopped(state, &mut decision, env);
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
                    decision_source: None,
                }));
            }
            CallStage::External { request } => {
                tools::tell_external_done(decision, request);
            }
            CallStage::UserInput { request } | CallStage::Guarding { request, .. } => {
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
