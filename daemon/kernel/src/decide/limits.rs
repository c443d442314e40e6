//! The limits of a session: how much is used, and what happens when nothing is left.
//!
//! A limit is soft. The cost of a model call is known only afterwards, so the last call may exceed
//! the limit. No further call starts then.

use crate::command::ModelFailure;
use crate::state::{State, TurnKey};
use crate::texts;

/// Returns the limit and the used amount in credits, or `None` without a limit.
fn credits(state: &State) -> Option<(f64, f64)> {
    let limit = state.options.session_limits?.max_ai_credits?;
    #[expect(clippy::cast_precision_loss, reason = "a credit is a billion of these")]
    let used = state.usage().nano_credits as f64 / 1e9;
    Some((limit, used))
}

/// Returns the text that tells the model what is left, before it answers.
pub(super) fn status(state: &State) -> Option<String> {
    let (limit, used) = credits(state)?;
    Some(texts::limits_left((limit - used).max(0.0)))
}

/// Returns the failure to report if the limit is reached and no model may be called.
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
        retry_after_seconds: None,
    })
}

/// Returns how many model calls an agent has for one message.
fn turns(state: &State) -> Option<u32> {
    state.subagent.as_ref()?.profile.max_turns
}

/// Returns the text that an agent gets before its last model call. An agent with only one call does
/// not get it, because it may answer in that one anyway.
pub(super) fn last_turn(state: &State, next: &TurnKey) -> Option<String> {
    let last = turns(state)? == next.number.saturating_add(1);
    last.then(|| texts::LAST_TURN.to_owned())
}

/// Returns the failure to report if an agent has used all its turns.
pub(super) fn out_of_turns(state: &State, next: &TurnKey) -> Option<ModelFailure> {
    let most = turns(state).filter(|most| next.number >= *most)?;
    Some(ModelFailure {
        kind: "max_turns".to_owned(),
        code: Some("max_turns".to_owned()),
        message: format!("the agent used all of its {most} turns without coming to an answer"),
        status: None,
        provider_call_id: None,
        model: state.model.clone(),
        retry_after_seconds: None,
    })
}

#[cfg(test)]
mod tests;
