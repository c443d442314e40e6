//! What a session has used so far, summed up from its log.

use loopd_proto::params::session::Of;
use loopd_proto::params::usage::{CodeChanges, LimitUsage, Metrics};
use loopd_proto::time::Timestamp;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::budget;
use loopd_kernel::state::State;

pub(super) async fn metrics(context: Context, params: Of) -> Result<Metrics, RpcError> {
    let session = context.session(&params.session_id)?;
    let now = context.app.services.clock.now();
    Ok(session.state(move |state| of(state, now)).await?)
}

fn of(state: &State, now: Timestamp) -> Metrics {
    let totals = &state.totals;
    let changes = totals.code_changes.clone();
    // The usage of its sub-agents is included.
    let usage = state.usage();
    let costs = usage.models.values().map(|model| model.requests.cost);
    Metrics {
        total_premium_request_cost: costs.sum(),
        total_user_requests: totals.user_requests,
        total_nano_aiu: usage.nano_credits,
        total_api_duration_ms: usage.api_duration_ms,
        session_start_time: state.created,
        code_changes: CodeChanges {
            lines_added: changes.lines_added,
            lines_removed: changes.lines_removed,
            files_modified_count: changes.files_modified.len(),
            files_modified: changes.files_modified,
        },
        model_metrics: usage.models.clone(),
        current_model: state.model.clone().or_else(|| state.options.model.clone()),
        last_call_input_tokens: totals.last_call.input_tokens,
        last_call_output_tokens: totals.last_call.output_tokens,
        used: used(state, now),
        session_limits: state.options.session_limits,
    }
}

#[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53")]
fn used(state: &State, now: Timestamp) -> LimitUsage {
    let spent = budget::spent(state);
    LimitUsage {
        ai_credits: spent.nano_credits as f64 / 1e9,
        tokens: spent.tokens,
        cost_usd: spent.nano_usd as f64 / 1e9,
        turns: spent.turns,
        estimated_calls: state.totals.estimated_calls,
        seconds: state.worked.ms(now) as f64 / 1e3,
    }
}
