//! Hooks in the loop: they guard tool calls, answer what a person would be asked, and may keep the
//! loop from ending.

use loopd_proto::event::Durable;
use loopd_proto::event::ask::{PermissionCompleted, PermissionRequested};
use loopd_proto::event::fact::{Answered, Asked, GuardWanted, LoopOutcome, Reminded};
use loopd_proto::event::hook::{ContextAdded, HookEnd, HookStopped, StopBlocked};
use loopd_proto::event::session::Warning;
use loopd_proto::event::tool::ToolStart;
use loopd_proto::id::{RequestId, SessionId, ToolCallId};
use loopd_proto::permission::{PermissionOutcome, PermissionPrompt};

use super::abort::INTERRUPT_CODE;
use super::asking::ask_person;
use super::tools::{finish_into, open_call, permitted, waiting_call};
use super::turn::{end_turn, next_turn};
use super::{autopilot, queue, rest};
use crate::command::{Answer, CallOutcome, DecideEnv, Decision, Effect};
use crate::guards::ClientGuards;
use crate::hook::{
    Guarded, HookDenial, HookPermission, HookVerdict, STOP_LIMIT, STOPPED, StopAnswered,
};
use crate::model::ToolCall;
use crate::policy::grant::Grant;
use crate::policy::{Verdict, asked, judge};
use crate::state::{State, Turn, TurnKey};
use crate::texts;
use crate::tool_call::{CallReport, CallStage, McpToolRef};

/// Starts a call that hooks have decided about, or records why it does not start.
pub(super) fn guarded(state: &State, guarded: Guarded, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let report = CallReport::Guarded;
    let Some((turn, call)) = open_call(state, &guarded.turn, &guarded.call, report) else {
        return decision;
    };
    let mut is_started = false;
    if let CallStage::Guarding { request, started } = &call.stage {
        is_started = *started;
        decision.store(Durable::Answered(Answered {
            request_id: request.clone(),
        }));
    }
    store_ended(&mut decision, guarded.ended);
    let mut running = call.call.clone();
    let is_changed = guarded.arguments.is_some();
    if let Some(arguments) = guarded.arguments {
        running.arguments = arguments;
    }
    if !is_started || is_changed {
        let mcp = (env.mcp_tool)(&running.name);
        decision.store(started(turn, &running, mcp));
    }
    for text in guarded.context {
        decision.store(Durable::ContextAdded(ContextAdded {
            text,
            tool_call_id: Some(running.id.clone()),
        }));
    }
    match guarded.verdict {
        _ if turn.aborting => {
            let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
            finish_into(state, turn, call, outcome, &mut decision, env);
        }
        HookVerdict::Deny(denial) => {
            finish_into(state, turn, call, denial.outcome(), &mut decision, env);
        }
        hooks @ (HookVerdict::None | HookVerdict::Allow | HookVerdict::Ask(_)) => {
            decision.run(Effect::Assess {
                turn: turn.key.clone(),
                call: running,
                hooks,
            });
        }
    }
    decision
}

/// Builds the event that records the intent to run a call.
pub(super) fn started(turn: &Turn, call: &ToolCall, mcp: Option<McpToolRef>) -> Durable {
    Durable::ToolStart(ToolStart {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: Some(call.arguments.clone()),
        model: None,
        turn_id: Some(turn.key.turn_id()),
        mcp_server_name: mcp.as_ref().map(|it| it.server.clone()),
        mcp_tool_name: mcp.map(|it| it.tool),
    })
}

fn store_ended(decision: &mut Decision, ended: Vec<HookEnd>) {
    for end in ended {
        decision.store(Durable::HookEnd(end));
    }
}

/// Records that a hook stops the agent with the results of this turn.
pub(super) fn stopped(call: &ToolCallId, reason: String, decision: &mut Decision) {
    decision
        .store(Durable::SessionWarning(Warning {
            warning_type: STOPPED.to_owned(),
            message: texts::stopped_by_hook(&reason),
            url: None,
        }))
        .store(Durable::HookStopped(HookStopped {
            tool_call_id: call.clone(),
            reason,
        }));
}

/// Stores what hooks changed and what they tell the model.
pub(super) fn noted(context: Vec<String>, ended: Vec<HookEnd>) -> Decision {
    let mut decision = Decision::default();
    store_ended(&mut decision, ended);
    for text in context {
        decision.store(Durable::ContextAdded(ContextAdded {
            text,
            tool_call_id: None,
        }));
    }
    decision
}

