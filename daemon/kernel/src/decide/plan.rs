//! The end of plan mode: the model proposes a plan, and a person approves it or does not.

use loopd_proto::event::ask::{ExitPlanModeCompleted, ExitPlanModeRequested, PlanAction};
use loopd_proto::event::fact::{Answered, Asked, PlanAsked};
use loopd_proto::event::tool::ToolResult;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::RequestId;
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::permission::Approval;
use loopd_proto::session::Mode;

use super::answer::allow;
use super::settings::change_mode;
use super::tools::{finish, finish_into, waiting_call};
use crate::command::{Answer, CallOutcome, CallStatusReport, DecideEnv, Decision, Effect};
use crate::policy::planning::Planning;
use crate::questions::Asks;
use crate::state::{State, Turn};
use crate::texts;
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
    let plan = PlanAsked {
        asked: ExitPlanModeRequested {
            request_id: env.request(),
            summary: proposal.summary,
            plan_content: proposal.content,
            actions: proposal.actions,
            recommended_action: proposal.recommended,
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

/// Takes a person's answer to a plan. An approved plan ends plan mode.
pub(super) fn answered(
    state: &State,
    request: &RequestId,
    answer: ExitPlanMode,
    edited: Option<String>,
    env: &DecideEnv<'_>,
) -> Decision {
    let question = state.questions.get(request);
    let is_plan = question.is_some_and(|open| matches!(open.asks, Asks::ExitPlanMode(_)));
    let waiting = waiting_call(state, request, CallReport::UserAnswered);
    let Some((turn, call)) = waiting.filter(|_| is_plan) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let action = answer.approved.then(|| chosen(&answer));
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::Answered(Answered {
            request_id: request.clone(),
        }))
        .tell(Ephemeral::ExitPlanModeCompleted(ExitPlanModeCompleted {
            request_id: request.clone(),
            approved: Some(answer.approved),
            selected_action: action,
            auto_approve_edits: answer.auto_approve_edits.then_some(true),
            feedback: answer.feedback.clone(),
        }))
        .run(Effect::Withdraw(request.clone()));
    let text = match action {
        Some(action) => {
            let mode = mode_after(action);
            if state.mode == Mode::Plan {
                change_mode(state, &mut decision, mode);
            }
            if answer.auto_approve_edits {
                allow(state, &mut decision, Some(&Approval::Write {}), None);
            }
            let waits = answer.defer_implementation || action == PlanAction::ExitOnly;
            texts::plan_approved(mode, waits, edited.as_deref())
        }
        None => texts::plan_rejected(answer.feedback.as_deref(), edited.as_deref()),
    };
    let outcome = CallOutcome {
        status: CallStatusReport::Success,
        result: ToolResult {
            detailed_content: Some(text.clone()),
            content: text,
            binary_results_for_llm: None,
        },
        telemetry: None,
        delivered: Vec::new(),
    };
    finish_into(state, turn, call, outcome, &mut decision, env);
    decision
}

/// Returns what follows; without a choice, what the schema says.
fn chosen(answer: &ExitPlanMode) -> PlanAction {
    let default = if answer.auto_approve_edits {
        PlanAction::Autopilot
    } else {
        PlanAction::Interactive
    };
    answer.selected_action.unwrap_or(default)
}

fn mode_after(action: PlanAction) -> Mode {
    match action {
        PlanAction::ExitOnly | PlanAction::Interactive => Mode::Interactive,
        // There are no fleets yet.
        PlanAction::Autopilot | PlanAction::AutopilotFleet => Mode::Autopilot,
    }
}

#[cfg(test)]
mod tests;
