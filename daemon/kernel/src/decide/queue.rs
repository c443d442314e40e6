//! Messages and slash commands that wait for the loop.

pub(super) mod edit;
pub(super) mod slash;

use std::path::Path;

use loopd_proto::attachment::Attachment;
use loopd_proto::event::ask::CommandQueued;
use loopd_proto::event::fact::{PendingMessage, QueueItem, QueuePlace, Queued, Taken, Unqueued};
use loopd_proto::event::session::Empty;
use loopd_proto::event::turn::Delivered;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{MessageId, RequestId};
use loopd_proto::permission::PermissionRequest;
use loopd_proto::session::Mode;

use super::{hooks, settings};
use crate::apply::queue::insert;
use crate::command::{Answer, DecideEnv, Decision, Effect, Refusal, Send, SendPlace, Step};
use crate::policy::{Verdict, managed};
use crate::state::{Phase, State, fingerprint};

/// How many items may wait in one session.
const QUEUE_LIMIT: usize = 1_000;

/// How many bytes the items that wait in one session may have together. A single one may have more.
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// Accepts a user message, once per id, and starts the loop if it is idle.
pub(super) fn send(
    state: &State,
    send: Send,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    if let Some(known) = send.id.as_ref().and_then(|id| state.accepted(id)) {
        if known.fingerprint != fingerprint(&send.prompt) {
            return Err(Refusal::MessageIdUsed(known.id.clone()));
        }
        let mut decision = Decision::answering(Answer::Message(known.id.clone()));
        // The message may still be in the queue of an idle session, for example after a restart.
        let waits = state.queue.iter().any(|item| *item.id() == known.id);
        if waits && !state.is_busy() {
            take_next(state, &mut decision, env);
        }
        return Ok(decision);
    }
    let attached = send.attachments.iter().map(Attachment::size);
    check_room(
        state,
        send.prompt.len()
            + send.display_prompt.as_ref().map_or(0, String::len)
            + attached.sum::<usize>(),
    )?;
    check_attachments(state, &send.attachments)?;
    if let Some(mode) = send.agent_mode.as_deref().and_then(named_mode) {
        settings::inherited::keeps_mode(state, mode, env)?;
    }
    let steers = send.place == SendPlace::Immediate
        && matches!(state.phase, Phase::Turn(_) | Phase::Preparing(_));
    let place = match send.place {
        SendPlace::Immediate if steers => QueuePlace::Steering,
        SendPlace::Immediate | SendPlace::Prepend => QueuePlace::First,
        SendPlace::Enqueue => QueuePlace::Last,
        SendPlace::At(position) => QueuePlace::At(position),
    };
    let delivery = if steers {
        Delivered::Steering
    } else {
        delivered(state)
    };
    let message = pending(send, delivery, env);
    let mut decision = Decision::answering(Answer::Message(message.id.clone()));
    enter(
        state,
        QueueItem::Message(message),
        place,
        &mut decision,
        env,
    );
    // Who sends something now has not heard why the turn before it does not go on.
    if let Some(warning) = hooks::still_absent(state, env) {
        decision.tell(Ephemeral::SessionWarning(warning));
    }
    Ok(decision)
}

/// Returns how a message that does not join the running turn is delivered.
pub(super) fn delivered(state: &State) -> Delivered {
    if state.is_busy() {
        Delivered::Queued
    } else {
        Delivered::Idle
    }
}

/// Builds the item of the queue from a message that was sent.
fn pending(send: Send, delivery: Delivered, env: &mut DecideEnv<'_>) -> PendingMessage {
    PendingMessage {
        id: send.id.unwrap_or_else(|| env.message()),
        prompt: send.prompt,
        display_prompt: send.display_prompt,
        attachments: send.attachments,
        switches_to: send.agent_mode.as_deref().and_then(named_mode),
        agent_mode: send.agent_mode,
        required_tool: send.required_tool,
        source: send.source,
        delivery,
        sender: send.sender,
        answers: None,
        scope: send.scope,
        origin: None,
    }
}

