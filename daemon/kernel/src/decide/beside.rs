//! Model calls beside the conversation: what they used, and the titles that they make.

use loopd_proto::event::fact::{CallPurpose, Named, NamedBy, UsageRecorded};
use loopd_proto::event::session::TitleChanged;
use loopd_proto::event::turn::Usage;
use loopd_proto::event::{Durable, Ephemeral};

use super::limits;
use crate::command::{DecideEnv, Decision, SideUsage};
use crate::state::State;

/// Takes what a call used.
pub(super) fn called(
    state: &State,
    spent: &SideUsage,
    purpose: CallPurpose,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    used(state, &mut decision, (spent, purpose), env);
    decision
}

/// Takes the title that a model made of the first message. A name that was given meanwhile stays.
pub(super) fn titled(state: &State, was: &str, title: String) -> Decision {
    let mut decision = Decision::default();
    let name = state.name.as_ref();
    if name.is_some_and(|name| !name.by_user && name.text == was) && title != was {
        decision
            .store(Durable::Named(Named {
                name: title.clone(),
                by: NamedBy::Auto,
            }))
            .tell(Ephemeral::TitleChanged(TitleChanged { title }));
    }
    decision
}

/// Records what a model call beside the conversation used.
pub(super) fn used(
    state: &State,
    decision: &mut Decision,
    (spent, purpose): (&SideUsage, CallPurpose),
    env: &DecideEnv<'_>,
) {
    let interaction = match purpose {
        CallPurpose::Compaction => "conversation-compaction",
        CallPurpose::Title => "conversation-title",
        CallPurpose::Handoff => "conversation-handoff",
        CallPurpose::AgentSummary => "agent-summary",
        CallPurpose::Consolidation => "memory-consolidation",
        CallPurpose::Sampling => "mcp-sampling",
    };
    let used = limits::tokens(&spent.usage);
    decision.tell(Ephemeral::Usage(Usage {
        model: spent.model.clone(),
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cache_read_tokens: used.cache_read_tokens,
        cache_write_tokens: used.cache_write_tokens,
        reasoning_tokens: used.reasoning_tokens,
        cost: None,
        duration: spent.duration_ms,
        time_to_first_token_ms: None,
        initiator: Some("agent".to_owned()),
        interaction_type: Some(interaction.to_owned()),
        api_call_id: None,
        provider_call_id: None,
        api_endpoint: None,
        available_tool_count: None,
        num_tool_calls: None,
        tool_counts: None,
        finish_reason: None,
    }));
    let recorded = UsageRecorded {
        model: spent.model.clone(),
        tokens: used,
        duration_ms: spent.duration_ms,
        nano_credits: spent.usage.nano_credits,
        nano_usd: spent.nano_usd,
        counted: None,
        estimated: spent.estimated,
        purpose: Some(purpose),
    };
    limits::record(state, decision, recorded, env);
}

#[cfg(test)]
mod tests;
