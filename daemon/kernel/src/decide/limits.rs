//! The limits of a session: what is used, the warning when most is used, and what happens when
//! nothing is left.
//!
//! `budget` has the arithmetic. The limits of a session hold for its whole tree of sub-agents. A
//! sub-agent asks the session at the top before each model call, so the rules here are those of the
//! session at the top.

use loopd_proto::event::budget::{
    AgentSpent, LimitsChanged, LimitsExhaustedCompleted, LimitsExhaustedRequested,
};
use loopd_proto::event::fact::{Configured, LoopEnded, LoopOutcome, UsageRecorded};
use loopd_proto::event::session::{Empty, TokenMetrics, Warning};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::RequestId;
use loopd_proto::params::pending::{LimitAction, LimitsExhausted};
use loopd_proto::session::{LIMIT_ERROR, LimitKind, SessionLimits};

use super::{abort, autopilot, end_run, fleet, tasks, tell_idle, turn};
use crate::autopilot::RunEnd;
use crate::budget::{self, LimitReached, Spend};
use crate::command::{Answer, DecideEnv, Decision, Effect, ModelFailure};
use crate::model::Usage;
use crate::state::{Phase, State, TurnKey};
use crate::{texts, usage};

/// The type of the warning that most of a limit is used.
const WARNING: &str = "session_limits";

/// Returns the text that tells the model what is left, before it answers.
pub(super) fn status(state: &State, env: &DecideEnv<'_>) -> Option<String> {
    if env.top.is_some() {
        return None;
    }
    let limit = state.options.session_limits?.max_ai_credits?;
    let used = credits(budget::spent(state));
    Some(texts::limits_left((limit - used).max(0.0)))
}

fn credits(spent: Spend) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a credit is a billion of these")]
    let used = spent.nano_credits as f64 / 1e9;
    used
}

/// Returns the failure to report if a limit is reached and no model may be called.
pub(super) fn exhausted(state: &State, env: &DecideEnv<'_>) -> Option<ModelFailure> {
    if env.top.is_some() {
        return None;
    }
    let limits = state.limits_in_force();
    let reached = limits
        .and_then(|limits| budget::reached(&limits, budget::spent(state)))
        .map(|reached| match state.run_turns() {
            Some(turns) => turns.told(reached),
            None => reached,
        })
        .or_else(|| budget::time_reached(state, env.now))?;
    Some(failure(&reached, state.model.clone()))
}

/// Returns the failure that says that a limit is reached.
pub fn failure(reached: &LimitReached, model: Option<String>) -> ModelFailure {
    ModelFailure {
        kind: LIMIT_ERROR.to_owned(),
        code: Some(reached.kind.code().to_owned()),
        message: if reached.of_run {
            format!(
                "The run has used {} that its message allows. To go on, send another message.",
                amount(reached)
            )
        } else {
            format!(
                "The session has used {} it may use. To go on, resume it with a higher sessionLimits.{}, or \
                 set that with session.options.update.",
                amount(reached),
                reached.kind.member()
            )
        },
        status: None,
        provider_call_id: None,
        model,
        retry_after_seconds: None,
    }
}

/// Says how much of a limit is used, as in `3 of the 5 AI credits`.
fn amount(it: &LimitReached) -> String {
    let (used, limit) = (texts::short_number(it.used), texts::short_number(it.limit));
    match it.kind {
        LimitKind::Credits => format!("{used} of the {limit} AI credits"),
        LimitKind::Tokens => format!("{used} of the {limit} tokens"),
        LimitKind::Cost => format!(
            "{} of the {} US dollars",
            dollars(it.used),
            dollars(it.limit)
        ),
        LimitKind::Turns => format!("{used} of the {limit} model calls"),
        LimitKind::Time => format!("{used} of the {limit} seconds"),
    }
}

/// Writes an amount of money with cents, and with more digits if it has less than a dollar.
fn dollars(amount: f64) -> String {
    if amount < 1.0 {
        format!("{amount:.4}")
    } else {
        format!("{amount:.2}")
    }
}

