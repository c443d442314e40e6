//! Answers of clients to open questions. The first valid answer counts; later ones change nothing.

use loopd_proto::event::ask::{
    ElicitationAction, ElicitationCompleted, ElicitationRequested, PermissionCompleted,
    UserInputCompleted,
};
use loopd_proto::event::fact::{Answered, Asked, PermissionsSet, RulesChanged};
use loopd_proto::event::tool::ToolResult;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{RequestId, ToolCallId};
use loopd_proto::permission::{
    Approval, AskReason, AskedBecause, ConfirmedRequest, DecisionSource, PermissionDecision,
    PermissionOutcome, PermissionRequest, Permissions,
};
use serde_json::Value;

use super::form;
use super::part;
use super::queue;
use super::settings::permissions::add_new;
use super::tools::{finish_into, permitted, tell_external_done, waiting_call};
use crate::command::{
    Answer, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect, LastingApproval, Refusal,
    RememberScope,
};
use crate::policy::grant::Grant;
use crate::policy::{Verdict, judge};
use crate::questions::Asks;
use crate::state::State;
use crate::texts;
use crate::tool_call::{CallReport, ToolOrigin};

/// Takes a client's decision about a permission.
pub(super) fn permission(
    state: &State,
    request: &RequestId,
    decided: PermissionDecision,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let Some((turn, call)) = waiting_call(state, request, CallReport::PermissionDecided) else {
        let mut parts = state.questions.parts();
        return match parts.find(|(asked, _)| *asked == request) {
            Some((_, permission)) => Ok(part::answered(state, request, permission, decided, env)),
            None => late_permission(state, request, decided, env),
        };
    };
    let question = state.questions.get(request);
    let Some(permission) = question.and_then(|question| question.asks.permission()) else {
        return Ok(Decision::answering(Answer::Accepted(false)));
    };
    let because = question.and_then(|question| question.because.as_ref());
    let mut decision = Decision::answering(Answer::Accepted(true));
    let (result, refusal) = match denied_meanwhile(state, permission, &decided, env) {
        Some(denied) => denied,
        None => weigh(state, (permission, because), decided, &mut decision),
    };
    match refusal {
        None => {
            let grant = Grant::by_person(permission.clone());
            permit(state, request, (result, None), grant, &mut decision, env);
        }
        Some(outcome) => {
            completed(&mut decision, request, &call.call.id, (result, None));
            finish_into(state, turn, call, outcome, &mut decision, env);
        }
    }
    Ok(decision)
}

fn completed(
    decision: &mut Decision,
    request: &RequestId,
    call: &ToolCallId,
    (result, decision_source): (PermissionOutcome, Option<DecisionSource>),
) {
    decision.store(Durable::PermissionCompleted(PermissionCompleted {
        request_id: request.clone(),
        tool_call_id: Some(call.clone()),
        result,
        decision_source,
    }));
}

/// Permits the call that waits for the answer to a request. Returns whether there is one.
pub(super) fn permit(
    state: &State,
    request: &RequestId,
    outcome: (PermissionOutcome, Option<DecisionSource>),
    grant: Grant,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) -> bool {
    let Some((turn, call)) = waiting_call(state, request, CallReport::PermissionDecided) else {
        return false;
    };
    completed(decision, request, &call.call.id, outcome);
    let present = (env.tool_origin)(&call.call.name);
    let origin = match grant.request() {
        // Such a request says nothing about where its tool runs.
        Some(PermissionRequest::Hook { .. }) | None => present,
        Some(permission) => Some(ToolOrigin::of(permission)),
    };
    // The tool may have been excluded since.
    if let (Some(_), Some(origin)) = (present, origin) {
        permitted(state, turn, call, origin, grant, decision, env);
    } else {
        let outcome = CallOutcome::failure("failure", texts::tool_is_gone(&call.call.name));
        finish_into(state, turn, call, outcome, decision, env);
    }
    true
}

