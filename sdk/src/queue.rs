//! What waits in a session, and stopping what runs.

use loopd_proto::event::fact::ClientRef;
use loopd_proto::id::MessageId;
use loopd_proto::method;
use loopd_proto::params::queue::{
    InsertMessage, InsertParams, ItemParams, MoveItemParams, Pending, UpdateTextParams,
    WithdrawParams,
};
use loopd_proto::params::session::{AbortParams, AbortReason, InterruptParams, Interrupted};

use crate::{Error, Message, Session};

/// What became of a message that was to be stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// Its turn is being stopped.
    Interrupted {
        /// The waiting messages of this client that left the queue.
        removed: Vec<MessageId>,
    },
    /// It waited and left the queue.
    Removed,
    /// Neither runs it nor waits it, or it joined the turn of another client: nothing was changed.
    Spared {
        /// The message that the running turn belongs to.
        running: Option<MessageId>,
        /// The client that sent that message.
        by: Option<ClientRef>,
    },
}

/// Items are addressed by the ids that [`Session::pending_items`] lists. A method fails if its item
/// does not wait any more.
impl Session {
    /// Lists what waits.
    pub async fn pending_items(&self) -> Result<Pending, Error> {
        self.call::<method::QueuePendingItems>(&self.of()).await
    }

    /// Moves an item to a position, counted from 0; returns whether it was elsewhere before.
    pub async fn move_item(&self, id: &MessageId, to: usize) -> Result<bool, Error> {
        let params = MoveItemParams {
            session_id: self.id().clone(),
            id: id.clone(),
            to_position: position(to),
        };
        let moved = self.call::<method::QueueMoveItem>(&params).await?;
        Ok(moved.changed)
    }

    /// Changes the text of a message that waits; returns whether it had another one before.
    pub async fn edit_item(
        &self,
        id: &MessageId,
        prompt: impl Into<String>,
    ) -> Result<bool, Error> {
        let params = UpdateTextParams {
            session_id: self.id().clone(),
            id: id.clone(),
            prompt: prompt.into(),
            display_prompt: None,
        };
        let edited = self.call::<method::QueueUpdateText>(&params).await?;
        Ok(edited.updated)
    }

    /// Queues a message at a position, counted from 0; its mode is ignored.
    pub async fn insert_item(
        &self,
        message: impl Into<Message>,
        at: usize,
    ) -> Result<MessageId, Error> {
        let message = message.into();
        let params = InsertParams {
            session_id: self.id().clone(),
            position: position(at),
            message: InsertMessage {
                prompt: message.prompt,
                display_prompt: message.display_prompt,
                attachments: Some(message.attachments),
                ..InsertMessage::default()
            },
        };
        // At most once: the message has no id by which the daemon could recognise a repetition.
        let shared = &self.client().shared;
        let inserted = shared.call_once::<method::QueueInsertAt>(&params).await?;
        Ok(inserted.id)
    }

    /// Removes an item; returns whether it waited.
    pub async fn remove_item(&self, id: &MessageId) -> Result<bool, Error> {
        let removed = self.call::<method::QueueRemoveAt>(&self.item(id)).await?;
        Ok(removed.removed)
    }

    /// Lets a waiting message join the running turn; returns whether one runs.
    pub async fn send_item_now(&self, id: &MessageId) -> Result<bool, Error> {
        let steered = self.call::<method::QueueSendNow>(&self.item(id)).await?;
        Ok(steered.steered)
    }

    /// Takes a message back if it still has this text and no model can have read it; returns whether
    /// it was taken back.
    pub async fn withdraw(&self, id: &MessageId, prompt: impl Into<String>) -> Result<bool, Error> {
        let params = WithdrawParams {
            session_id: self.id().clone(),
            message_id: id.clone(),
            expected_prompt: prompt.into(),
        };
        let withdrawn = self.call::<method::QueueWithdrawMessage>(&params).await?;
        Ok(withdrawn.removed)
    }

    /// Removes everything that waits, whoever sent it.
    pub async fn clear_queue(&self) -> Result<(), Error> {
        self.call::<method::QueueClear>(&self.of()).await
    }

    /// Stops the running turn, whoever started it, and removes the waiting messages of this client;
    /// returns those. Messages of other clients run next.
    pub async fn abort(&self) -> Result<Vec<MessageId>, Error> {
        let params = AbortParams {
            session_id: self.id().clone(),
            reason: Some(AbortReason::UserInitiated),
        };
        let aborted = self.call::<method::SessionAbort>(&params).await?;
        Ok(aborted.removed_message_ids)
    }

    /// Stops the running turn: with `only`, if it belongs to that message. With `keeps_waiting`, the
    /// waiting messages of this client stay and run next.
    pub async fn interrupt(
        &self,
        only: Option<&MessageId>,
        keeps_waiting: KeepsWaiting,
    ) -> Result<Interrupted, Error> {
        let params = InterruptParams {
            session_id: self.id().clone(),
            flush_queued: keeps_waiting == KeepsWaiting::Yes,
            only_message_id: only.cloned(),
        };
        self.call::<method::SessionInterruptMainTurn>(&params).await
    }

    /// Stops work on one message, and nothing of anybody else: interrupts the turn that belongs to
    /// the message, or removes the message while it waits.
    pub async fn stop_message(
        &self,
        id: &MessageId,
        keeps_waiting: KeepsWaiting,
    ) -> Result<Stopped, Error> {
        let stopped = |interrupted: Interrupted| {
            interrupted.interrupted.then_some(Stopped::Interrupted {
                removed: interrupted.removed_message_ids,
            })
        };
        if let Some(stopped) = stopped(self.interrupt(Some(id), keeps_waiting).await?) {
            return Ok(stopped);
        }
        if self.remove_item(id).await? {
            return Ok(Stopped::Removed);
        }
        // A turn may have taken the message between the two requests.
        let again = self.interrupt(Some(id), keeps_waiting).await?;
        let (running, by) = (again.running_message_id.clone(), again.running_by.clone());
        Ok(stopped(again).unwrap_or(Stopped::Spared { running, by }))
    }

    fn item(&self, id: &MessageId) -> ItemParams {
        ItemParams {
            session_id: self.id().clone(),
            id: id.clone(),
        }
    }
}

/// Whether the waiting messages of the caller stay when a turn is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepsWaiting {
    Yes,
    No,
}

fn position(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}
