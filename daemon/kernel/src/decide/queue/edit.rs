//! Changes of what waits in the queue, each decided against the queue of that moment.

use loopd_proto::attachment::Attachment;
use loopd_proto::event::Durable;
use loopd_proto::event::fact::{
    LoopOutcome, PendingMessage, QueueItem, QueueItemEdited, QueueItemMoved, QueuePlace, Unqueued,
};
use loopd_proto::id::MessageId;

use super::{check_bytes, modified, unqueue};
use crate::command::{Answer, DecideEnv, Decision, Effect, Refusal};
use crate::decide::rest;
use crate::state::{Phase, State};

/// Moves an item; the answer says whether it was elsewhere before.
pub(in crate::decide) fn move_to(
    state: &State,
    id: MessageId,
    to: u32,
) -> Result<Decision, Refusal> {
    let at = position(state, &id)?;
    let last = state.queue.len().saturating_sub(1);
    let to = usize::try_from(to).map_or(last, |to| to.min(last));
    if at == to {
        return Ok(Decision::answering(Answer::Accepted(false)));
    }
    // The queue has a limit, so that every position fits.
    let place = QueuePlace::At(u32::try_from(to).unwrap_or(u32::MAX));
    Ok(moved(id, place))
}

/// Gives a message another text. Its id, attachments and place stay. It stays a message, whatever the text
/// is; one that a slash command made keeps its text, because what the command sets is meant for it.
pub(in crate::decide) fn text(
    state: &State,
    id: MessageId,
    prompt: String,
    display_prompt: Option<String>,
) -> Result<Decision, Refusal> {
    let message = queued_message(state, &id)?;
    if message.prompt == prompt && message.display_prompt == display_prompt {
        return Ok(Decision::answering(Answer::Accepted(false)));
    }
    let of_command = message.scope.as_ref();
    if of_command.is_some_and(|scope| !scope.command.is_empty()) || message.answers.is_some() {
        return Err(Refusal::TextBelongs(id));
    }
    let attached = message.attachments.iter().map(Attachment::size);
    let shown = display_prompt.as_ref().map_or(0, String::len);
    check_bytes(
        state,
        prompt.len() + shown + attached.sum::<usize>(),
        Some(&id),
    )?;
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::QueueItemEdited(QueueItemEdited {
            id,
            prompt,
            display_prompt,
        }))
        .tell(modified());
    Ok(decision)
}

/// Removes an item, or a steering message that no turn has taken; the answer says whether it waited.
pub(in crate::decide) fn remove(state: &State, id: MessageId) -> Decision {
    let waits = position(state, &id).is_ok() || steering(state, &id).is_some();
    unqueue(waits.then_some(id).into_iter().collect())
}

/// Lets a queued message join the running turn; the answer says whether one runs.
pub(in crate::decide) fn steer(state: &State, id: MessageId) -> Result<Decision, Refusal> {
    queued_message(state, &id)?;
    let runs = match &state.phase {
        Phase::Turn(turn) => !turn.aborting,
        Phase::Preparing(_) => true,
        Phase::Idle | Phase::Commanding(_) | Phase::Rewinding(_) => false,
    };
    if !runs {
        return Ok(Decision::answering(Answer::Accepted(false)));
    }
    Ok(moved(id, QueuePlace::Steering))
}

/// Takes a message back if its text is the expected one: from the queue, from the steering messages,
/// or with the turn that it starts as long as the conversation does not have it.
pub(in crate::decide) fn withdraw(
    state: &State,
    id: MessageId,
    expected: &str,
    env: &DecideEnv<'_>,
) -> Decision {
    let answer = |removed, interrupted| {
        Decision::answering(Answer::Withdrawn {
            removed,
            interrupted,
        })
    };
    let waiting = queued_message(state, &id).ok();
    if let Some(message) = waiting.or_else(|| steering(state, &id)) {
        if message.prompt != expected {
            return answer(false, false);
        }
        let ids = vec![id];
        let mut decision = answer(true, false);
        decision
            .store(Durable::Unqueued(Unqueued { ids }))
            .tell(modified());
        return decision;
    }
    match state.withdrawable() {
        Some(message) if message.id == id && message.prompt == expected => {}
        Some(_) | None => return answer(false, false),
    }
    let mut decision = answer(true, true);
    decision.run(Effect::CancelTurn);
    decision
        .store(Durable::Unqueued(Unqueued { ids: vec![id] }))
        .tell(modified());
    rest(state, &mut decision, LoopOutcome::Aborted, env);
    decision
}

fn moved(id: MessageId, place: QueuePlace) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(true));
    decision
        .store(Durable::QueueItemMoved(QueueItemMoved { id, place }))
        .tell(modified());
    decision
}

fn position(state: &State, id: &MessageId) -> Result<usize, Refusal> {
    let at = state.queue.iter().position(|item| item.id() == id);
    at.ok_or_else(|| Refusal::NotQueued(id.clone()))
}

fn queued_message<'a>(state: &'a State, id: &MessageId) -> Result<&'a PendingMessage, Refusal> {
    match state.queue.iter().find(|item| item.id() == id) {
        Some(QueueItem::Message(message)) => Ok(message),
        Some(QueueItem::Command(_)) => Err(Refusal::NotAMessage(id.clone())),
        None => Err(Refusal::NotQueued(id.clone())),
    }
}

fn steering<'a>(state: &'a State, id: &MessageId) -> Option<&'a PendingMessage> {
    state.steering.iter().find(|message| message.id == *id)
}

#[cfg(test)]
mod tests;
