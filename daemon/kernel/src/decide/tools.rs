//! Tool calls, from the model's request to their only result.

use loopd_proto::event::ask::{Completed, UserInputRequested};
use loopd_proto::event::fact::Asked;
use loopd_proto::event::tool::{ExternalToolRequested, ToolComplete, ToolError, ToolResult};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{RequestId, ToolCallId};
use loopd_proto::permission::PermissionRequest;

use super::abort::INTERRUPT_CODE;
use super::asking::ask_person;
use super::turn::{self, Stop};
use super::{autopilot, hooks, plan, skills, tasks};
use crate::changed_shells::input_of;
use crate::command::{
    AssessAgain, Assessed, CallNeed, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect,
    GrantCheck, Refusal,
};
use crate::hook::{AskedBy, HookPermission, HookVerdict};
use crate::policy::grant::{Grant, NotGranted};
use crate::policy::planning::ToolClaim;
use crate::policy::typed::{self, UnfinishedLine};
use crate::policy::{self, Verdict, asked, planning};
use crate::state::{State, Turn, TurnKey};
use crate::texts;
use crate::tool_call::{Ahead, CallReport, CallStage, CallState, ToolOrigin, UserQuestion};

/// Permits or refuses a call whose needs are known, or asks for permission.
pub(super) fn assessed(state: &State, assessed: Assessed, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let report = CallReport::Assessed;
    let Some((turn, call)) = open_call(state, &assessed.turn, &assessed.call, report) else {
        return decision;
    };
    if turn.aborting {
        let outcome = CallOutcome::failure(INTERRUPT_CODE, texts::INTERRUPTED);
        return finish(state, turn, call, outcome, env);
    }
    let permission = match assessed.need {
        CallNeed::Refused(outcome) => return finish(state, turn, call, outcome, env),
        CallNeed::Answer(question) => {
            ask_user(&call.call.id, question, &mut decision, env);
            return decision;
        }
        CallNeed::Approval(proposal) => {
            return plan::propose(state, turn, call, proposal, env);
        }
        CallNeed::Nothing => None,
        CallNeed::Permission(permission) => {
            let permission = permission.for_call(&call.call.id);
            let open = turn.calls().iter().filter(|other| other.is_open());
            let others = open.map(|other| &other.call);
            let others = others.filter(|other| other.id != call.call.id);
            let shells = &state.changed_shells;
            let is_changed = shells.has_shell_of(&call.call, others.clone());
            let directories = shells.directories_of(&call.call, &state.cwd, others);
            let permission = permission.in_directories(directories);
            let earlier = turn
                .calls()
                .iter()
                .take_while(|it| it.call.id != call.call.id);
            let earlier = earlier
                .filter(|other| other.is_open())
                .map(|other| &other.call);
            let line = shells.line_of(&call.call, earlier);
            if let Some(outcome) = cannot_compare(state, call, &line, env) {
                return finish(state, turn, call, outcome, env);
            }
            let permission = permission.after_typing(line.texts());
            Some(if is_changed {
                permission.for_changed_shell(texts::CHANGED_SHELL)
            } else {
                permission
            })
        }
    };
    if let Some(outcome) = refused_while_planning(state, call, permission.as_ref(), env) {
        return finish(state, turn, call, outcome, env);
    }
    let (tool, origin) = (&call.call.name, assessed.origin);
    let verdict = skills::weigh(
        state,
        tool,
        origin,
        permission.as_ref(),
        assessed.hooks,
        env,
    );
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(outcome) => return finish(state, turn, call, *outcome, env),
    };
    let mut granted = by_rules(state, permission, assessed.claim, &verdict, env);
    let permissions = env.permissions(state);
    // A hook wants a person to decide, whatever else allows the call.
    if let HookVerdict::Ask(why) = &verdict {
        granted = granted.and_then(|grant| Err(confirmed_by_person(call, grant, why.clone())));
    }
    let by_name = policy::judge_tool(&permissions, &call.call.name);
    match &by_name {
        Verdict::Allow => {}
        Verdict::Ask => {
            let why = texts::asked_by_tool_rule(&call.call.name);
            granted = granted.and_then(|grant| Err(confirmed_by_person(call, grant, Some(why))));
        }
        Verdict::Deny(rules) => {
            let outcome = CallOutcome::failure("denied", texts::denied_by_rules(rules));
            return finish(state, turn, call, outcome, env);
        }
    }
    match granted {
        Ok(grant) => {
            make_ready(assessed.ahead, &mut decision);
            permitted(
                state,
                turn,
                call,
                assessed.origin,
                grant,
                &mut decision,
                env,
            );
        }
        Err(NotGranted {
            verdict: Verdict::Deny(rules),
            ..
        }) => {
            let outcome = CallOutcome::failure("denied", texts::denied_by_rules(&rules));
            return finish(state, turn, call, outcome, env);
        }
        Err(NotGranted { request, .. }) => {
            let request = match &verdict {
                HookVerdict::Ask(Some(why)) => request.with_warning(why),
                HookVerdict::None
                | HookVerdict::Allow
                | HookVerdict::Ask(None)
                | HookVerdict::Deny(_) => *request,
            };
            let asked_by = match (&verdict, &by_name) {
                (HookVerdict::Ask(why), _) => AskedBy::Hook(why.clone()),
                (_, Verdict::Ask) => AskedBy::ToolRule,
                _ => AskedBy::Nobody,
            };
            let for_a_person = asked_by != AskedBy::Nobody
                || asked::wants_a_person(&permissions, env.whereabouts(state), &request);
            if (env.hooks.permission)(&call.call) {
                decision.run(Effect::AskHooks(HookPermission {
                    turn: turn.key.clone(),
                    call: call.call.id.clone(),
                    request,
                    origin: assessed.origin,
                    can_ask: assessed.can_ask,
                    for_a_person,
                    asked_by,
                }));
                return decision;
            }
            drop(permissions);
            let can_ask = assessed.can_ask;
            let asked = (can_ask, asked_by);
            ask_person(state, turn, call, request, asked, &mut decision, env);
            if can_ask {
                make_ready(assessed.ahead, &mut decision);
            }
        }
    }
    decision
}