/// Takes a decision about a call whose turn ended before anybody decided. The call will not run any
/// more: a lasting approval counts from now on, and the model reads the decision when the queue gets
/// to it.
fn late_permission(
    state: &State,
    request: &RequestId,
    decided: PermissionDecision,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let mut unanswered = state.unanswered.iter();
    let closed = unanswered.find(|closed| closed.request == *request);
    let nobody_decided = matches!(
        decided,
        PermissionDecision::UserNotAvailable {} | PermissionDecision::Cancelled { .. }
    );
    let Some(closed) = closed.filter(|_| !nobody_decided) else {
        return Ok(Decision::answering(Answer::Accepted(false)));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    let denied = denied_meanwhile(state, &closed.permission, &decided, env);
    let (_, refusal) = denied.unwrap_or_else(|| {
        let asked = (&*closed.permission, closed.because.as_ref());
        weigh(state, asked, decided, &mut decision)
    });
    let refusal = refusal.map(|outcome| outcome.result.content);
    let text = texts::late_permission(&closed.tool, &closed.permission, refusal.as_deref());
    queue::answer_late(state, request, text, &mut decision, env)?;
    Ok(decision)
}

/// Returns the denial by a rule that came into force while a person was asked. The strictest verdict
/// wins, also over a person's yes.
pub(super) fn denied_meanwhile(
    state: &State,
    permission: &PermissionRequest,
    decided: &PermissionDecision,
    env: &DecideEnv<'_>,
) -> Option<(PermissionOutcome, Option<CallOutcome>)> {
    match decided {
        PermissionDecision::ApproveOnce {}
        | PermissionDecision::ApproveForSession { .. }
        | PermissionDecision::ApproveForLocation { .. }
        | PermissionDecision::ApprovePermanently { .. } => {}
        PermissionDecision::Reject { .. }
        | PermissionDecision::UserNotAvailable {}
        | PermissionDecision::Cancelled { .. } => return None,
    }
    let Verdict::Deny(rules) = judge(&env.permissions(state), env.whereabouts(state), permission)
    else {
        return None;
    };
    let outcome = CallOutcome::failure("denied", texts::denied_by_rules(&rules));
    Some((PermissionOutcome::DeniedByRules { rules }, Some(outcome)))
}

/// Returns the outcome of a decision and, if it is a refusal, the result of the call.
pub(super) fn weigh(
    state: &State,
    (permission, because): (&PermissionRequest, Option<&AskedBecause>),
    decided: PermissionDecision,
    decision: &mut Decision,
) -> (PermissionOutcome, Option<CallOutcome>) {
    let could_not_ask = || CallOutcome::failure("denied", texts::could_not_ask(because));
    match decided {
        PermissionDecision::ApproveOnce {} => (PermissionOutcome::Approved {}, None),
        // A rule asks about it: exactly this is not asked about again, and no rule is added.
        PermissionDecision::ApproveForSession { .. }
            if because.is_some_and(|because| because.reason == AskReason::AskRule) =>
        {
            let confirmed = ConfirmedRequest::of(permission);
            let confirmed = confirmed.filter(|_| because.is_some_and(|it| it.session_approval));
            let approval = match permission {
                PermissionRequest::Shell {
                    full_command_text, ..
                } => Some(Approval::Commands {
                    command_identifiers: vec![full_command_text.clone()],
                }),
                _ => approval_for(permission),
            };
            let approval = approval.filter(|_| confirmed.is_some());
            confirm(state, decision, confirmed);
            let outcome = approval.map_or(PermissionOutcome::Approved {}, |approval| {
                PermissionOutcome::ApprovedForSession { approval }
            });
            (outcome, None)
        }
        PermissionDecision::ApproveForSession { approval, domain } => {
            let approval = approval.or_else(|| approval_for(permission));
            allow(state, decision, approval.as_ref(), domain);
            let outcome = approval.map_or(PermissionOutcome::Approved {}, |approval| {
                PermissionOutcome::ApprovedForSession { approval }
            });
            (outcome, None)
        }
        PermissionDecision::ApproveForLocation {
            approval,
            location_key,
        } => {
            allow(state, decision, Some(&approval), None);
            decision.run(Effect::Remember(
                approval.clone(),
                RememberScope::Location(location_key.clone()),
            ));
            let outcome = PermissionOutcome::ApprovedForLocation {
                approval,
                location_key,
            };
            (outcome, None)
        }
        PermissionDecision::ApprovePermanently { domain, approval } => {
            let approval = approval.or_else(|| approval_for(permission));
            allow(state, decision, approval.as_ref(), domain);
            if let Some(approval) = approval {
                decision.run(Effect::Remember(approval, RememberScope::Always));
            }
            (PermissionOutcome::Approved {}, None)
        }
        PermissionDecision::Reject { feedback } => {
            let text = match &feedback {
                Some(feedback) => texts::rejected_with_feedback(feedback),
                None => texts::REJECTED_BY_USER.to_owned(),
            };
            (
                PermissionOutcome::DeniedInteractivelyByUser { feedback },
                Some(CallOutcome::failure(texts::REJECTED_CODE, text)),
            )
        }
        PermissionDecision::UserNotAvailable {} => (
            PermissionOutcome::DeniedNoApprovalRuleAndCouldNotRequestFromUser {},
            Some(could_not_ask()),
        ),
        PermissionDecision::Cancelled { reason } => (
            PermissionOutcome::Cancelled { reason },
            Some(could_not_ask()),
        ),
    }
}

/// Returns the narrowest lasting approval that would cover the same request again.
fn approval_for(permission: &PermissionRequest) -> Option<Approval> {
    match permission {
        PermissionRequest::Shell {
            commands,
            can_offer_session_approval: true,
            ..
        } => Some(Approval::Commands {
            command_identifiers: commands.iter().map(|c| c.identifier.clone()).collect(),
        }),
        PermissionRequest::Shell { .. }
        | PermissionRequest::Url { .. }
        | PermissionRequest::Hook { .. } => None,
        PermissionRequest::Write { .. } => Some(Approval::Write {}),
        PermissionRequest::Read { .. } => Some(Approval::Read {}),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => Some(Approval::Mcp {
            server_name: server_name.clone(),
            tool_name: Some(tool_name.clone()),
        }),
        PermissionRequest::CustomTool { tool_name, .. } => Some(Approval::CustomTool {
            tool_name: tool_name.clone(),
        }),
    }
}

/// Takes a lasting approval that a client gave when an agent asked.
pub(super) fn grant(state: &State, grant: &LastingApproval) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    allow(
        state,
        &mut decision,
        grant.approval.as_ref(),
        grant.domain.clone(),
    );
    confirm(state, &mut decision, grant.confirmed.clone());
    decision
}