/// Returns the mode that a message names. It counts from the moment the message begins, whatever
/// the mode was when the message was sent.
fn named_mode(name: &str) -> Option<Mode> {
    match name {
        "interactive" => Some(Mode::Interactive),
        "plan" => Some(Mode::Plan),
        "autopilot" => Some(Mode::Autopilot),
        // The message is a command line; the session stays in its mode.
        _ => None,
    }
}

/// Switches to the mode that a message asks for, as it begins.
fn switch_mode(state: &State, decision: &mut Decision, message: &PendingMessage) {
    if let Some(mode) = message.switches_to {
        settings::change_mode(state, decision, mode);
    }
}

/// Adds an item to the queue, and starts on the queue if the loop is idle.
pub(super) fn enter(
    state: &State,
    item: QueueItem,
    place: QueuePlace,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) {
    decision
        .store(Durable::Queued(Queued {
            item: item.clone(),
            place,
        }))
        .tell(modified());
    if !state.is_busy() {
        let mut waiting = state.queue.clone();
        insert(&mut waiting, item, place);
        take_first(state, waiting.into_iter(), decision, env);
    }
}

/// Queues a message of the daemon, and starts on it if the loop is idle. A message that a slash command
/// of the queue brings comes before what waits behind the command.
pub(super) fn enqueue(
    state: &State,
    message: PendingMessage,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) -> Result<(), Refusal> {
    check_room(state, message.size())?;
    let item = QueueItem::Message(message);
    let place = match state.phase {
        Phase::Commanding(_) => QueuePlace::First,
        Phase::Idle | Phase::Preparing(_) | Phase::Turn(_) | Phase::Rewinding(_) => {
            QueuePlace::Last
        }
    };
    enter(state, item, place, decision, env);
    Ok(())
}

/// Queues the answer to a permission request whose turn is over, as a text for the model.
pub(super) fn answer_late(
    state: &State,
    request: &RequestId,
    text: String,
    decision: &mut Decision,
    env: &mut DecideEnv<'_>,
) -> Result<(), Refusal> {
    check_room(state, text.len())?;
    let message = PendingMessage {
        source: Some("late-permission".to_owned()),
        answers: Some(request.clone()),
        ..PendingMessage::new(env.message(), text, delivered(state))
    };
    enter(
        state,
        QueueItem::Message(message),
        QueuePlace::Last,
        decision,
        env,
    );
    Ok(())
}

pub(super) fn clear(state: &State) -> Decision {
    let mut ids: Vec<_> = state.queue.iter().map(|item| item.id().clone()).collect();
    ids.extend(state.steering.iter().map(|message| message.id.clone()));
    unqueue(ids)
}

pub(super) fn remove_last(state: &State) -> Decision {
    let last = state
        .queue
        .last()
        .map(QueueItem::id)
        .or(state.steering.last().map(|message| &message.id));
    unqueue(last.cloned().into_iter().collect())
}

fn unqueue(ids: Vec<MessageId>) -> Decision {
    let mut decision = Decision::answering(Answer::Accepted(!ids.is_empty()));
    if !ids.is_empty() {
        decision
            .store(Durable::Unqueued(Unqueued { ids }))
            .tell(modified());
    }
    decision
}

/// Takes the next item when the loop has ended. Steering messages that came too late go first. What
/// the decision has put into the queue counts, and what it has removed does not.
pub(super) fn take_next(state: &State, decision: &mut Decision, env: &DecideEnv<'_>) -> bool {
    let late = state.steering.iter().cloned().map(QueueItem::Message);
    let mut waiting: Vec<QueueItem> = late.chain(state.queue.iter().cloned()).collect();
    for step in &decision.steps {
        match step {
            Step::Store(Durable::Queued(queued)) => {
                insert(&mut waiting, queued.item.clone(), queued.place);
            }
            Step::Store(Durable::Unqueued(Unqueued { ids }) | Durable::Taken(Taken { ids })) => {
                waiting.retain(|item| !ids.contains(item.id()));
            }
            Step::Store(_) | Step::Tell(_) | Step::Do(_) => {}
        }
    }
    take_first(state, waiting.into_iter(), decision, env)
}

