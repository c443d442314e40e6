//! What follows when a provider takes no requests for a while: another model, or a wait that survives
//! a restart of the daemon.

use loopd_proto::event::Durable;
use loopd_proto::event::budget::ProviderWait;
use loopd_proto::event::session::{ModelChange, Warning};
use loopd_proto::time::Timestamp;

use super::{queue, turn};
use crate::command::{DecideEnv, Decision, Effect, ModelFailure};
use crate::model::FALLBACK;
use crate::state::{Phase, State, Turn, TurnKey};

/// How long a turn may wait for a provider, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderWaits {
    /// A model call waits so long by itself.
    pub within_call: u64,
    /// A turn waits so long; beyond it, it fails. With 0 it never waits.
    pub longest: u64,
}

impl ProviderWaits {
    /// Turns do not wait.
    pub const NONE: Self = Self {
        within_call: 60,
        longest: 0,
    };
}

/// Goes on with the next model of the chain if the failure is one of the provider. Returns whether it
/// does.
pub(super) fn fall_back(
    state: &State,
    turn: &Turn,
    failure: &ModelFailure,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) -> bool {
    let is_of_provider = matches!(
        failure.kind.as_str(),
        "rate_limit" | "quota" | "server" | "network" | "timeout" | "truncated" | "model_not_found"
    );
    if !is_of_provider {
        return false;
    }
    let chain = state.options.fallback_models.as_deref();
    let chain = chain.unwrap_or(env.fallback_models);
    let current = state.model.as_deref();
    // Each model gets one call, however often the chain names it.
    let is_left =
        |model: &&String| current != Some(model.as_str()) && !state.failed_models.contains(*model);
    let Some(next) = chain.iter().find(is_left) else {
        return false;
    };
    let message = format!(
        "{} did not answer: {} The turn goes on with {next}.",
        current.unwrap_or("The model"),
        sentence(&failure.message)
    );
    decision.store(Durable::SessionWarning(Warning {
        warning_type: "model_fallback".to_owned(),
        message,
        url: None,
    }));
    decision.store(Durable::ModelChange(ModelChange {
        previous_model: state.model.clone(),
        new_model: next.clone(),
        previous_reasoning_effort: state.reasoning_effort.clone(),
        reasoning_effort: None,
        cause: Some(FALLBACK.to_owned()),
    }));
    call_again(state, turn, decision);
    true
}

/// Lets the turn wait if the provider says how long. Returns whether it does.
pub(super) fn wait(
    turn: &Turn,
    failure: &ModelFailure,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) -> bool {
    let Some(seconds) = failure.retry_after_seconds else {
        return false;
    };
    // Such a limit lifts in days, whatever the provider asks for.
    let code = failure.code.as_deref().unwrap_or_default();
    let waits = match failure.kind.as_str() {
        _ if code.contains("weekly") => false,
        // A call repeats itself after shorter waits, and a limit that stays after those is an error.
        "rate_limit" => seconds > env.provider_waits.within_call,
        "quota" => seconds > 0,
        _ => false,
    };
    if !waits || seconds > env.provider_waits.longest {
        return false;
    }
    let milliseconds = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let until = Timestamp(env.now.0.saturating_add(milliseconds));
    decision.store(Durable::SessionWarning(Warning {
        warning_type: "provider_wait".to_owned(),
        message: format!(
            "{} The turn waits until {until} and then goes on; an abort ends the wait.",
            sentence(&failure.message)
        ),
        url: None,
    }));
    decision.store(Durable::ProviderWait(ProviderWait {
        until,
        error_type: failure.kind.clone(),
    }));
    decision.run(Effect::AwaitProvider {
        turn: turn.key.clone(),
        until,
    });
    true
}

/// Ends a message with a full stop.
fn sentence(message: &str) -> String {
    let message = message.trim_end();
    if message.ends_with(['.', '!', '?']) {
        message.to_owned()
    } else {
        format!("{message}.")
    }
}

/// Calls the model again when the wait is over.
pub(super) fn over(state: &State, key: &TurnKey) -> Decision {
    let mut decision = Decision::default();
    let turn = state.turn_named(key);
    if let Some(turn) = turn.filter(|turn| turn.waits_until().is_some()) {
        call_again(state, turn, &mut decision);
    }
    decision
}

/// Goes on with a wait that was found in the log. Returns whether there is one.
pub(super) fn go_on(state: &State, decision: &mut Decision) -> bool {
    let Phase::Turn(turn) = &state.phase else {
        return false;
    };
    let Some(until) = turn.waits_until() else {
        return false;
    };
    decision.run(Effect::AwaitProvider {
        turn: turn.key.clone(),
        until,
    });
    true
}

fn call_again(state: &State, turn: &Turn, decision: &mut Decision) {
    turn::end_turn(decision, &turn.key);
    if !queue::take_steering(state, decision) {
        turn::call_model(decision, turn.key.next());
    }
}

#[cfg(test)]
mod tests;
