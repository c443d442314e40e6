//! Folding what model calls used.

use loopd_proto::event::fact::{CallPurpose, UsageRecorded};
use loopd_proto::event::session::TokenMetrics;

use crate::run_limits;
use crate::state::State;

/// Counts a call.
pub(super) fn recorded(state: &mut State, usage: &UsageRecorded) {
    match usage.purpose {
        None => run_limits::called(state),
        Some(CallPurpose::Consolidation) => state.consolidated = state.totals.user_requests,
        Some(
            CallPurpose::Compaction
            | CallPurpose::Title
            | CallPurpose::Handoff
            | CallPurpose::AgentSummary
            | CallPurpose::Sampling,
        ) => {}
    }
    state.totals.nano_usd = state.totals.nano_usd.saturating_add(usage.nano_usd);
    state.totals.api_duration_ms += usage.duration_ms;
    state.totals.nano_credits = state.totals.nano_credits.saturating_add(usage.nano_credits);
    let metrics = state.totals.models.entry(usage.model.clone()).or_default();
    metrics.requests.count += 1;
    metrics.usage.add(&usage.tokens);
    state.totals.estimated_calls += u64::from(usage.estimated);
    if usage.purpose.is_none() {
        // The next call is not reserved by an estimate of an estimate.
        state.totals.last_call = if usage.estimated {
            TokenMetrics::default()
        } else {
            usage.tokens
        };
        state.totals.last_credits = usage.nano_credits;
    }
    if let Some(counted) = usage.counted {
        let (input, seq) = (usage.tokens.input_tokens, state.seq);
        let size = &mut state.context_size;
        size.reported(&usage.model, input, counted, seq);
    }
}
