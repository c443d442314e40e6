//! Compaction: it begins, it ends well or not, and what that means for the turn that waits for it.

use loopd_proto::event::Durable;
use loopd_proto::event::compaction::{
    Compacted, Compacting, CompactionComplete, CompactionStart, CompactionTokens, CompactionTrigger,
};
use loopd_proto::event::fact::{CallPurpose, Reminded};
use loopd_proto::event::room::MakingRoom;
use loopd_proto::event::turn::SystemMessage;
use loopd_proto::id::Seq;

use super::beside;
use crate::command::{
    Answer, CompactOrder, CompactionFailure, DecideEnv, Decision, Effect, ModelFailure, Refusal,
    RequestFacts, SideUsage, StoppedCompactions, Summarised, Summary,
};
use crate::compaction::RunningCompaction;
use crate::context_size::scaled;
use crate::state::{Phase, Stage, State, Turn, TurnKey};
use crate::{texts, tokens};

/// The kind of failure that says that a request is too long for its model.
const TOO_LONG: &str = "context_limit";

/// Begins a compaction that a person or a client wants.
pub(super) fn compact(
    state: &State,
    order: CompactOrder,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    if state.compaction.running.is_some() {
        return Err(Refusal::CompactionRunning);
    }
    if matches!(state.phase, Phase::Rewinding(_)) {
        return Err(Refusal::Rewinding);
    }
    let facts = (env.next_request)();
    let Some(through) = state.compactable(facts.own_limit()) else {
        return Err(Refusal::NothingToCompact);
    };
    let mut decision = Decision::answering(Answer::Done);
    let instructions = order.instructions.filter(|text| !text.trim().is_empty());
    let begins = Begins {
        through,
        trigger: CompactionTrigger::Manual,
        instructions,
    };
    begin(&mut decision, &facts, begins, env);
    Ok(decision)
}

/// What a compaction begins with.
pub(super) struct Begins {
    pub(super) through: Seq,
    pub(super) trigger: CompactionTrigger,
    pub(super) instructions: Option<String>,
}

/// Begins a compaction.
pub(super) fn begin(
    decision: &mut Decision,
    facts: &RequestFacts,
    begins: Begins,
    env: &mut DecideEnv<'_>,
) {
    let id = env.request();
    decision
        .store(Durable::CompactionStart(CompactionStart {
            system_tokens: Some(facts.size.system),
            conversation_tokens: Some(facts.size.conversation),
            tool_definitions_tokens: Some(facts.size.tools),
            current_tokens: Some(facts.size.total()),
            token_limit: Some(facts.window.limit),
            model: Some(facts.model.clone()),
            trigger: Some(begins.trigger),
        }))
        .store(Durable::Compacting(Compacting {
            id: id.clone(),
            through: begins.through,
            trigger: begins.trigger,
            instructions: begins.instructions,
        }))
        .run(Effect::Summarise(id));
}

/// Lets a turn wait for the compaction.
pub(super) fn wait(decision: &mut Decision) {
    decision.store(Durable::MakingRoom(MakingRoom::default()));
}

/// Makes room after the provider said that a request is too long. Returns whether the turn waits. There
/// is one compaction for an overflow: if the model has not answered since the last one, the turn fails.
pub(super) fn after_overflow(
    state: &State,
    failure: &mut ModelFailure,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) -> bool {
    if failure.kind != TOO_LONG {
        return false;
    }
    let facts = (env.next_request)();
    if !facts.rules.enabled {
        return false;
    }
    if state.compaction.running.is_some() {
        wait(decision);
        return true;
    }
    let why = if !state.has_answered_since_compaction() {
        texts::compaction::STILL_TOO_LONG
    } else if let Some(through) = state.compactable(facts.own_limit()) {
        let begins = Begins {
            through,
            trigger: CompactionTrigger::ContextLimitRetry,
            instructions: None,
        };
        begin(decision, &facts, begins, env);
        wait(decision);
        return true;
    } else {
        texts::compaction::NOTHING_TO_SHORTEN
    };
    failure.message = format!("{} {why}", failure.message);
    false
}

/// Takes the summary, or that there is none.
pub(super) fn summarised(
    state: &State,
    summarised: Summarised,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    for end in summarised.ended {
        decision.store(Durable::HookEnd(end));
    }
    for spent in &summarised.spent {
        beside::used(state, &mut decision, (spent, CallPurpose::Compaction), env);
    }
    let running = state.compaction.running.as_ref();
    let Some(running) = running.filter(|running| running.id == summarised.id) else {
        // It was stopped meanwhile. What it used counts all the same.
        return decision;
    };
    let used = summarised.spent.last().map(tokens_used);
    let facts = (env.next_request)();
    let ended = summarised
        .outcome
        .and_then(|summary| replace(state, running, summary, &facts));
    match ended {
        Ok(replaced) => {
            if let Some(content) = replaced.system {
                decision.store(Durable::SystemMessage(SystemMessage {
                    role: "system".to_owned(),
                    content,
                    interaction_id: state.turn().map(|turn| turn.key.interaction.clone()),
                }));
            }
            decision
                .store(Durable::Compacted(replaced.compacted))
                .store(Durable::CompactionComplete(Box::new(CompactionComplete {
                    compaction_tokens_used: used,
                    ..replaced.complete
                })));
            if waiting(state).is_some() && replaced.is_whole {
                let text = texts::compaction::CONTINUE.to_owned();
                decision.store(Durable::Reminded(Reminded { text }));
            }
        }
        Err(failure) => {
            let complete = failed(running, &failure);
            decision.store(Durable::CompactionComplete(Box::new(CompactionComplete {
                compaction_tokens_used: used,
                ..complete
            })));
        }
    }
    if let Some(turn) = waiting(state) {
        decision.run(Effect::CallModel(turn.clone()));
    }
    decision
}