/// Says whether a call that was permitted may still begin: plan mode or a rule that denies it may have come
/// into force while it waited for its turn.
pub(super) fn check_grant(
    state: &State,
    check: &GrantCheck,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let planning = env.planning(state);
    let permissions = env.permissions(state);
    let by_name = policy::judge_tool(&permissions, &check.tool);
    let by_rules = policy::judge(&permissions, env.whereabouts(state), &check.request);
    if planning.is_on() && !check.planned.is_on() {
        let text = texts::plan_began_meanwhile(planning, &check.tool);
        return Err(Refusal::GrantLost(text));
    }
    match (by_name, by_rules) {
        (Verdict::Deny(rules), _) | (_, Verdict::Deny(rules)) => {
            Err(Refusal::GrantLost(texts::denied_by_rules(&rules)))
        }
        (Verdict::Allow | Verdict::Ask, Verdict::Allow | Verdict::Ask) => Ok(Decision::default()),
    }
}

/// Has a call assessed again, if it is still open.
pub(super) fn assess_again(state: &State, again: AssessAgain) -> Decision {
    let AssessAgain { turn, call, hooks } = again;
    let mut decision = Decision::default();
    if open_call(state, &turn, &call.id, CallReport::Assessed).is_some() {
        decision.run(Effect::Assess { turn, call, hooks });
    }
    decision
}

/// Returns what the rules, the hooks and plan mode say about a permission without asking anybody.
pub(super) fn by_rules(
    state: &State,
    permission: Option<PermissionRequest>,
    claim: ToolClaim,
    hooks: &HookVerdict,
    env: &DecideEnv<'_>,
) -> Result<Grant, NotGranted> {
    let permissions = env.permissions(state);
    let plans = env.planning(state).is_on();
    let may_answer = |request: &PermissionRequest| {
        !asked::wants_a_person(&permissions, env.whereabouts(state), request)
            && (!plans || planning::lets_hooks_answer(request, &(env.plan_file)()))
    };
    let granted = Grant::by_rules(&permissions, env.whereabouts(state), permission);
    let granted = match (granted, hooks) {
        // A hook answers in the place of a person, where no person has to be asked.
        (
            Err(NotGranted {
                verdict: Verdict::Ask,
                request,
            }),
            HookVerdict::Allow,
        ) if may_answer(&request) => Ok(Grant::by_person(*request)),
        (granted, _) => granted,
    };
    if plans {
        return planning::weigh(granted, claim, &permissions, &(env.plan_file)());
    }
    granted
}

/// Refuses input that deny rules cannot be compared with, while such rules are in force.
fn cannot_compare(
    state: &State,
    call: &CallState,
    line: &UnfinishedLine,
    env: &DecideEnv<'_>,
) -> Option<CallOutcome> {
    let input = input_of(&call.call)?;
    let text = match line {
        UnfinishedLine::Text { .. } if typed::plain_text(input, &line.texts()).is_some() => {
            return None;
        }
        UnfinishedLine::Text { .. } => texts::TYPED_KEYS,
        UnfinishedLine::Unknown if typed::stops_only(input) => return None,
        UnfinishedLine::Unknown => texts::TYPED_AFTER_UNKNOWN,
    };
    typed::is_compared(&env.permissions(state)).then(|| CallOutcome::failure("denied", text))
}

