//! The turn: messages enter, the model is called, its reply is recorded, the loop continues or
//! ends.

mod unanswered;

use std::collections::{BTreeMap, HashSet};

use loopd_proto::event::fact::{LoopOutcome, NamedBy, Reminded, UsageRecorded};
use loopd_proto::event::session::{Failure, ModelChange, TitleChanged, ToolsUpdated, Warning};
use loopd_proto::event::tool::ToolStart;
use loopd_proto::event::turn::{
    AssistantMessage, SystemMessage, ToolRequest, TurnEnd, TurnStart, Usage, UserMessage,
};
use loopd_proto::event::{Durable, Ephemeral, fact, turn};
use loopd_proto::id::{MessageId, ToolCallId};
use loopd_proto::session::LimitKind;

pub(super) use self::unanswered::deliver_unanswered;
use self::unanswered::{as_sent, being_prepared, block, deliver_as, without_blocked};
use super::{
    abort, compaction, limits, model_switch, provider_wait, queue, refused_files, rest,
    rest_rejected, skills, tasks, tools,
};
use crate::answer_cut::{self, AnswerCut};
use crate::command::{
    BlockedMessage, CallOutcome, DecideEnv, Decision, Effect, LostCall, ModelFailure, ModelReplied,
    Prepared,
};
use crate::hook::{HookVerdict, PROMPT_BLOCKED};
use crate::model::{Finish, ToolCall};
use crate::state::{Phase, Preparing, Stage, State, Turn, TurnKey};
use crate::texts;

/// How much of the first message becomes the session's title.
const TITLE_CHARS: usize = 200;

/// How many calls of one answer are run.
const MOST_CALLS: usize = 128;

/// Puts prepared messages into the conversation and calls the model.
pub(super) fn prepared(state: &State, mut prepared: Prepared, env: &mut DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let Some(preparing) = being_prepared(state, &prepared) else {
        return decision;
    };
    let failure = limits::exhausted(state, env).or_else(|| lacks_tool(state, preparing, env));
    if let Some(failure) = failure {
        let seen = (env.hooks.prompts)();
        deliver_as(&mut decision, preparing, |id| {
            prepared.text_of(id).filter(|_| seen).map(str::to_owned)
        });
        return fail_unsent(state, decision, preparing, failure, env);
    }
    let is_blocked = !prepared.blocked.is_empty();
    for BlockedMessage { id, failure } in std::mem::take(&mut prepared.blocked) {
        block(state, &mut decision, preparing, &id, failure);
    }
    if is_blocked && prepared.messages.is_empty() {
        return without_blocked(state, decision, preparing, prepared, env);
    }
    let key = match &preparing.joins {
        Some(running) => running.next(),
        None => TurnKey {
            interaction: env.interaction(),
            number: 0,
        },
    };
    let turn_id = key.turn_id();
    let is_other = state.model.as_deref() != Some(prepared.model.as_str())
        || state.reasoning_effort != prepared.reasoning_effort;
    // A model that only this run uses is not the session's.
    if is_other && state.scoped_model().is_none() {
        decision.store(Durable::ModelChange(ModelChange {
            previous_model: state.model.clone(),
            new_model: prepared.model.clone(),
            previous_reasoning_effort: state.reasoning_effort.clone(),
            reasoning_effort: prepared.reasoning_effort.take(),
            cause: None,
        }));
    }
    for end in std::mem::take(&mut prepared.ended) {
        decision.store(Durable::HookEnd(end));
    }
    for text in std::mem::take(&mut prepared.context) {
        decision.store(Durable::Reminded(Reminded { text }));
    }
    if !preparing.messages.is_empty() {
        tasks::deliver_stopped(state, &mut decision);
    }
    for message in &preparing.messages {
        let mut all = prepared.messages.iter();
        let Some(ready) = all.find(|ready| ready.id == message.id) else {
            // A blocked message is in the conversation already.
            continue;
        };
        let text = Some(ready.text.clone());
        let changed = ready.attachments.clone();
        let shown = message.display_prompt.as_ref().unwrap_or(&message.prompt);
        if state.name.is_none() && !shown.trim().is_empty() {
            let title: String = shown.trim().chars().take(TITLE_CHARS).collect();
            decision
                .store(Durable::Named(fact::Named {
                    name: title.clone(),
                    by: NamedBy::Auto,
                }))
                .tell(Ephemeral::TitleChanged(TitleChanged {
                    title: title.clone(),
                }));
            if env.makes_titles && state.subagent.is_none() {
                decision.run(Effect::MakeTitle {
                    name: title,
                    message: shown.clone(),
                });
            }
        }
        let sent = as_sent(message);
        decision.store(Durable::UserMessage(UserMessage {
            transformed_content: text,
            interaction_id: Some(key.interaction.clone()),
            turn_id: Some(turn_id.clone()),
            attachments: changed.or(sent.attachments),
            ..sent
        }));
    }
    skills::prepared(state, &mut decision, prepared.skills, prepared.preloaded);
    if let Some(text) = limits::status(state, env) {
        decision.store(Durable::Reminded(Reminded { text }));
    }
    decision.tell(Ephemeral::ToolsUpdated(ToolsUpdated {
        model: prepared.model,
    }));
    if state.system.as_deref() != Some(prepared.system.as_str()) {
        decision.store(Durable::SystemMessage(SystemMessage {
            role: "system".to_owned(),
            content: prepared.system,
            interaction_id: Some(key.interaction.clone()),
        }));
    }
    if preparing.messages.is_empty()
        && tasks::deliver(state, &mut decision) == 0
        && !preparing.run.continues
    {
        // The model has learnt in the meantime what the notification would have said.
        rest(state, &mut decision, LoopOutcome::Done, env);
        return decision;
    }
    call_model(&mut decision, key);
    decision
}