/// What a compaction comes to.
struct Replaced {
    compacted: Compacted,
    complete: CompactionComplete,
    system: Option<String>,
    /// Whether nothing of the conversation is left but the summary.
    is_whole: bool,
}

fn replace(
    state: &State,
    running: &RunningCompaction,
    summary: Summary,
    facts: &RequestFacts,
) -> Result<Replaced, CompactionFailure> {
    if summary.text.trim().is_empty() {
        return Err(CompactionFailure::new(texts::compaction::EMPTY_SUMMARY));
    }
    let through = running.through;
    let limit = facts.own_limit();
    let text = texts::compaction::replacement(state, through, &summary, limit);
    let entries = state.history.stored();
    let (removed, kept): (Vec<_>, Vec<_>) =
        entries.iter().partition(|stored| stored.seq <= through);
    let before: u64 = removed.iter().map(|stored| stored.tokens()).sum();
    let after = tokens::count(&text);
    let is_manual = running.trigger == CompactionTrigger::Manual;
    if !is_manual && after.saturating_mul(10) > before.saturating_mul(9) {
        return Err(CompactionFailure::new(texts::compaction::no_help(
            before, after,
        )));
    }
    let rest: u64 = kept.iter().map(|stored| stored.tokens()).sum();
    let conversation = scaled(rest + after, facts.factor);
    let pre = facts.size.total();
    let post = facts.size.system + facts.size.tools + conversation;
    Ok(Replaced {
        is_whole: kept.is_empty(),
        compacted: Compacted { through, text },
        system: summary
            .system
            .filter(|system| state.system.as_deref() != Some(system)),
        complete: CompactionComplete {
            success: true,
            pre_compaction_tokens: Some(pre),
            post_compaction_tokens: Some(post),
            pre_compaction_messages_length: Some(entries.len() as u64),
            messages_removed: Some(removed.len().saturating_sub(1) as u64),
            tokens_removed: Some(pre.cast_signed().saturating_sub(post.cast_signed())),
            messages_left_out: Some(summary.left_out).filter(|left_out| *left_out > 0),
            summary_content: Some(summary.text),
            request_id: summary.provider_call_id,
            custom_instructions: running.instructions.clone(),
            system_tokens: Some(facts.size.system),
            conversation_tokens: Some(conversation),
            tool_definitions_tokens: Some(facts.size.tools),
            token_limit: Some(facts.window.limit),
            trigger: Some(running.trigger),
            ..CompactionComplete::default()
        },
    })
}

fn failed(running: &RunningCompaction, failure: &CompactionFailure) -> CompactionComplete {
    CompactionComplete {
        success: false,
        error: Some(failure.message.clone()),
        status_code: failure.status,
        custom_instructions: running.instructions.clone(),
        trigger: Some(running.trigger),
        ..CompactionComplete::default()
    }
}

/// Returns the turn that waits for the running compaction.
fn waiting(state: &State) -> Option<&TurnKey> {
    let waits = |turn: &&Turn| turn.stage == Stage::MakingRoom && !turn.aborting;
    let turn = state.turn().filter(waits);
    let turn = turn.filter(|_| state.compaction.turn_waits);
    turn.map(|turn| &turn.key)
}

fn tokens_used(spent: &SideUsage) -> CompactionTokens {
    CompactionTokens {
        input_tokens: spent.usage.input_tokens,
        output_tokens: spent.usage.output_tokens,
        cache_read_tokens: spent.usage.cache_read_tokens,
        cache_write_tokens: spent.usage.cache_write_tokens,
        duration: spent.duration_ms,
        model: spent.model.clone(),
    }
}

/// Stops a compaction that is running; the conversation stays as it is.
pub(super) fn stop(state: &State, which: StoppedCompactions) -> Decision {
    let covered = |running: &&RunningCompaction| which.covers(running.trigger);
    let running = state.compaction.running.as_ref().filter(covered);
    let mut decision = Decision::answering(Answer::Accepted(running.is_some()));
    if running.is_some() {
        close(state, &mut decision, texts::compaction::CANCELLED);
        if let Some(turn) = waiting(state) {
            decision.run(Effect::CallModel(turn.clone()));
        }
    }
    decision
}

/// Ends the running compaction without a summary.
pub(super) fn close(state: &State, decision: &mut Decision, why: &str) {
    if let Some(running) = &state.compaction.running {
        let failure = CompactionFailure::new(why);
        let complete = failed(running, &failure);
        decision
            .store(Durable::CompactionComplete(Box::new(complete)))
            .run(Effect::CancelSummary);
    }
}

/// Ends the compaction for which the turn waits that is being aborted. Others go on.
pub(super) fn aborted(state: &State, decision: &mut Decision) {
    let waits = state.compaction.turn_waits;
    let running = state.compaction.running.as_ref();
    let own = |running: &&RunningCompaction| running.trigger != CompactionTrigger::Manual;
    if waits && running.as_ref().is_some_and(own) {
        close(state, decision, texts::compaction::ABORTED);
    }
}

#[cfg(test)]
mod tests;
