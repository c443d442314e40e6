//! Permissions for parts of slash commands: shell commands in their text, and files that the text
//! includes. Parts run before the message of the command is sent, so no tool call asks for them. The
//! rules are those of tool calls.

use loopd_proto::event::Durable;
use loopd_proto::event::ask::PermissionCompleted;
use loopd_proto::id::RequestId;
use loopd_proto::permission::{
    DecisionSource, PermissionDecision, PermissionOutcome, PermissionRequest,
};

use super::answer::{denied_meanwhile, weigh};
use super::asking::{self, requested};
use super::tools::by_rules;
use crate::command::{Answer, DecideEnv, Decision, Effect, PartAsked};
use crate::hook::{AskedBy, HookVerdict};
use crate::policy::grant::{Grant, NotGranted};
use crate::policy::{Verdict, planning};
use crate::state::State;
use crate::texts;

/// Permits or refuses a part, or asks a person.
pub(super) fn ask(state: &State, asked: PartAsked, env: &DecideEnv<'_>) -> Decision {
    let PartAsked {
        request,
        tool,
        permission,
        claim,
        can_ask,
        hooks,
    } = asked;
    let mut decision = Decision::default();
    if let HookVerdict::Deny(denial) = hooks {
        decided(&mut decision, request, Err(denial.told));
        return decision;
    }
    if let Some(why) = refused_while_planning(state, &tool, &permission, env) {
        decided(&mut decision, request, Err(why));
        return decision;
    }
    let granted = by_rules(state, Some(permission.clone()), claim, &hooks, env);
    let asked_by = match &hooks {
        HookVerdict::Ask(why) => AskedBy::Hook(why.clone()),
        HookVerdict::None | HookVerdict::Allow | HookVerdict::Deny(_) => AskedBy::Nobody,
    };
    // A hook wants a person to decide, whatever else allows the part.
    let granted = match (granted, &hooks) {
        (Ok(_), HookVerdict::Ask(_)) => Err(NotGranted {
            verdict: Verdict::Ask,
            request: Box::new(permission),
        }),
        (granted, _) => granted,
    };
    match granted {
        Ok(grant) => decided(&mut decision, request, Ok(grant)),
        Err(NotGranted {
            verdict: Verdict::Deny(rules),
            ..
        }) => decided(&mut decision, request, Err(texts::denied_by_rules(&rules))),
        Err(not) if !can_ask => {
            let because = asking::because(state, &not.request, &asked_by, env);
            let why = texts::could_not_ask(because.as_ref());
            decided(&mut decision, request, Err(why));
        }
        Err(NotGranted {
            request: wanted, ..
        }) => {
            let wanted = match hooks {
                HookVerdict::Ask(Some(why)) => wanted.with_warning(&why),
                HookVerdict::None
                | HookVerdict::Allow
                | HookVerdict::Ask(None)
                | HookVerdict::Deny(_) => *wanted,
            };
            decision.store(requested(state, request, wanted, &asked_by, env));
        }
    }
    decision
}

/// Takes a person's decision about a part.
pub(super) fn answered(
    state: &State,
    request: &RequestId,
    permission: &PermissionRequest,
    decided_by_person: PermissionDecision,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    let denied = denied_meanwhile(state, permission, &decided_by_person, env);
    let (result, refusal) = denied.unwrap_or_else(|| {
        let question = state.questions.get(request);
        let because = question.and_then(|question| question.because.as_ref());
        let asked = (permission, because);
        weigh(state, asked, decided_by_person, &mut decision)
    });
    completed(&mut decision, request, (result, None));
    let refusal = refusal.map(|outcome| outcome.result.content);
    // Plan mode may have begun while the person was asked.
    let refusal = refusal.or_else(|| refused_while_planning(state, "bash", permission, env));
    let granted = match refusal {
        Some(why) => Err(why),
        None => Ok(Grant::by_person(permission.clone())),
    };
    decided(&mut decision, request.clone(), granted);
    decision
}

/// Closes an open request that nobody waits for any more.
pub(super) fn withdraw(state: &State, request: &RequestId) -> Decision {
    let mut decision = Decision::default();
    if state.questions.parts().any(|(open, _)| open == request) {
        let result = PermissionOutcome::Cancelled { reason: None };
        completed(&mut decision, request, (result, None));
    }
    let why = "nobody waits for it any more".to_owned();
    decided(&mut decision, request.clone(), Err(why));
    decision
}

/// Closes the open requests: the connection that waits for their parts is gone.
pub(super) fn close(state: &State, decision: &mut Decision) {
    for (request, _) in state.questions.parts() {
        let result = PermissionOutcome::Cancelled { reason: None };
        completed(decision, request, (result, None));
        let why = texts::INTERRUPTED.to_owned();
        decided(decision, request.clone(), Err(why));
    }
}

/// Permits a part without a person.
pub(super) fn permit(
    decision: &mut Decision,
    request: &RequestId,
    outcome: (PermissionOutcome, Option<DecisionSource>),
    grant: Grant,
) {
    completed(decision, request, outcome);
    decided(decision, request.clone(), Ok(grant));
}

fn completed(
    decision: &mut Decision,
    request: &RequestId,
    (result, decision_source): (PermissionOutcome, Option<DecisionSource>),
) {
    decision.store(Durable::PermissionCompleted(PermissionCompleted {
        request_id: request.clone(),
        tool_call_id: None,
        result,
        decision_source,
    }));
}

fn decided(decision: &mut Decision, request: RequestId, decided: Result<Grant, String>) {
    decision.run(Effect::PartDecided { request, decided });
}

/// Returns why plan mode refuses a part.
fn refused_while_planning(
    state: &State,
    tool: &str,
    permission: &PermissionRequest,
    env: &DecideEnv<'_>,
) -> Option<String> {
    let planning = env.planning(state);
    let refuses = planning.is_on() && planning::refuses(permission, &(env.plan_file)());
    refuses.then(|| texts::refused_while_planning(planning, tool))
}

#[cfg(test)]
mod tests;