/// Returns the tokens of a usage.
pub(super) fn tokens(usage: &Usage) -> TokenMetrics {
    TokenMetrics {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
    }
}

/// Records what a model call of this session used, and warns people when that calls for it.
pub(super) fn record(
    state: &State,
    decision: &mut Decision,
    used: UsageRecorded,
    env: &DecideEnv<'_>,
) {
    warn(state, decision, Spend::from(&used), env);
    if used.estimated {
        tell_estimated(state, decision, env);
    }
    decision.store(Durable::UsageRecorded(used));
}

/// Tells people once that limits are kept by estimates.
fn tell_estimated(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    let limits = state.options.session_limits.filter(|_| env.top.is_none());
    let counts = limits.is_some_and(|it| it.max_tokens.is_some() || it.max_cost_usd.is_some());
    if counts && !state.told_estimated {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: usage::ESTIMATED.to_owned(),
            message: texts::USAGE_ESTIMATED.to_owned(),
            url: None,
        }));
    }
}

/// Warns people when most of a limit is used by what is recorded now.
fn warn(state: &State, decision: &mut Decision, more: Spend, env: &DecideEnv<'_>) {
    let Some(limits) = state.options.session_limits.filter(|_| env.top.is_none()) else {
        return;
    };
    let before = budget::spent(state);
    for near in budget::nearly_reached(&limits, before, before.plus(more)) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: WARNING.to_owned(),
            message: format!(
                "The session has used {} it may use; at the limit its turn ends.",
                amount(&near)
            ),
            url: None,
        }));
    }
    for past in budget::far_exceeded(&limits, before, before.plus(more)) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: WARNING.to_owned(),
            message: format!(
                "The session has used {} it may use: a model call used much more than was left, although it was \
                 told the limit. No model is called until more is granted.",
                amount(&past)
            ),
            url: None,
        }));
    }
}

/// Warns people when the last call of a run has used up a limit at once: no further call says it.
pub(super) fn warn_at_end(
    state: &State,
    decision: &mut Decision,
    used: &UsageRecorded,
    env: &DecideEnv<'_>,
) {
    let Some(limits) = state.options.session_limits.filter(|_| env.top.is_none()) else {
        return;
    };
    let before = budget::spent(state);
    for over in budget::jumped_over(&limits, before, before.plus(Spend::from(used))) {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: WARNING.to_owned(),
            message: format!(
                "The session has used {} it may use; no further model call begins until more is granted.",
                amount(&over)
            ),
            url: None,
        }));
    }
}

/// Records what a sub-agent's model call used, as long as the session has limits.
pub(super) fn agent_spent(state: &State, spent: AgentSpent, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    if state.options.session_limits.is_some() || state.limited_run.is_some() {
        let more = Spend::from(&spent);
        let estimated = spent.estimated;
        decision.store(Durable::AgentSpent(spent));
        warn(state, &mut decision, more, env);
        if estimated {
            tell_estimated(state, &mut decision, env);
        }
    }
    decision
}

/// Tells clients that the limits changed, and goes on with a run that a limit ended if more is
/// granted now. `limits` are those that the decision stores.
pub(super) fn changed(
    state: &State,
    decision: &mut Decision,
    limits: Option<SessionLimits>,
    env: &DecideEnv<'_>,
) {
    if limits == state.options.session_limits {
        return;
    }
    decision.store(Durable::LimitsChanged(LimitsChanged {
        session_limits: limits,
    }));
    if goes_on(state, limits, env) && env.attended {
        tasks::begin(decision);
    }
}

/// Whether a run that a limit ended can go on under these limits.
pub(super) fn goes_on(state: &State, limits: Option<SessionLimits>, env: &DecideEnv<'_>) -> bool {
    let limited = state.unfinished.as_ref().is_some_and(|run| run.limited);
    let is_reached = |limits: SessionLimits| {
        budget::reached(&limits, budget::spent(state)).is_some()
            || budget::time_reached_under(state, &limits, env.now).is_some()
    };
    limited && matches!(state.phase, Phase::Idle) && !limits.is_some_and(is_reached)
}

