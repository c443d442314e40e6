//! The queue: items enter it, change their place or text. How they leave it is in `runs`.

use loopd_proto::event::fact::{
    PendingMessage, QueueItem, QueueItemEdited, QueueItemMoved, QueuePlace, Queued,
};
use loopd_proto::event::turn::Delivered;

use crate::state::{Accepted, State, fingerprint};

/// How many ids of accepted messages are kept, so that a repeated send is harmless.
const ACCEPTED_KEPT: usize = 256;

/// Adds an item that was accepted.
pub(super) fn enter(state: &mut State, queued: &Queued) {
    let text = match &queued.item {
        QueueItem::Message(message) => &message.prompt,
        QueueItem::Command(command) => &command.command,
    };
    state.accepted.push_back(Accepted {
        id: queued.item.id().clone(),
        fingerprint: fingerprint(text),
        sender: queued.item.sender().cloned(),
    });
    while state.accepted.len() > ACCEPTED_KEPT {
        state.accepted.pop_front();
    }
    if let QueueItem::Message(message) = &queued.item
        && let Some(answered) = &message.answers
    {
        let open = &mut state.unanswered;
        open.retain(|permission| permission.request != *answered);
    }
    put(state, queued.item.clone(), queued.place);
}

fn put(state: &mut State, item: QueueItem, place: QueuePlace) {
    match (place, item) {
        (QueuePlace::Steering, QueueItem::Message(message)) => state.steering.push(message),
        (_, item) => insert(&mut state.queue, item, place),
    }
}

/// Inserts an item into a queue.
pub(crate) fn insert(queue: &mut Vec<QueueItem>, item: QueueItem, place: QueuePlace) {
    let end = queue.len();
    let at = match place {
        QueuePlace::First => 0,
        QueuePlace::At(position) => usize::try_from(position).map_or(end, |at| at.min(end)),
        QueuePlace::Last | QueuePlace::Steering => end,
    };
    queue.insert(at, item);
}

/// Moves an item within the queue, or from the queue to the steering messages.
pub(super) fn move_to(state: &mut State, moved: &QueueItemMoved) {
    let at = state.queue.iter().position(|item| *item.id() == moved.id);
    let Some(at) = at else {
        return;
    };
    let mut item = state.queue.remove(at);
    if let (QueuePlace::Steering, QueueItem::Message(message)) = (moved.place, &mut item) {
        message.delivery = Delivered::Steering;
    }
    put(state, item, moved.place);
}

/// Changes the text of a message that waits. The fingerprint stays that of the text as it was sent,
/// so that a repeated send is still recognised.
pub(super) fn edit(state: &mut State, edited: &QueueItemEdited) {
    let change = |message: &mut PendingMessage| {
        message.prompt.clone_from(&edited.prompt);
        message.display_prompt.clone_from(&edited.display_prompt);
    };
    for item in &mut state.queue {
        match item {
            QueueItem::Message(message) if message.id == edited.id => change(message),
            QueueItem::Message(_) | QueueItem::Command(_) => {}
        }
    }
}