/// Returns the failure to report if a message requires a tool that the model does not have.
fn lacks_tool(state: &State, preparing: &Preparing, env: &DecideEnv<'_>) -> Option<ModelFailure> {
    let required = preparing.messages.iter();
    let mut required = required.filter_map(|message| message.required_tool.as_deref());
    let missing = required.find(|tool| (env.tool_origin)(tool).is_none())?;
    Some(ModelFailure {
        kind: "required_tool".to_owned(),
        code: Some("required_tool_unavailable".to_owned()),
        message: format!(
            "The message requires the tool {missing}, which the model does not have in this session, or not in its mode. \
             Send it without requiredTool, or bring the tool."
        ),
        status: None,
        provider_call_id: None,
        model: state.model.clone(),
        retry_after_seconds: None,
    })
}

/// Ends the run when nothing could be sent to a model. The messages enter the conversation, and the
/// session stays usable.
pub(super) fn prepare_failed(
    state: &State,
    messages: &[MessageId],
    failure: ModelFailure,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let Some(preparing) = preparing(state, messages.iter()) else {
        return decision;
    };
    if failure.kind == PROMPT_BLOCKED {
        deliver_as(&mut decision, preparing, |_| {
            Some(texts::PROMPT_BLOCKED.to_owned())
        });
    } else {
        deliver_unanswered(&mut decision, preparing, env);
    }
    fail_unsent(state, decision, preparing, failure, env)
}

/// Ends a run that cannot call the model even once. What notifications say is in the conversation then, and
/// the failure is that of the message whose work they are about.
fn fail_unsent(
    state: &State,
    mut decision: Decision,
    preparing: &Preparing,
    failure: ModelFailure,
    env: &DecideEnv<'_>,
) -> Decision {
    let mut origin = state.origin();
    if preparing.messages.is_empty() && preparing.run.woken {
        origin = tasks::origin_of_undelivered(state);
        tasks::deliver(state, &mut decision);
    }
    fail_for(state, &mut decision, failure, origin, env);
    decision
}

