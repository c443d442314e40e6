//! The end of plan mode: the model proposes a plan, and a person approves it or does not.

use loopd_proto::event::ask::{ExitPlanModeCompleted, ExitPlanModeRequested, PlanAction};
use loopd_proto::event::fact::{Answered, Asked, PlanAsked};
use loopd_proto::event::session::Warning;
use loopd_proto::event::tool::ToolResult;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::RequestId;
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::permission::Approval;
use loopd_proto::session::Mode;

use super::answer::allow;
use super::fleet;
use super::settings::change_mode;
use super::tools::{complete, finish, finish_into, waiting_call};
use super::turn::{Stop, after_tools};
use crate::command::{Answer, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect, Refusal};
use crate::policy::planning::Planning;
use crate::state::{State, Turn};
use crate::texts::{self, PlanNext};
use crate::tool_call::{CallReport, CallState, PlanProposal};

/// Asks people whether plan mode may end. Only the session that is in plan mode can ask.
pub(super) fn propose(
    state: &State,
    turn: &Turn,
    call: &CallState,
    proposal: PlanProposal,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let planning = env.planning(state);
    if planning != Planning::Mode {
        let text = texts::not_in_plan_mode(planning);
        return finish(
            state,
            turn,
            call,
            CallOutcome::failure("failure", text),
            env,
        );
    }
    let actions = offered(state, &proposal, env);
    let plan = PlanAsked {
        asked: ExitPlanModeRequested {
            request_id: env.request(),
            summary: proposal.summary,
            plan_content: proposal.content,
            recommended_action: recommended(&actions, proposal.recommended),
            actions,
            model: state.model.clone(),
        },
        tool_call_id: call.call.id.clone(),
        is_new: proposal.is_new,
    };
    let mut decision = Decision::default();
    decision
        .store(Durable::Asked(Asked::ExitPlanMode(plan.clone())))
        .tell(Ephemeral::ExitPlanModeRequested(plan.asked.clone()))
        .run(Effect::AskClients(Asked::ExitPlanMode(plan)));
    decision
}

/// What may follow a plan, in the order in which people see it.
const ACTIONS: [PlanAction; 4] = [
    PlanAction::Autopilot,
    PlanAction::AutopilotFleet,
    PlanAction::Interactive,
    PlanAction::ExitOnly,
];

/// Returns what people may choose: what the model names and what is possible, or all that is possible.
fn offered(state: &State, proposal: &PlanProposal, env: &DecideEnv<'_>) -> Vec<PlanAction> {
    let has_fleet = fleet::check_plan(state, env).is_ok();
    let is_possible = |action: &PlanAction| has_fleet || *action != PlanAction::AutopilotFleet;
    let possible = |actions: &[PlanAction]| -> Vec<PlanAction> {
        actions.iter().copied().filter(is_possible).collect()
    };
    let named = possible(&proposal.actions);
    if named.is_empty() {
        possible(&ACTIONS)
    } else {
        named
    }
}

fn recommended(offered: &[PlanAction], wanted: Option<PlanAction>) -> PlanAction {
    let wanted = wanted.unwrap_or(PlanAction::Interactive);
    let first = offered.first().copied().unwrap_or(wanted);
    if offered.contains(&wanted) {
        wanted
    } else {
        first
    }
}

/// Finds the call that waits for the answer to a plan, and the plan.
fn waiting_plan<'a>(
    state: &'a State,
    request: &RequestId,
) -> Option<(&'a Turn, &'a CallState, &'a PlanAsked)> {
    let mut plans = state.questions.plans();
    let plan = plans.find(|plan| plan.asked.request_id == *request)?;
    let (turn, call) = waiting_call(state, request, CallReport::UserAnswered)?;
    Some((turn, call, plan))
}

/// Closes the question about a plan.
fn close(decision: &mut Decision, completed: ExitPlanModeCompleted) {
    let request = completed.request_id.clone();
    decision
        .store(Durable::Answered(Answered {
            request_id: request.clone(),
        }))
        .tell(Ephemeral::ExitPlanModeCompleted(completed))
        .run(Effect::Withdraw(request));
}

/// Takes a person's answer to a plan. An approved plan ends plan mode.
pub(super) fn answered(
    state: &State,
    request: &RequestId,
    answer: ExitPlanMode,
    edited: Option<String>,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let Some((turn, call, plan)) = waiting_plan(state, request) else {
        return Ok(Decision::answering(Answer::Accepted(false)));
    };
    let action = answer.approved.then(|| chosen(&plan.asked, &answer));
    if let Some(action) = action.filter(|action| !plan.asked.actions.contains(action)) {
        return Err(Refusal::NotOffered(name(action)));
    }
    let waits = answer.defer_implementation || action == Some(PlanAction::ExitOnly);
    let by_fleet = action == Some(PlanAction::AutopilotFleet) && !waits;
    if by_fleet {
        // The todos may have changed since the plan was shown.
        fleet::check_plan(state, env)?;
    }
    let mut decision = Decision::answering(Answer::Accepted(true));
    close(
        &mut decision,
        ExitPlanModeCompleted {
            request_id: request.clone(),
            approved: Some(answer.approved),
            selected_action: action,
            auto_approve_edits: answer.auto_approve_edits.then_some(true),
            feedback: answer.feedback.clone(),
        },
    );
    let text = match action {
        Some(action) => {
            let mode = mode_after(action);
            if state.mode == Mode::Plan {
                change_mode(state, &mut decision, mode);
            }
            if answer.auto_approve_edits {
                allow(state, &mut decision, Some(&Approval::Write {}), None);
            }
            close_others(state, &mut decision, request);
            let next = if waits {
                PlanNext::Wait
            } else if by_fleet {
                fleet::carry_out_plan(state, &mut decision, env);
                PlanNext::Fleet
            } else {
                PlanNext::Begin(mode)
            };
            texts::plan_approved(next, answer.feedback.as_deref(), edited.as_deref())
        }
        None => texts::plan_rejected(answer.feedback.as_deref(), edited.as_deref()),
    };
    finish_into(state, turn, call, success(text), &mut decision, env);
    Ok(decision)
}