/// The most requests that are kept as approved although rules ask about them.
const MOST_CONFIRMED: usize = 10_000;

/// Stores what a person approved for the session although a rule asks about it.
fn confirm(state: &State, decision: &mut Decision, confirmed: Option<ConfirmedRequest>) {
    let known = &state.permissions.confirmed;
    let is_new = |request: &ConfirmedRequest| !known.contains(request);
    let Some(confirmed) = confirmed.filter(is_new) else {
        return;
    };
    if state.subagent.is_some() {
        decision.run(Effect::GrantAbove(LastingApproval {
            approval: None,
            domain: None,
            confirmed: Some(confirmed),
        }));
    } else if known.len() < MOST_CONFIRMED {
        decision.store(Durable::RulesChanged(RulesChanged {
            confirmed: vec![confirmed],
            ..RulesChanged::default()
        }));
    }
}

pub(super) fn allow(
    state: &State,
    decision: &mut Decision,
    approval: Option<&Approval>,
    domain: Option<String>,
) {
    if state.subagent.is_some() {
        // An agent has the permissions of its parents, so the approval is stored in the top-level
        // session.
        decision.run(Effect::GrantAbove(LastingApproval {
            approval: approval.cloned(),
            domain,
            confirmed: None,
        }));
        return;
    }
    let mut urls = state.permissions.allowed_urls.clone();
    add_new(&mut urls, domain);
    if urls != state.permissions.allowed_urls {
        let mut permissions: Permissions = state.permissions.clone();
        permissions.allowed_urls = urls;
        decision.store(Durable::Permissions(PermissionsSet { permissions }));
    }
    // This comes second, because the event before replaces all permissions.
    let mut added = approval.map(Approval::rules).unwrap_or_default();
    added.retain(|rule| !state.permissions.approved.contains(rule));
    if !added.is_empty() {
        decision.store(Durable::RulesChanged(RulesChanged {
            added,
            ..RulesChanged::default()
        }));
    }
}

