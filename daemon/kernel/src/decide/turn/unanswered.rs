//! Messages that no model call answers: those of a run that ends before, and those that hooks keep back.

use loopd_proto::event::fact::{LoopOutcome, PendingMessage};
use loopd_proto::event::session::Failure;
use loopd_proto::event::turn::UserMessage;
use loopd_proto::event::{Durable, fact};
use loopd_proto::id::MessageId;

use super::{call_model, error};
use crate::command::{DecideEnv, Decision, ModelFailure, Prepared};
use crate::decide::rest;
use crate::state::{Phase, Preparing, State};
use crate::texts;

/// Puts messages into the conversation that no model call will answer. Models do not read what no hook
/// has let through.
pub(in crate::decide) fn deliver_unanswered(
    decision: &mut Decision,
    preparing: &Preparing,
    env: &DecideEnv<'_>,
) {
    let kept_back = (env.hooks.prompts)().then_some(texts::PROMPT_NOT_SEEN);
    deliver_as(decision, preparing, |_| kept_back.map(str::to_owned));
}

/// Does the same; `transformed` returns what models read in the place of a message.
pub(super) fn deliver_as(
    decision: &mut Decision,
    preparing: &Preparing,
    transformed: impl Fn(&MessageId) -> Option<String>,
) {
    if preparing.messages.is_empty() {
        return;
    }
    for message in &preparing.messages {
        let mut event = as_sent(message);
        if let Some(transformed) = transformed(&message.id) {
            event.transformed_content = Some(transformed);
            event.attachments = None;
        }
        decision.store(Durable::UserMessage(event));
    }
    decision.store(Durable::Unqueued(fact::Unqueued {
        ids: preparing.messages.iter().map(|m| m.id.clone()).collect(),
    }));
}

/// Builds the event for a message as it was sent, before it was prepared for a model.
pub(super) fn as_sent(message: &PendingMessage) -> UserMessage {
    let shown = message.display_prompt.as_ref().unwrap_or(&message.prompt);
    UserMessage {
        message_id: Some(message.id.clone()),
        content: shown.clone(),
        transformed_content: None,
        attachments: (!message.attachments.is_empty()).then(|| message.attachments.clone()),
        source: message.source.clone(),
        delivery: Some(message.delivery),
        agent_mode: message.agent_mode.clone(),
        is_autopilot_continuation: None,
        interaction_id: None,
        turn_id: None,
    }
}

/// Puts one of several messages into the conversation that hooks do not let through, and says so to whoever
/// sent it. The others go on.
pub(super) fn block(
    state: &State,
    decision: &mut Decision,
    preparing: &Preparing,
    id: &MessageId,
    failure: ModelFailure,
) {
    let Some(message) = preparing.messages.iter().find(|it| it.id == *id) else {
        return;
    };
    decision
        .store(Durable::UserMessage(UserMessage {
            transformed_content: Some(texts::PROMPT_BLOCKED.to_owned()),
            attachments: None,
            ..as_sent(message)
        }))
        .store(Durable::SessionError(Failure {
            originating_message_id: Some(id.clone()),
            ..error(state, failure)
        }))
        .store(Durable::Unqueued(fact::Unqueued {
            ids: vec![id.clone()],
        }));
}

/// Goes on when all messages that wanted to join the loop are blocked: the loop does what it would have
/// done without them.
pub(super) fn without_blocked(
    state: &State,
    mut decision: Decision,
    preparing: &Preparing,
    prepared: Prepared,
    env: &DecideEnv<'_>,
) -> Decision {
    for end in prepared.ended {
        decision.store(Durable::HookEnd(end));
    }
    match &preparing.joins {
        Some(running) if state.history.waits_for_model() => {
            call_model(&mut decision, running.next());
        }
        Some(_) => rest(state, &mut decision, LoopOutcome::Done, env),
        None => rest(state, &mut decision, LoopOutcome::Failed, env),
    }
    decision
}

/// Returns the messages being prepared, if a report is about them.
pub(super) fn being_prepared<'a>(state: &'a State, prepared: &Prepared) -> Option<&'a Preparing> {
    let is_blocked = |id: &MessageId| prepared.blocked.iter().any(|it| it.id == *id);
    let Phase::Preparing(preparing) = &state.phase else {
        return None;
    };
    let waiting = preparing.messages.iter().map(|message| &message.id);
    let (blocked, ready): (Vec<_>, Vec<_>) = waiting.partition(|id| is_blocked(id));
    let is_it = blocked.len() == prepared.blocked.len()
        && ready
            .into_iter()
            .eq(prepared.messages.iter().map(|it| &it.id));
    is_it.then_some(preparing)
}