/// Lets a call wait until the clients whose hooks guard the session are there again.
pub(super) fn guard_absent(
    state: &State,
    key: &TurnKey,
    id: &ToolCallId,
    missing: &ClientGuards,
    env: &mut DecideEnv<'_>,
) -> Decision {
    wait_for_guards(state, (key, id), CallReport::Guarded, missing, env)
}

/// Lets a call wait whose permission those clients have to decide about. The hooks are asked about the
/// whole call again when they are there.
pub(super) fn permission_absent(
    state: &State,
    asked: &HookPermission,
    missing: &ClientGuards,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let place = (&asked.turn, &asked.call);
    wait_for_guards(state, place, CallReport::Assessed, missing, env)
}

/// Returns the parent of a sub-agent whose session somebody opened directly.
fn opened_below<'s>(state: &'s State, env: &DecideEnv<'_>) -> Option<&'s SessionId> {
    let own = state.subagent.as_ref().filter(|_| env.top.is_none());
    own.map(|own| &own.parent)
}

fn wait_for_guards(
    state: &State,
    (key, id): (&TurnKey, &ToolCallId),
    report: CallReport,
    missing: &ClientGuards,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let waiting = open_call(state, key, id, report);
    let Some((turn, call)) = waiting.filter(|(turn, _)| !turn.aborting) else {
        return decision;
    };
    if matches!(call.stage, CallStage::Guarding { .. }) {
        return decision;
    }
    decision.store(Durable::Asked(Asked::Guard(GuardWanted {
        request_id: env.request(),
        tool_call_id: id.clone(),
    })));
    if !turn.calls().iter().any(|call| call.stage.is_guarding()) {
        decision.store(Durable::SessionWarning(absent(state, missing, env)));
    }
    decision
}

fn absent(state: &State, missing: &ClientGuards, env: &DecideEnv<'_>) -> Warning {
    Warning {
        warning_type: "guard_absent".to_owned(),
        message: texts::guard_absent(missing, opened_below(state, env)),
        url: None,
    }
}

/// Returns the warning that a call of the running turn still waits for clients that are not there.
pub(super) fn still_absent(state: &State, env: &DecideEnv<'_>) -> Option<Warning> {
    let turn = state.turn().filter(|turn| !turn.aborting)?;
    let waits = turn.calls().iter().any(|call| call.stage.is_guarding());
    waits.then(|| {
        let missing = state.guards.missing_from(&(env.hooks.answering)());
        absent(state, &missing, env)
    })
}

/// Asks the hooks again about the calls that wait for them.
pub(super) fn guards_changed(state: &State) -> Decision {
    let mut decision = Decision::default();
    let Some(turn) = state.turn().filter(|turn| !turn.aborting) else {
        return decision;
    };
    for call in turn.calls().iter().filter(|call| call.stage.is_guarding()) {
        decision.run(Effect::Guard {
            turn: turn.key.clone(),
            call: call.call.clone(),
        });
    }
    decision
}