/// Takes the first item that can be worked on. Slash commands whose clients have left fail.
fn take_first(
    state: &State,
    waiting: impl Iterator<Item = QueueItem>,
    decision: &mut Decision,
    env: &DecideEnv<'_>,
) -> bool {
    for item in waiting {
        match item {
            QueueItem::Command(command) if slash::is_lost(&command, env) => {
                slash::fail_waiting(decision, &command);
            }
            item @ (QueueItem::Command(_) | QueueItem::Message(_)) => {
                take(state, decision, item);
                return true;
            }
        }
    }
    false
}

/// Takes steering messages into the running loop before its next model call.
pub(super) fn take_steering(state: &State, decision: &mut Decision) -> bool {
    if state.steering.is_empty() {
        return false;
    }
    decision
        .store(Durable::Taken(Taken {
            ids: state.steering.iter().map(|m| m.id.clone()).collect(),
        }))
        .tell(modified());
    // Of several messages the last one that names a mode decides.
    let mut named = state.steering.iter().rev();
    if let Some(message) = named.find(|message| message.switches_to.is_some()) {
        switch_mode(state, decision, message);
    }
    decision.run(Effect::Prepare {
        messages: state.steering.clone(),
    });
    true
}

fn take(state: &State, decision: &mut Decision, item: QueueItem) {
    decision
        .store(Durable::Taken(Taken {
            ids: vec![item.id().clone()],
        }))
        .tell(modified());
    match item {
        QueueItem::Message(message) => {
            switch_mode(state, decision, &message);
            decision.run(Effect::Prepare {
                messages: vec![message],
            });
        }
        QueueItem::Command(command) if command.by_daemon => {
            decision.run(Effect::RunCommand(command));
        }
        QueueItem::Command(command) => {
            decision
                .tell(Ephemeral::CommandQueued(CommandQueued {
                    request_id: command.request.clone(),
                    command: command.command.clone(),
                }))
                .run(Effect::RunCommand(command));
        }
    }
}

/// Refuses attachments that the managed settings do not allow to be read.
fn check_attachments(state: &State, attachments: &[Attachment]) -> Result<(), Refusal> {
    let Some(rules) = &state.permissions.managed else {
        return Ok(());
    };
    for path in attachments.iter().filter_map(Attachment::path) {
        let request = PermissionRequest::Read {
            managed_approval_required: None,
            tool_call_id: None,
            intention: String::new(),
            path: Path::new(&state.cwd)
                .join(path)
                .to_string_lossy()
                .into_owned(),
            also_named: Vec::new(),
        };
        if managed::against(&rules.deny, &state.cwd, &request) != Verdict::Allow {
            return Err(Refusal::AttachmentDenied(path.to_owned()));
        }
    }
    Ok(())
}

/// Refuses an item of so many bytes for which the queue has no room.
pub(super) fn check_room(state: &State, bytes: usize) -> Result<(), Refusal> {
    if state.queue.len() + state.steering.len() >= QUEUE_LIMIT {
        return Err(Refusal::QueueFull { limit: QUEUE_LIMIT });
    }
    check_bytes(state, bytes, None)
}

/// Refuses so many more bytes if the other items leave no room for them. The item that is changed does
/// not count as one of them.
fn check_bytes(state: &State, bytes: usize, changed: Option<&MessageId>) -> Result<(), Refusal> {
    let queued = state.queue.iter().map(|item| (item.id(), item.size()));
    let steering = state.steering.iter().map(|it| (&it.id, it.size()));
    let others = queued
        .chain(steering)
        .filter(|(id, _)| Some(*id) != changed);
    let waiting: usize = others.map(|(_, size)| size).sum();
    if waiting > 0 && waiting + bytes > QUEUE_BYTES {
        return Err(Refusal::QueueBytes {
            waiting,
            limit: QUEUE_BYTES,
        });
    }
    Ok(())
}

pub(super) fn modified() -> Ephemeral {
    Ephemeral::PendingModified(Empty {})
}

#[cfg(test)]
mod tests;