/// Returns the messages being prepared, if they have these ids. A late report must not be taken for
/// a report about other messages.
fn preparing<'a>(
    state: &'a State,
    ids: impl Iterator<Item = &'a MessageId>,
) -> Option<&'a Preparing> {
    let Phase::Preparing(preparing) = &state.phase else {
        return None;
    };
    let waiting = preparing.messages.iter().map(|message| &message.id);
    waiting.eq(ids).then_some(preparing)
}

pub(super) fn call_model(decision: &mut Decision, key: TurnKey) {
    decision
        .store(Durable::TurnStart(TurnStart {
            turn_id: key.turn_id(),
            model: None,
            interaction_id: Some(key.interaction.clone()),
        }))
        .run(Effect::CallModel(key));
}

pub(super) fn end_turn(decision: &mut Decision, key: &TurnKey) {
    decision.store(Durable::TurnEnd(TurnEnd {
        turn_id: key.turn_id(),
    }));
}

/// Takes a reply of the model: tool calls to run, or its final message.
pub(super) fn model_replied(state: &State, replied: ModelReplied, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    let Some(turn) = state.turn_named(&replied.turn) else {
        return decision;
    };
    if turn.aborting || !matches!(turn.stage, Stage::Calling) {
        return decision;
    }
    let calls = with_distinct_ids(replied.reply.turn.calls);
    let cut = AnswerCut::of(replied.reply.finish);
    let usage = &replied.reply.usage;
    let tokens = limits::tokens(usage);
    let reported = limits::tokens(&replied.reported.unwrap_or(*usage));
    decision.tell(Ephemeral::Usage(Usage {
        model: replied.model.clone(),
        input_tokens: reported.input_tokens,
        output_tokens: reported.output_tokens,
        cache_read_tokens: reported.cache_read_tokens,
        cache_write_tokens: reported.cache_write_tokens,
        reasoning_tokens: reported.reasoning_tokens,
        cost: None,
        duration: replied.duration_ms,
        time_to_first_token_ms: replied.first_token_ms,
        initiator: Some(replied.initiator.to_owned()),
        interaction_type: Some(
            match &state.subagent {
                Some(_) => "conversation-subagent",
                None => "conversation-agent",
            }
            .to_owned(),
        ),
        api_call_id: replied.reply.api_call_id.clone(),
        provider_call_id: replied.reply.provider_call_id.clone(),
        api_endpoint: replied.endpoint,
        available_tool_count: Some(replied.tool_count),
        num_tool_calls: Some(calls.len() as u64),
        tool_counts: Some(count_by_name(&calls)),
        finish_reason: Some(finish_name(replied.reply.finish).to_owned()),
    }));
    let reasoning = replied.reply.turn.reasoning.unwrap_or_default();
    let recorded = UsageRecorded {
        model: replied.model.clone(),
        tokens,
        duration_ms: replied.duration_ms,
        nano_credits: usage.nano_credits,
        nano_usd: replied.nano_usd,
        // An estimate says nothing about how the model counts.
        counted: replied.reported.is_none().then_some(replied.counted),
        estimated: replied.reported.is_some(),
        purpose: None,
    };
    if calls.is_empty() && state.steering.is_empty() {
        limits::warn_at_end(state, &mut decision, &recorded, env);
    }
    limits::record(state, &mut decision, recorded, env);
    let is_empty = calls.is_empty() && replied.reply.turn.text.trim().is_empty();
    decision.store(Durable::AssistantMessage(AssistantMessage {
        message_id: replied.message,
        originating_message_id: turn.run.origin.clone(),
        model: Some(replied.model.clone()),
        content: replied.reply.turn.text,
        tool_requests: calls.iter().map(|call| request(call, env)).collect(),
        reasoning_opaque: reasoning.opaque,
        reasoning_text: reasoning.text,
        output_tokens: Some(reported.output_tokens),
        interaction_id: Some(turn.key.interaction.clone()),
        turn_id: Some(turn.key.turn_id()),
        api_call_id: replied.reply.api_call_id,
    }));
    if let Some(cut) = cut {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: cut.warning_type().to_owned(),
            message: cut.told_to_people().to_owned(),
            url: None,
        }));
    } else if is_empty {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: answer_cut::EMPTY.to_owned(),
            message: answer_cut::TOLD_OF_EMPTY.to_owned(),
            url: None,
        }));
    }
    if calls.is_empty() {
        if env.hooks.stop && state.steering.is_empty() {
            decision.run(Effect::AskStop(turn.key.clone()));
            return decision;
        }
        end_turn(&mut decision, &turn.key);
        if !queue::take_steering(state, &mut decision) {
            rest(state, &mut decision, LoopOutcome::Done, env);
        }
        return decision;
    }
    let mut calls = calls;
    let too_many = calls.split_off(calls.len().min(MOST_CALLS));
    let (guarded, free): (Vec<_>, Vec<_>) =
        calls.into_iter().partition(|call| (env.hooks.guard)(call));
    for call in free.iter().chain(&too_many) {
        let mcp = (env.mcp_tool)(&call.name);
        decision.store(Durable::ToolStart(ToolStart {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments: Some(call.arguments.clone()),
            model: Some(replied.model.clone()),
            turn_id: Some(turn.key.turn_id()),
            mcp_server_name: mcp.as_ref().map(|it| it.server.clone()),
            mcp_tool_name: mcp.map(|it| it.tool),
        }));
    }
    // The calls before them are open, so that these results do not end the turn.
    for call in &too_many {
        let outcome = CallOutcome::failure("too_many_calls", texts::too_many_calls(MOST_CALLS));
        tools::complete(&mut decision, turn, &call.id, outcome);
    }
    for call in free {
        decision.run(Effect::Assess {
            turn: turn.key.clone(),
            call,
            hooks: HookVerdict::None,
        });
    }
    for call in guarded {
        decision.run(Effect::Guard {
            turn: turn.key.clone(),
            call,
        });
    }
    decision
}

