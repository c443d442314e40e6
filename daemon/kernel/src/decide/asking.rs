//! Asking a person for a permission: the question with its reason, or the refusal if nobody can be
//! asked. What everything that is approved covers needs no answer any more.

use loopd_proto::event::Durable;
use loopd_proto::event::ask::PermissionRequested;
use loopd_proto::id::RequestId;
use loopd_proto::permission::{
    AskReason, AskedBecause, DecisionSource, PermissionOutcome, PermissionPrompt, PermissionRequest,
};

use super::answer;
use super::part;
use super::tools::finish_into;
use crate::command::{CallOutcome, DecideEnv, Decision};
use crate::hook::AskedBy;
use crate::policy::grant::Grant;
use crate::policy::{asked, protected};
use crate::state::{State, Turn};
use crate::texts;
use crate::tool_call::CallState;

/// Asks a person to permit a call, or refuses the call if nobody can be asked.
pub(super) fn ask_person(
    state: &State,
    turn: &Turn,
    call: &CallState,
    request: PermissionRequest,
    (can_ask, asked_by): (bool, AskedBy),
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) {
    if !can_ask {
        let because = because(state, &request, &asked_by, env);
        let text = texts::could_not_ask(because.as_ref());
        let outcome = CallOutcome::failure("denied", text);
        return finish_into(state, turn, call, outcome, decision, env);
    }
    let id = env.request();
    decision.store(requested(state, id, request, &asked_by, env));
}

/// Returns why a person has to decide about a request.
pub(super) fn because(
    state: &State,
    request: &PermissionRequest,
    asked_by: &AskedBy,
    env: &DecideEnv<'_>,
) -> Option<AskedBecause> {
    let by_rules = asked::because(&env.permissions(state), env.whereabouts(state), request);
    let also = match asked_by {
        AskedBy::Nobody => None,
        AskedBy::ToolRule => Some(AskedBecause {
            reason: AskReason::AskRule,
            rules: Vec::new(),
            // An approval covers calls that need no permission of their own.
            session_approval: matches!(request, PermissionRequest::Hook { .. }),
            hook_message: None,
        }),
        AskedBy::Hook(why) => Some(AskedBecause {
            reason: AskReason::Hook,
            rules: Vec::new(),
            session_approval: false,
            hook_message: why.clone(),
        }),
    };
    // A reason that allows no lasting approval comes first.
    match (by_rules, also) {
        (Some(rules), Some(also)) if rules.session_approval => Some(also),
        (Some(reason), _) | (None, Some(reason)) => Some(reason),
        (None, None) => None,
    }
}

/// Builds the event that asks a person for a permission.
pub(super) fn requested(
    state: &State,
    id: RequestId,
    request: PermissionRequest,
    asked_by: &AskedBy,
    env: &DecideEnv<'_>,
) -> Durable {
    let permissions = env.permissions(state);
    let request = if protected::is_written(&permissions, env.whereabouts(state), &request) {
        request.for_once()
    } else {
        request
    };
    let because = because(state, &request, asked_by, env);
    let permission = match &because {
        Some(because) if because.reason != AskReason::Hook => {
            let request = request.for_a_person();
            match texts::warning_about(because) {
                Some(why) => request.with_warning(&why),
                None => request,
            }
        }
        Some(_) | None => request,
    };
    Durable::PermissionRequested(PermissionRequested {
        request_id: id,
        prompt_request: Some(PermissionPrompt::from(&permission)),
        permission_request: permission,
        resolved_by_hook: None,
        asked_because: because,
    })
}

/// Answers an open question if everything is approved by now and that covers it. What a person has to
/// decide stays open, and so does everything in plan mode.
pub(super) fn settle(state: &State, request: &RequestId, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let question = state.questions.get(request);
    let Some((question, permission)) =
        question.and_then(|question| Some((question, question.asks.permission()?)))
    else {
        return decision;
    };
    let permissions = env.permissions(state);
    let wants_a_person = matches!(permission, PermissionRequest::Hook { .. })
        || matches!(&question.because, Some(because) if because.reason == AskReason::Hook);
    if !permissions.approves_all() || wants_a_person || env.planning(state).is_on() {
        return decision;
    }
    let granted = Grant::by_rules(
        &permissions,
        env.whereabouts(state),
        Some(permission.clone()),
    );
    drop(permissions);
    let Ok(grant) = granted else {
        return decision;
    };
    let result = PermissionOutcome::Approved {};
    let source = Some(DecisionSource::HostPolicy);
    if !answer::permit(
        state,
        request,
        (result.clone(), source),
        grant.clone(),
        &mut decision,
        env,
    ) {
        part::permit(&mut decision, request, (result, source), grant);
    }
    decision
}
