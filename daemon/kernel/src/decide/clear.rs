//! Clearing the conversation: what was said before stays in the log, and no model reads it any more.

use loopd_proto::event::Durable;
use loopd_proto::event::compaction::ContextCleared;
use loopd_proto::event::fact::{PendingMessage, QueueItem, QueuePlace};
use loopd_proto::event::turn::Delivered;

use super::{compaction, queue};
use crate::command::{Answer, ClearOrder, DecideEnv, Decision, Refusal};
use crate::state::{Phase, State};
use crate::texts;
use crate::tool_call::CallState;

pub(super) fn clear(
    state: &State,
    order: ClearOrder,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    match order {
        ClearOrder::AtRest => at_rest(state),
        ClearOrder::InCall { prompt, sender } => {
            let message = PendingMessage {
                sender: Some(sender),
                ..PendingMessage::new(env.message(), prompt, Delivered::Steering)
            };
            in_call(state, message, env)
        }
    }
}

fn at_rest(state: &State) -> Result<Decision, Refusal> {
    match &state.phase {
        // A slash command of the queue clears before what waits behind it.
        Phase::Idle | Phase::Commanding(_) => Ok(cleared(state, None)),
        Phase::Preparing(_) | Phase::Turn(_) => Err(Refusal::ClearWhileBusy),
        Phase::Rewinding(_) => Err(Refusal::Rewinding),
    }
}

/// Clears below a running turn. Its calls run to their ends, their results are not told to the model,
/// and the message is what it reads next.
fn in_call(
    state: &State,
    message: PendingMessage,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let turn = state.turn().filter(|turn| !turn.aborting);
    let runs = turn.is_some_and(|turn| turn.calls().iter().any(CallState::is_open));
    if !runs {
        return Err(Refusal::NoCallToClearFrom);
    }
    queue::check_room(state, message.size())?;
    let mut decision = cleared(state, Some(message.prompt.clone()));
    let (item, place) = (QueueItem::Message(message), QueuePlace::Steering);
    queue::enter(state, item, place, &mut decision, env);
    Ok(decision)
}

fn cleared(state: &State, initial_message: Option<String>) -> Decision {
    let messages = state.history.stored().len() as u64;
    let mut decision = Decision::answering(Answer::Cleared(messages));
    // A summary of what is gone must not come back.
    compaction::close(state, &mut decision, texts::compaction::CLEARED);
    decision.store(Durable::ContextCleared(ContextCleared {
        messages_cleared: messages,
        initial_message,
    }));
    decision
}

#[cfg(test)]
mod tests;
