//! Tool calls between the model's wish and their one result.

use loopd_proto::event::ask::{Completed, PermissionRequested, UserInputRequested};
use loopd_proto::event::fact::Asked;
use loopd_proto::event::tool::{ExternalToolRequested, ToolComplete, ToolError, ToolResult};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{RequestId, ToolCallId};
use loopd_proto::permission::PermissionPrompt;

use super::abort::INTERRUPT_CODE;
use super::tasks;
use super::turn::{self, Stop};
use crate::command::{
    Assessed, CallNeed, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect,
};
use crate::policy::{self, Verdict};
use crate::state::{CallState, State, Turn, TurnKey};
use crate::texts;

/// It is known what the call needs: it runs, is refused, or a client is asked.
pub(super) fn assessed(state: &State, assessed: Assessed, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let Some((turn, call)) = open_call(state, &assessed.turn, &assessed.call) else {
        return decision;
    };
    if turn.aborting {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        return finish(state, turn, call, outcome, env);
    }
    let permission = match assessed.need {
        CallNeed::Refused(outcome) => return finish(state, turn, call, outcome, env),
        CallNeed::Nothing => {
            run(&mut decision, turn, call, None);
            return decision;
        }
        CallNeed::Permission(permission) => permission.for_call(&call.call.id),
    };
    let mut permissions = match assessed.inherited {
        Some(inherited) => *inherited,
        None => state.permissions.clone(),
    };
    permissions.approve_all |= assessed.bypass;
    match policy::judge(&permissions, &state.cwd, &permission) {
        Verdict::Allow => run(&mut decision, turn, call, Some(permission)),
        Verdict::Deny(rule) => {
            let text = texts::denied_by_rule(&rule.kind, rule.argument.as_deref());
            return finish(state, turn, call, CallOutcome::failure("denied", text), env);
        }
        Verdict::Ask if assessed.can_ask => {
            let permission =
                if policy::managed::wants_a_person(&permissions, &state.cwd, &permission) {
                    permission.for_a_person()
                } else {
                    permission
                };
            decision.store(Durable::PermissionRequested(PermissionRequested {
                request_id: env.request(),
                prompt_request: Some(PermissionPrompt::from(&permission)),
                permission_request: permission,
            }));
        }
        Verdict::Ask => {
            let outcome = CallOutcome::failure("denied", texts::COULD_NOT_ASK);
            return finish(state, turn, call, outcome, env);
        }
    }
    decision
}

/// The tool runs in a client: everyone attached is told, the first answer counts.
pub(super) fn call_client(
    state: &State,
    key: &TurnKey,
    id: &ToolCallId,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let Some((turn, call)) = open_call(state, key, id) else {
        return decision;
    };
    if turn.aborting {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        return finish(state, turn, call, outcome, env);
    }
    decision.store(Durable::ExternalToolRequested(ExternalToolRequested {
        request_id: env.request(),
        session_id: state.id.clone(),
        tool_call_id: id.clone(),
        tool_name: call.call.name.clone(),
        arguments: Some(call.call.arguments.clone()),
        working_directory: Some(state.cwd.clone()),
    }));
    decision
}

/// A question that the model has for the user.
pub(super) struct Question {
    pub(super) text: String,
    pub(super) choices: Option<Vec<String>>,
    pub(super) allow_freeform: bool,
}

pub(super) fn ask_user(
    state: &State,
    key: &TurnKey,
    id: &ToolCallId,
    question: Question,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let Some((turn, call)) = open_call(state, key, id) else {
        return decision;
    };
    if turn.aborting {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        return finish(state, turn, call, outcome, env);
    }
    let asked = UserInputRequested {
        request_id: env.request(),
        question: question.text,
        choices: question.choices,
        allow_freeform: Some(question.allow_freeform),
        tool_call_id: Some(id.clone()),
    };
    decision
        .store(Durable::Asked(Asked::UserInput(asked.clone())))
        .tell(Ephemeral::UserInputRequested(asked.clone()))
        .run(Effect::AskClients(Asked::UserInput(asked)));
    decision
}