/// Returns the request for a person to confirm a call that would run otherwise.
fn confirmed_by_person(call: &CallState, grant: Grant, why: Option<String>) -> NotGranted {
    let request = grant.into_request();
    NotGranted {
        verdict: Verdict::Ask,
        request: Box::new(request.unwrap_or_else(|| PermissionRequest::Hook {
            tool_call_id: Some(call.call.id.clone()),
            tool_name: call.call.name.clone(),
            tool_args: Some(call.call.arguments.clone()),
            hook_message: why,
        })),
    }
}

/// Returns the result of a call that plan mode refuses.
fn refused_while_planning(
    state: &State,
    call: &CallState,
    request: Option<&PermissionRequest>,
    env: &DecideEnv<'_>,
) -> Option<CallOutcome> {
    let planning = env.planning(state);
    let refuses = |request| planning::refuses(request, &(env.plan_file)());
    if !planning.is_on() || !request.is_some_and(refuses) {
        return None;
    }
    let text = texts::refused_while_planning(planning, &call.call.name);
    Some(CallOutcome::failure("denied", text))
}

fn make_ready(ahead: Ahead, decision: &mut Decision) {
    match ahead {
        Ahead::Nothing => {}
        Ahead::Shell => {
            decision.run(Effect::OpenShellAhead);
        }
    }
}

/// Passes a permitted call to the daemon or a client. All attached clients are asked to run a
/// client's tool, and the first answer counts.
pub(super) fn permitted(
    state: &State,
    turn: &Turn,
    call: &CallState,
    origin: ToolOrigin,
    grant: Grant,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) {
    // Plan mode may have begun while a person was asked.
    if let Some(outcome) = refused_while_planning(state, call, grant.request(), env) {
        return finish_into(state, turn, call, outcome, decision, env);
    }
    match origin {
        ToolOrigin::BuiltIn | ToolOrigin::Mcp => {
            decision.run(Effect::Run {
                turn: turn.key.clone(),
                call: call.call.clone(),
                origin,
                grant,
            });
        }
        ToolOrigin::Client if (env.tool_origin)(&call.call.name) == Some(origin) => {
            decision.store(Durable::ExternalToolRequested(ExternalToolRequested {
                request_id: env.request(),
                session_id: state.id.clone(),
                tool_call_id: call.call.id.clone(),
                tool_name: call.call.name.clone(),
                arguments: Some(call.call.arguments.clone()),
                working_directory: Some(state.cwd.clone()),
            }));
        }
        ToolOrigin::Client => {
            let outcome = CallOutcome::failure("failure", texts::tool_is_gone(&call.call.name));
            finish_into(state, turn, call, outcome, decision, env);
        }
    }
}

fn ask_user(
    id: &ToolCallId,
    question: UserQuestion,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) {
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
}

/// Takes the result of a call. The last result of a turn moves the loop on.
pub(super) fn finished(
    state: &State,
    key: &TurnKey,
    id: &ToolCallId,
    outcome: CallOutcome,
    env: &DecideEnv<'_>,
) -> Decision {
    let Some((turn, call)) = open_call(state, key, id, CallReport::Finished) else {
        return Decision::default();
    };
    let outcome = if turn.aborting {
        interrupted(outcome)
    } else {
        outcome
    };
    finish(state, turn, call, outcome, env)
}

/// Returns the result of a call that reports during an abort, with what the tool has so far.
fn interrupted(report: CallOutcome) -> CallOutcome {
    let text = match &report.status {
        CallStatusReport::Success => texts::ended_before_abort(&report.result.content),
        CallStatusReport::Failure { code } if code == INTERRUPT_CODE => {
            texts::interrupted_with(&report.result.content)
        }
        CallStatusReport::Failure { .. } => texts::INTERRUPTED.to_owned(),
    };
    CallOutcome {
        telemetry: report.telemetry,
        delivered: report.delivered,
        ..CallOutcome::failure(INTERRUPT_CODE, text)
    }
}

/// Records the result and, if no other call is open, moves the loop on.
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

/// Tells the model after the last call of an answer that was cut that more may be missing.
fn tell_cut(state: &State, turn: &Turn, call: &CallState, outcome: &mut CallOutcome) {
    let is_last = turn
        .calls()
        .last()
        .is_some_and(|last| last.call.id == call.call.id);
    // The result of a call that is not whole says it already.
    if let Some(cut) = state.answer_cut
        && is_last
        && call.call.arguments.is_object()
    {
        let content = &mut outcome.result.content;
        let note = cut.told_after_calls();
        *content = format!("{}\n\n{note}", content.trim_end());
    }
}

