//! Another model after a rate limit: the clients are asked, and the turn goes on with it.

use loopd_proto::event::ask::{AutoModeSwitch, AutoModeSwitchCompleted, AutoModeSwitchRequested};
use loopd_proto::event::fact::{Answered, Asked, LoopOutcome};
use loopd_proto::event::session::{Failure, ModelChange};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::RequestId;

use super::{rest, turn};
use crate::command::{Answer, DecideEnv, Decision, Effect, ModelFailure};
use crate::state::State;

/// The model that lets the provider choose one.
const AUTO: &str = "auto";

/// Why the model changed.
const CAUSE: &str = "rate_limit_auto_switch";

/// Whether people can be asked for another model: the limit is one of the user, who pays for
/// another model by the same plan, and a client takes the question.
pub(super) fn is_possible(state: &State, failure: &ModelFailure, env: &DecideEnv<'_>) -> bool {
    let code = failure.code.as_deref().unwrap_or_default();
    let of_user = code.starts_with("user_") && code.ends_with("rate_limited");
    env.can_switch_model
        && state.subagent.is_none()
        && failure.kind == "rate_limit"
        && of_user
        && state.model.as_deref() != Some(AUTO)
        && state.scoped_model().is_none()
}

/// Reports the failure and asks whether another model may go on. The turn waits for the answer.
pub(super) fn ask(
    state: &State,
    failure: ModelFailure,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) {
    let asked = AutoModeSwitchRequested {
        request_id: env.request(),
        error_code: failure.code.clone(),
        retry_after_seconds: failure.retry_after_seconds,
    };
    decision
        .store(Durable::SessionError(Failure {
            eligible_for_auto_switch: Some(true),
            ..turn::error(state, failure)
        }))
        .store(Durable::Asked(Asked::AutoModeSwitch(asked.clone())))
        .tell(Ephemeral::AutoModeSwitchRequested(asked.clone()))
        .run(Effect::AskClients(Asked::AutoModeSwitch(asked)));
}

/// Takes the answer: the turn goes on with the other model, or it has failed.
pub(super) fn answered(
    state: &State,
    request: &RequestId,
    response: AutoModeSwitch,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut switches = state.questions.switches();
    let is_open = switches.any(|asked| asked.request_id == *request);
    let Some(turn) = state.turn().filter(|turn| is_open && !turn.aborting) else {
        return Decision::answering(Answer::Accepted(false));
    };
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::Answered(Answered {
            request_id: request.clone(),
        }))
        .tell(Ephemeral::AutoModeSwitchCompleted(
            AutoModeSwitchCompleted {
                request_id: request.clone(),
                response,
            },
        ))
        .run(Effect::Withdraw(request.clone()));
    match response {
        AutoModeSwitch::Yes | AutoModeSwitch::YesAlways => {
            decision.store(Durable::ModelChange(ModelChange {
                previous_model: state.model.clone(),
                new_model: AUTO.to_owned(),
                previous_reasoning_effort: state.reasoning_effort.clone(),
                reasoning_effort: None,
                cause: Some(CAUSE.to_owned()),
            }));
            turn::end_turn(&mut decision, &turn.key);
            turn::call_model(&mut decision, turn.key.next());
        }
        AutoModeSwitch::No => {
            turn::end_turn(&mut decision, &turn.key);
            rest(state, &mut decision, LoopOutcome::Failed, env);
        }
    }
    decision
}

#[cfg(test)]
mod tests;
