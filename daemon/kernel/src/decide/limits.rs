//! How much of its limits a session has used, and what happens at the end of them.
//!
//! A limit is soft: what a model call costs is known when it is over, so that the last one may go
//! beyond. No call begins after that.

use crate::command::ModelFailure;
use crate::state::{State, TurnKey};
use crate::texts;

/// What the session may use and has used, in credits; `None` without a limit.
fn credits(state: &State) -> Option<(f64, f64)> {
    let limit = state.options.session_limits?.max_ai_credits?;
    #[expect(clippy::cast_precision_loss, reason = "a credit is a billion of these")]
    let used = state.usage().nano_credits as f64 / 1e9;
    Some((limit, used))
}

/// What the model is told about the limits before it answers.
pub(super) fn status(state: &State) -> Option<String> {
    let (limit, used) = credits(state)?;
    Some(texts::limits_left((limit - used).max(0.0)))
}

/// Why no model may be called any more, if that is so.
pub(super) fn exhausted(state: &State) -> Option<ModelFailure> {
    let (limit, used) = credits(state).filter(|(limit, used)| used >= limit)?;
    Some(ModelFailure {
        kind: "session_limits".to_owned(),
        code: Some("session_limits_exhausted".to_owned()),
        message: format!(
            "The session has used {} of the {} AI credits it may use. To go on, resume it with a higher \
             sessionLimits.maxAiCredits.",
            texts::short_number(used),
            texts::short_number(limit)
        ),
        status: None,
        provider_call_id: None,
        model: state.model.clone(),
    })
}

/// How many model calls an agent has for one message.
fn turns(state: &State) -> Option<u32> {
    state.subagent.as_ref()?.profile.max_turns
}

/// What an agent is told before the last call it has; it may answer in one turn by itself.
pub(super) fn last_turn(state: &State, next: &TurnKey) -> Option<String> {
    let last = turns(state)? == next.number.saturating_add(1);
    last.then(|| texts::LAST_TURN.to_owned())
}

/// Why an agent may not go on, if that is so.
pub(super) fn out_of_turns(state: &State, next: &TurnKey) -> Option<ModelFailure> {
    let most = turns(state).filter(|most| next.number >= *most)?;
    Some(ModelFailure {
        kind: "max_turns".to_owned(),
        code: Some("max_turns".to_owned()),
        message: format!("the agent used all of its {most} turns without coming to an answer"),
        status: None,
        provider_call_id: None,
        model: state.model.clone(),
    })
}

#[cfg(test)]
mod tests;