/// Takes the verdict of hooks about something that the rules would ask a person.
pub(super) fn permission(
    state: &State,
    asked: HookPermission,
    verdict: HookVerdict,
    ended: Vec<HookEnd>,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let report = CallReport::Assessed;
    let Some((turn, call)) = open_call(state, &asked.turn, &asked.call, report) else {
        return decision;
    };
    store_ended(&mut decision, ended);
    if turn.aborting {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        finish_into(state, turn, call, outcome, &mut decision, env);
        return decision;
    }
    // A rule may have come into force while the hooks were asked.
    if let Verdict::Deny(rules) = judge(
        &env.permissions(state),
        env.whereabouts(state),
        &asked.request,
    ) {
        let outcome = CallOutcome::failure("denied", texts::denied_by_rules(&rules));
        finish_into(state, turn, call, outcome, &mut decision, env);
        return decision;
    }
    // What is asked in plan mode is for a person, and so is what managed settings or another hook want a
    // person to decide. There a hook can deny, and nothing else.
    let for_a_person = asked.for_a_person
        || env.planning(state).is_on()
        || asked::wants_a_person(
            &env.permissions(state),
            env.whereabouts(state),
            &asked.request,
        );
    let verdict = match verdict {
        HookVerdict::Allow if for_a_person => HookVerdict::None,
        verdict => verdict,
    };
    let asked_by = match &verdict {
        HookVerdict::Ask(why) => asked.asked_by.clone().and_hook(why.clone()),
        HookVerdict::None | HookVerdict::Allow | HookVerdict::Deny(_) => asked.asked_by.clone(),
    };
    match verdict {
        HookVerdict::None | HookVerdict::Ask(_) => {
            ask_person(
                state,
                turn,
                call,
                asked.request,
                (asked.can_ask, asked_by),
                &mut decision,
                env,
            );
        }
        HookVerdict::Allow => {
            answered_by_hook(&asked, PermissionOutcome::Approved {}, &mut decision, env);
            let grant = Grant::by_person(asked.request);
            permitted(state, turn, call, asked.origin, grant, &mut decision, env);
        }
        HookVerdict::Deny(denial) => {
            let denied = PermissionOutcome::DeniedByPermissionRequestHook {
                message: Some(denial.told.clone()),
                interrupt: denial.stops.then_some(true),
            };
            answered_by_hook(&asked, denied, &mut decision, env);
            finish_into(state, turn, call, denial.outcome(), &mut decision, env);
        }
    }
    decision
}

/// Ends a call that a person was asked about, because a guard that joined since denies it.
pub(super) fn denied_late(
    state: &State,
    request: &RequestId,
    denial: HookDenial,
    env: &DecideEnv<'_>,
) -> Decision {
    let waiting = waiting_call(state, request, CallReport::PermissionDecided);
    let Some((turn, call)) = waiting else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision.store(Durable::PermissionCompleted(PermissionCompleted {
        request_id: request.clone(),
        tool_call_id: Some(call.call.id.clone()),
        result: PermissionOutcome::DeniedByPermissionRequestHook {
            message: Some(denial.told.clone()),
            interrupt: denial.stops.then_some(true),
        },
        decision_source: None,
    }));
    finish_into(state, turn, call, denial.outcome(), &mut decision, env);
    decision
}

/// Records a permission request together with the answer that a hook gave.
fn answered_by_hook(
    asked: &HookPermission,
    result: PermissionOutcome,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) {
    let request_id = env.request();
    decision
        .store(Durable::PermissionRequested(PermissionRequested {
            request_id: request_id.clone(),
            prompt_request: Some(PermissionPrompt::from(&asked.request)),
            permission_request: asked.request.clone(),
            resolved_by_hook: Some(true),
            asked_because: None,
        }))
        .store(Durable::PermissionCompleted(PermissionCompleted {
            request_id,
            tool_call_id: Some(asked.call.clone()),
            result,
            decision_source: None,
        }));
}

/// Ends the loop, or lets the model go on with what a hook wants done first.
pub(super) fn stop_answered(
    state: &State,
    answered: StopAnswered,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let turn = state.turn_named(&answered.turn);
    let Some(turn) = turn.filter(|turn| turn.has_answered() && !turn.aborting) else {
        return decision;
    };
    store_ended(&mut decision, answered.ended);
    let blocks = turn.run.stop_blocks;
    let block = answered.block.filter(|_| {
        let may_block = blocks < env.hooks.most_stop_blocks;
        if !may_block {
            decision.store(Durable::SessionWarning(Warning {
                warning_type: STOP_LIMIT.to_owned(),
                message: texts::stop_block_limit(blocks),
                url: None,
            }));
        }
        may_block
    });
    let said = autopilot::completion(state, turn, None, env);
    let said = match &block {
        Some(reason) => said.map(|said| autopilot::kept_from_ending(said, reason)),
        None => said,
    };
    if let Some(said) = said {
        autopilot::record(&mut decision, said);
    }
    end_turn(&mut decision, &turn.key);
    if let Some(reason) = block {
        decision
            .store(Durable::StopBlocked(StopBlocked {
                reason: reason.clone(),
                count: blocks + 1,
            }))
            .store(Durable::Reminded(Reminded { text: reason }));
        if !queue::take_steering(state, &mut decision) {
            next_turn(state, turn, &mut decision, env);
        }
    } else if !queue::take_steering(state, &mut decision) {
        rest(state, &mut decision, LoopOutcome::Done, env);
    }
    decision
}

#[cfg(test)]
mod tests;