pub(super) fn model_failed(
    state: &State,
    key: &TurnKey,
    mut failure: ModelFailure,
    lost: Option<Box<LostCall>>,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let Some(turn) = state.turn_named(key) else {
        return decision;
    };
    if turn.aborting || !matches!(turn.stage, Stage::Calling) {
        return decision;
    }
    if let Some(lost) = lost {
        let recorded = UsageRecorded {
            tokens: limits::tokens(&lost.usage),
            model: lost.model,
            duration_ms: lost.duration_ms,
            nano_credits: 0,
            nano_usd: lost.nano_usd,
            counted: None,
            estimated: true,
            purpose: None,
        };
        limits::record(state, &mut decision, recorded, env);
    }
    let model_call = turn::ModelCallFailure {
        model: failure.model.clone(),
        status_code: failure.status,
        source: match &state.subagent {
            Some(_) => "subagent",
            None => "top_level",
        }
        .to_owned(),
        error_message: Some(failure.message.clone()),
        error_code: failure.code.clone(),
        error_type: Some(failure.kind.clone()),
        provider_call_id: failure.provider_call_id.clone(),
        duration_ms: None,
    };
    decision.tell(Ephemeral::ModelCallFailure(model_call));
    if compaction::after_overflow(state, &mut failure, &mut decision, env) {
        return decision;
    }
    if refused_files::leave_out(state, turn, &failure, &mut decision) {
        return decision;
    }
    if model_switch::is_possible(state, &failure, env) {
        model_switch::ask(state, failure, &mut decision, env);
        return decision;
    }
    if provider_wait::fall_back(state, turn, &failure, &mut decision, env) {
        return decision;
    }
    if provider_wait::wait(turn, &failure, &mut decision, env) {
        return decision;
    }
    end_turn(&mut decision, key);
    fail(state, &mut decision, failure, env);
    decision
}

fn fail(state: &State, decision: &mut Decision, failure: ModelFailure, env: &DecideEnv<'_>) {
    fail_for(state, decision, failure, state.origin(), env);
}