/// Takes the result of a tool that a client ran.
pub(super) fn tool(
    state: &State,
    request: &RequestId,
    outcome: CallOutcome,
    env: &DecideEnv<'_>,
) -> Decision {
    let Some((turn, call)) = waiting_call(state, request, CallReport::ClientAnswered) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    tell_external_done(&mut decision, request);
    finish_into(state, turn, call, outcome, &mut decision, env);
    decision
}

/// Takes a person's answer to a question of the model.
pub(super) fn user_input(
    state: &State,
    request: &RequestId,
    answer: String,
    freeform: bool,
    env: &DecideEnv<'_>,
) -> Decision {
    let question = state.questions.get(request);
    let is_asked = question.is_some_and(|open| matches!(open.asks, Asks::UserInput(_)));
    let waiting = waiting_call(state, request, CallReport::UserAnswered);
    let Some((turn, call)) = waiting.filter(|_| is_asked) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let text = if freeform {
        texts::user_responded(&answer)
    } else {
        texts::user_selected(&answer)
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::Answered(Answered {
            request_id: request.clone(),
        }))
        .tell(Ephemeral::UserInputCompleted(UserInputCompleted {
            request_id: request.clone(),
            answer: Some(answer),
            was_freeform: Some(freeform),
        }))
        .run(Effect::Withdraw(request.clone()));
    let outcome = CallOutcome {
        status: CallStatusReport::Success,
        result: ToolResult {
            detailed_content: Some(text.clone()),
            content: text,
            ..ToolResult::default()
        },
        telemetry: None,
        delivered: Vec::new(),
        skill: None,
        stops: None,
    };
    finish_into(state, turn, call, outcome, &mut decision, env);
    decision
}

/// Asks people to fill in a form.
pub(super) fn elicit(asked: ElicitationRequested) -> Decision {
    let mut decision = Decision::default();
    decision
        .store(Durable::Asked(Asked::Elicitation(asked.clone())))
        .tell(Ephemeral::ElicitationRequested(asked));
    decision
}

pub(super) fn elicitation(
    state: &State,
    request: &RequestId,
    action: ElicitationAction,
    content: Option<Value>,
) -> Result<Decision, Refusal> {
    let mut forms = state.questions.forms();
    let Some(form) = forms.find(|form| form.request_id == *request) else {
        return Ok(Decision::answering(Answer::Accepted(false)));
    };
    if let (ElicitationAction::Accept, Some(schema)) = (action, &form.requested_schema) {
        // The form stays open, so that it can be filled in again.
        form::check(schema, content.as_ref()).map_err(Refusal::FormContent)?;
    }
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::Answered(Answered {
            request_id: request.clone(),
        }))
        .tell(Ephemeral::ElicitationCompleted(ElicitationCompleted {
            request_id: request.clone(),
            action: Some(action),
            content: content.clone(),
        }))
        .run(Effect::Resolve {
            request: request.clone(),
            action,
            content,
        });
    Ok(decision)
}

#[cfg(test)]
mod tests;