/// Does the same as [`finish`], after the steps of an earlier decision.
pub(super) fn finish_into(
    state: &State,
    turn: &Turn,
    call: &CallState,
    outcome: CallOutcome,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) {
    let mut outcome = autopilot::checked(state, call, outcome, env);
    tell_cut(state, turn, call, &mut outcome);
    let rejected = is_rejection(&outcome);
    let failed = outcome.status != CallStatusReport::Success;
    let delivered = tasks::delivered_by_result(state, &outcome.delivered);
    let loaded = outcome.skill.take().filter(|_| !failed);
    let stopped = outcome.stops.take();
    let is_stopped = stopped.is_some() || turn.was_stopped();
    if let Some(reason) = stopped {
        hooks::stopped(&call.call.id, reason, decision);
    }
    complete(decision, turn, &call.call.id, outcome);
    // All are stored in one transaction, so that a crash loses all or none.
    if let Some(delivered) = delivered {
        decision.store(delivered);
    }
    if let Some(skill) = loaded {
        skills::loaded_by_model(state, *skill, decision);
    }
    let others_open = turn
        .calls()
        .iter()
        .any(|other| other.is_open() && !decision.completes(&other.call.id));
    if others_open {
        return;
    }
    let said = autopilot::completion(state, turn, Some((&call.call.id, failed)), env);
    let ends_task = said.as_ref().is_some_and(autopilot::ends_task)
        || ends_turn(turn, (&call.call.id, failed), env);
    let is_ended = is_stopped || rejected || turn.was_rejected();
    if ends_task && !is_ended && env.hooks.stop && state.steering.is_empty() {
        // The hooks are asked first whether the loop may end. One that was ended by a person or a hook
        // must not go on because of another hook.
        decision.run(Effect::AskStop(turn.key.clone()));
        return;
    }
    if let Some(said) = said {
        autopilot::record(decision, said);
    }
    let stop = if is_stopped {
        Stop::ByHook
    } else if rejected || turn.was_rejected() {
        Stop::Rejected
    } else if ends_task || autopilot::gives_up(state, decision, env) {
        Stop::TaskEnded
    } else {
        Stop::No
    };
    turn::after_tools(state, turn, decision, stop, env);
}

/// Whether a call succeeded whose tool ends the turn. `last` is the call whose result is being recorded.
fn ends_turn(turn: &Turn, last: (&ToolCallId, bool), env: &DecideEnv<'_>) -> bool {
    let succeeded = |call: &&CallState| {
        let (id, failed) = last;
        if call.call.id == *id {
            !failed
        } else {
            matches!(call.stage, CallStage::Recorded { failed: false, .. })
        }
    };
    let mut calls = turn.calls().iter().filter(succeeded);
    !turn.aborting && calls.any(|call| (env.ends_turn)(&call.call.name))
}

/// Stores the only result of a call.
pub(super) fn complete(
    decision: &mut Decision,
    turn: &Turn,
    id: &ToolCallId,
    outcome: CallOutcome,
) {
    // A call that never started is shown all the same before its result.
    if let Some(call) = turn.call(id)
        && matches!(
            call.stage,
            CallStage::Requested | CallStage::Guarding { started: false, .. }
        )
        && !decision.starts(id)
    {
        decision.store(hooks::started(turn, &call.call, None));
    }
    let (success, result, error) = match outcome.status {
        CallStatusReport::Success => (true, Some(outcome.result), None),
        CallStatusReport::Failure { code } => {
            // People read the error message. The model may get a different text.
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

fn is_rejection(outcome: &CallOutcome) -> bool {
    matches!(&outcome.status, CallStatusReport::Failure { code } if code == texts::REJECTED_CODE)
}

/// Finds the call of the running turn that a report is about, unless the report is late.
pub(super) fn open_call<'a>(
    state: &'a State,
    key: &TurnKey,
    id: &ToolCallId,
    report: CallReport,
) -> Option<(&'a Turn, &'a CallState)> {
    let turn = state.turn_named(key)?;
    let call = turn.call(id).filter(|call| call.stage.expects(report))?;
    Some((turn, call))
}

/// Finds the call that waits for the answer to this request.
pub(super) fn waiting_call<'a>(
    state: &'a State,
    request: &RequestId,
    report: CallReport,
) -> Option<(&'a Turn, &'a CallState)> {
    let turn = state.turn()?;
    let mut calls = turn.calls().iter();
    let call = calls.find(|call| call.waits_for(request) && call.stage.expects(report))?;
    Some((turn, call))
}

#[cfg(test)]
mod tests;