/// Ends the run of this message with a failure.
fn fail_for(
    state: &State,
    decision: &mut Decision,
    failure: ModelFailure,
    origin: Option<MessageId>,
    env: &DecideEnv<'_>,
) {
    let limit = LimitKind::of_error(&failure.kind, failure.code.as_deref());
    decision.store(Durable::SessionError(Failure {
        originating_message_id: origin,
        ..error(state, failure)
    }));
    if limit.is_some() {
        limits::end_limited(state, decision, env);
    } else {
        rest(state, decision, LoopOutcome::Failed, env);
    }
}

/// Builds the event for a failed model call.
pub(super) fn error(state: &State, failure: ModelFailure) -> Failure {
    Failure {
        error_type: failure.kind,
        originating_message_id: state.origin(),
        error_code: failure.code,
        message: failure.message,
        stack: None,
        status_code: failure.status,
        provider_call_id: failure.provider_call_id,
        url: None,
        eligible_for_auto_switch: None,
    }
}

/// Moves the loop on when no call of the turn is open any more.
pub(super) fn after_tools(
    state: &State,
    turn: &Turn,
    decision: &mut Decision,
    stop: Stop,
    env: &DecideEnv<'_>,
) {
    end_turn(decision, &turn.key);
    if turn.aborting {
        abort::stopped(state, decision, env);
    } else if stop == Stop::ByHook || (stop == Stop::Rejected && state.subagent.is_none()) {
        // Nobody sends messages to a sub-agent while it works, so its model reads the rejection and
        // goes on.
        rest_rejected(state, decision, env);
    } else if stop == Stop::TaskEnded {
        if !queue::take_steering(state, decision) {
            rest(state, decision, LoopOutcome::Done, env);
        }
    } else if !queue::take_steering(state, decision) {
        if state.history.stored().is_empty() {
            // The conversation was cleared, and the message that was to come next was withdrawn.
            rest(state, decision, LoopOutcome::Done, env);
        } else {
            next_turn(state, turn, decision, env);
        }
    }
}

/// Calls the model again, unless a limit is reached.
pub(super) fn next_turn(state: &State, turn: &Turn, decision: &mut Decision, env: &DecideEnv<'_>) {
    let key = turn.key.next();
    let exhausted = limits::exhausted(state, env);
    if let Some(failure) = exhausted.or_else(|| limits::out_of_turns(state, &key)) {
        fail(state, decision, failure, env);
    } else {
        tasks::deliver(state, decision);
        if let Some(text) = limits::last_turn(state, &key) {
            decision.store(Durable::Reminded(Reminded { text }));
        }
        call_model(decision, key);
    }
}

/// Whether the results of the calls end the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    No,
    /// A person rejected a call.
    Rejected,
    /// A hook that saw the result of a call stops the agent.
    ByHook,
    /// The model said that the task is complete, or that it is blocked; or it tried to in vain. Or a tool
    /// ends the turn.
    TaskEnded,
}

/// Makes the ids of calls distinct. Some models repeat an id within one message, and then the
/// results could not be told apart.
fn with_distinct_ids(calls: Vec<ToolCall>) -> Vec<ToolCall> {
    let mut seen = HashSet::new();
    calls
        .into_iter()
        .enumerate()
        .map(|(index, mut call)| {
            if !seen.insert(call.id.clone()) {
                call.id = ToolCallId::new(format!("{}-{index}", call.id));
                seen.insert(call.id.clone());
            }
            call
        })
        .collect()
}

fn request(call: &ToolCall, env: &DecideEnv<'_>) -> ToolRequest {
    let mcp = (env.mcp_tool)(&call.name);
    ToolRequest {
        tool_call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
        kind: "function".to_owned(),
        mcp_server_name: mcp.as_ref().map(|it| it.server.clone()),
        mcp_tool_name: mcp.map(|it| it.tool),
    }
}

fn count_by_name(calls: &[ToolCall]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.name.clone()).or_default() += 1;
    }
    counts
}

fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Unknown => "unknown",
    }
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a failed step fails the test"
)]
mod tests;