/// Closes the questions about other plans of the same answer: plan mode has ended without them.
fn close_others(state: &State, decision: &mut Decision, approved: &RequestId) {
    let plans = state.questions.plans();
    let others = plans.filter(|plan| plan.asked.request_id != *approved);
    let others = others.filter_map(|plan| waiting_plan(state, &plan.asked.request_id));
    let others: Vec<_> = others.collect();
    for (turn, call, plan) in others {
        close(decision, unanswered(&plan.asked.request_id));
        let outcome = CallOutcome::failure("failure", texts::OTHER_PLAN_APPROVED);
        complete(decision, turn, &call.call.id, outcome);
    }
}

/// Builds the end of a question about a plan that nobody answered.
fn unanswered(request: &RequestId) -> ExitPlanModeCompleted {
    ExitPlanModeCompleted {
        request_id: request.clone(),
        approved: None,
        selected_action: None,
        auto_approve_edits: None,
        feedback: None,
    }
}

fn success(text: String) -> CallOutcome {
    CallOutcome {
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
    }
}

/// The kind of the warning about an answer that could not be used.
const ANSWER_FAILED: &str = "exit_plan_mode_answer";

/// Takes an answer to a plan that cannot be used. The call fails, and plan mode stays.
pub(super) fn answer_failed(
    state: &State,
    request: &RequestId,
    why: &str,
    env: &DecideEnv<'_>,
) -> Decision {
    let Some((turn, call, _)) = waiting_plan(state, request) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    close(
        &mut decision,
        ExitPlanModeCompleted {
            request_id: request.clone(),
            approved: Some(false),
            selected_action: None,
            auto_approve_edits: None,
            feedback: None,
        },
    );
    decision.store(Durable::SessionWarning(Warning {
        warning_type: ANSWER_FAILED.to_owned(),
        message: texts::plan_answer_failed(why),
        url: None,
    }));
    let outcome = CallOutcome::failure("failure", texts::plan_not_answered(why));
    finish_into(state, turn, call, outcome, &mut decision, env);
    decision
}

/// Closes the questions about plans when somebody has ended plan mode without an answer.
pub(super) fn overtaken(state: &State, decision: &mut Decision, mode: Mode, env: &DecideEnv<'_>) {
    let plans = state.questions.plans();
    let waiting = plans.filter_map(|plan| waiting_plan(state, &plan.asked.request_id));
    let waiting: Vec<_> = waiting.collect();
    let Some((turn, ..)) = waiting.first() else {
        return;
    };
    for (_, call, plan) in &waiting {
        close(decision, unanswered(&plan.asked.request_id));
        let outcome = success(texts::plan_mode_ended(mode));
        complete(decision, turn, &call.call.id, outcome);
    }
    let is_closed = |other: &CallState| waiting.iter().any(|(_, call, _)| *call == other);
    let mut calls = turn.calls().iter();
    if !calls.any(|call| call.is_open() && !is_closed(call)) {
        let stop = if turn.was_stopped() {
            Stop::ByHook
        } else if turn.was_rejected() {
            Stop::Rejected
        } else {
            Stop::No
        };
        after_tools(state, turn, decision, stop, env);
    }
}

/// Returns what follows. Without a choice that is what the schema says, or the action that changes
/// least if that was not offered.
fn chosen(asked: &ExitPlanModeRequested, answer: &ExitPlanMode) -> PlanAction {
    let default = if answer.auto_approve_edits {
        PlanAction::Autopilot
    } else {
        PlanAction::Interactive
    };
    let careful = [default, PlanAction::Interactive, PlanAction::ExitOnly];
    let mut careful = careful.into_iter();
    let offered = careful.find(|action| asked.actions.contains(action));
    answer.selected_action.or(offered).unwrap_or(default)
}

fn name(action: PlanAction) -> &'static str {
    match action {
        PlanAction::ExitOnly => "exit_only",
        PlanAction::Interactive => "interactive",
        PlanAction::Autopilot => "autopilot",
        PlanAction::AutopilotFleet => "autopilot_fleet",
    }
}

fn mode_after(action: PlanAction) -> Mode {
    match action {
        PlanAction::ExitOnly | PlanAction::Interactive => Mode::Interactive,
        PlanAction::Autopilot | PlanAction::AutopilotFleet => Mode::Autopilot,
    }
}

#[cfg(test)]
mod tests;