/// Stops all work because the limit of time is reached.
pub(super) fn time_up(state: &State, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let works = state.is_busy() || state.tasks.has_agents_at_work();
    let Some(reached) = budget::time_reached(state, env.now) else {
        return decision;
    };
    if !works || state.worked.stopping || env.top.is_some() {
        return decision;
    }
    let failure = failure(&reached, state.model.clone());
    decision.store(Durable::SessionError(turn::error(state, failure)));
    decision.store(Durable::TimeUp(Empty {}));
    if reached.of_run {
        fleet::time_up(state, &mut decision);
    }
    decision.run(Effect::CancelTurn);
    let agents_work = state.tasks.has_agents_at_work();
    if agents_work {
        decision.run(Effect::CancelAgents);
    }
    match &state.phase {
        Phase::Idle => {
            let place = decision.steps.len();
            autopilot::after_run(state, &mut decision, RunEnd::Limited, place, env);
            // The end of the last agent tells it otherwise.
            if !agents_work {
                tell_idle(state, &mut decision, None);
            }
        }
        Phase::Commanding(_) | Phase::Preparing(_) | Phase::Turn(_) | Phase::Rewinding(_) => {
            abort::close(state, &mut decision, env);
        }
    }
    decision
}

/// Ends the run that a limit has stopped. Clients may grant more credits by answering a question.
pub(super) fn end_limited(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) {
    let limits = state.options.session_limits.filter(|_| env.top.is_none());
    let reached = limits.and_then(|limits| budget::reached(&limits, budget::spent(state)));
    let credits = reached.filter(|reached| reached.kind == LimitKind::Credits);
    // The position in the log is not given twice.
    let request = credits.map(|_| RequestId::from(format!("limits-{}", state.seq.0)));
    if let Some((credits, request_id)) = credits.zip(request.clone()) {
        decision.tell(Ephemeral::LimitsExhaustedRequested(
            LimitsExhaustedRequested {
                request_id,
                max_ai_credits: credits.limit,
                used_ai_credits: credits.used,
            },
        ));
    }
    // More can be granted to a session. A run that its own message limits is over.
    let of_session = reached.is_some()
        || limits.is_some_and(|it| budget::time_reached_under(state, &it, env.now).is_some())
        || !state.run_is_over(env.now);
    let ended = LoopEnded {
        limited: env.top.is_none() && of_session,
        limit_request: request,
        ..LoopEnded::with(LoopOutcome::Failed)
    };
    end_run(state, decision, ended, env);
}

/// Takes the answer to the question whether more credits are granted.
pub(super) fn answered(
    state: &State,
    request: RequestId,
    response: LimitsExhausted,
    env: &DecideEnv<'_>,
) -> Decision {
    let run = state.unfinished.as_ref();
    let asked = run.and_then(|run| run.limit_request.as_ref());
    let current = state.options.session_limits.unwrap_or_default();
    if asked != Some(&request) {
        return Decision::answering(Answer::Accepted(false));
    }
    let mut decision = Decision::answering(Answer::Accepted(true));
    let credits = match response.action {
        LimitAction::Add => current
            .max_ai_credits
            .zip(response.additional_ai_credits)
            .map(|(now, more)| now + more),
        LimitAction::Set => response.max_ai_credits,
        LimitAction::Unset => None,
        LimitAction::Cancel => current.max_ai_credits,
    };
    let limits = SessionLimits {
        max_ai_credits: credits,
        ..current
    };
    let limits = (limits != SessionLimits::default()).then_some(limits);
    decision.tell(Ephemeral::LimitsExhaustedCompleted(
        LimitsExhaustedCompleted {
            request_id: request,
            response,
        },
    ));
    if limits != state.options.session_limits {
        let mut options = state.options.clone();
        options.session_limits = limits;
        decision.store(Durable::Configured(Box::new(Configured {
            options,
            working_directory: state.cwd.clone(),
        })));
        changed(state, &mut decision, limits, env);
    }
    decision
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
