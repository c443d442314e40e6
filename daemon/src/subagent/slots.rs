//! Limits how many sub-agents of one tree may work at once, with a fair queue of slots.
//!
//! A sub-agent that waits for its own sub-agents holds no slot, so that a tree cannot deadlock.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one tree of sub-agents.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Semaphore>);

impl Slots {
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit.max(1))))
    }

    /// Waits in the queue for a slot.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.0.clone().acquire_owned().await.ok()
    }
}

/// The slot of one sub-agent: held while it works, lent while it waits for its own sub-agents.
#[derive(Debug)]
pub struct SlotLease {
    slots: Slots,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// How many of its tool calls wait for sub-agents.
    lent: usize,
    /// Whether the sub-agent has stopped working.
    left: bool,
}

impl SlotLease {
    /// Waits in the queue until the sub-agent may work.
    pub async fn take(slots: Slots) -> Arc<Self> {
        let permit = slots.take().await;
        Arc::new(Self {
            slots,
            held: Mutex::new(Held {
                permit,
                ..Held::default()
            }),
        })
    }

    /// Takes a slot if one is free.
    pub fn try_take(slots: &Slots) -> Option<Arc<Self>> {
        let permit = slots.0.clone().try_acquire_owned().ok()?;
        Some(Arc::new(Self {
            slots: slots.clone(),
            held: Mutex::new(Held {
                permit: Some(permit),
                ..Held::default()
            }),
        }))
    }

    /// Gives the slot away while a tool call waits; [`SlotLease::resume`] takes it back.
    pub fn lend(&self) {
        let mut held = self.held.lock();
        held.lent += 1;
        held.permit = None;
    }

    /// Gives the slot away because the sub-agent is idle, even if others still hold the lease.
    pub(super) fn leave(&self) {
        let mut held = self.held.lock();
        held.left = true;
        held.permit = None;
    }

    /// Ends one wait; the last wait to end waits in the queue for a slot again.
    pub async fn resume(&self) {
        {
            let mut held = self.held.lock();
            held.lent = held.lent.saturating_sub(1);
            if held.lent > 0 || held.left || held.permit.is_some() {
                return;
            }
        }
        let permit = self.slots.take().await;
        let mut held = self.held.lock();
        if held.lent == 0 && !held.left && held.permit.is_none() {
            held.permit = permit;
        }
    }
}