/// A call has ended; the last one of its turn moves the loop on.
pub(super) fn finished(
    state: &State,
    key: &TurnKey,
    id: &ToolCallId,
    outcome: CallOutcome,
    env: &DecideEnv<'_>,
) -> Decision {
    let Some((turn, call)) = open_call(state, key, id) else {
        return Decision::default();
    };
    let outcome = if turn.aborting {
        CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED)
    } else {
        outcome
    };
    finish(state, turn, call, outcome, env)
}

/// Records the result and, when no other call is open, goes on.
pub(super) fn finish(
    state: &State,
    turn: &Turn,
    call: &CallState,
    outcome: CallOutcome,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    finish_into(state, turn, call, outcome, &mut decision, env);
    decision
}

/// Like [`finish`], after steps that were decided before.
pub(super) fn finish_into(
    state: &State,
    turn: &Turn,
    call: &CallState,
    outcome: CallOutcome,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) {
    let rejected = is_rejection(&outcome);
    let delivered = tasks::delivered_by_result(state, &outcome.delivered);
    complete(decision, turn, &call.call.id, outcome);
    // In one with the result, so that a crash loses both or none.
    if let Some(delivered) = delivered {
        decision.store(delivered);
    }
    let others_open = turn
        .calls()
        .iter()
        .any(|other| other.call.id != call.call.id && other.is_open());
    if !others_open {
        let stop = if rejected || turn.was_rejected() {
            Stop::Rejected
        } else {
            Stop::No
        };
        turn::after_tools(state, turn, decision, stop, env);
    }
}

/// Writes the one result of a call.
pub(super) fn complete(
    decision: &mut Decision,
    turn: &Turn,
    id: &ToolCallId,
    outcome: CallOutcome,
) {
    let (success, result, error) = match outcome.status {
        CallStatusReport::Success => (true, Some(outcome.result), None),
        CallStatusReport::Failure { code } => {
            // People read the error; the model may be told something else.
            let told = outcome.result.content;
            let message = outcome
                .result
                .detailed_content
                .unwrap_or_else(|| told.clone());
            let result = (message != told).then_some(ToolResult {
                content: told,
                ..ToolResult::default()
            });
            let error = ToolError {
                message,
                code: Some(code),
            };
            (false, result, Some(error))
        }
    };
    decision.store(Durable::ToolComplete(ToolComplete {
        tool_call_id: id.clone(),
        success,
        model: None,
        interaction_id: Some(turn.key.interaction.clone()),
        is_user_requested: None,
        result,
        error,
        tool_telemetry: outcome.telemetry,
        turn_id: Some(turn.key.turn_id()),
    }));
}

pub(super) fn tell_external_done(decision: &mut Decision, request: &RequestId) {
    decision.tell(Ephemeral::ExternalToolCompleted(Completed {
        request_id: request.clone(),
    }));
}

/// Lets an allowed call run.
pub(super) fn run(
    decision: &mut Decision,
    turn: &Turn,
    call: &CallState,
    grant: Option<loopd_proto::permission::PermissionRequest>,
) {
    decision.run(Effect::Run {
        turn: turn.key.clone(),
        call: call.call.clone(),
        grant,
    });
}

fn is_rejection(outcome: &CallOutcome) -> bool {
    matches!(&outcome.status, CallStatusReport::Failure { code } if code == texts::REJECTED_CODE)
}

/// Finds a call of the running turn that has no result yet.
pub(super) fn open_call<'a>(
    state: &'a State,
    key: &TurnKey,
    id: &ToolCallId,
) -> Option<(&'a Turn, &'a CallState)> {
    let turn = state.turn_named(key)?;
    let call = turn.call(id).filter(|call| call.is_open())?;
    Some((turn, call))
}

/// Finds the call that waits for this answer.
pub(super) fn waiting_call<'a>(
    state: &'a State,
    request: &RequestId,
) -> Option<(&'a Turn, &'a CallState)> {
    let turn = state.turn()?;
    let call = turn.calls().iter().find(|call| call.waits_for(request))?;
    Some((turn, call))
}

#[cfg(test)]
mod tests;
