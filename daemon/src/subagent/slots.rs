//! How many agents of one tree may be at work at once: a fair queue of slots.
//!
//! An agent that waits for one of its own holds no slot meanwhile, so that a tree can never wait for
//! itself.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of one tree of agents.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Semaphore>);

impl Slots {
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit.max(1))))
    }

    /// Waits in line for a slot.
    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // Nobody closes the semaphore.
        self.0.clone().acquire_owned().await.ok()
    }
}

/// One agent's place among the slots: held while it works, lent while it waits for its own agents.
#[derive(Debug)]
pub struct SlotLease {
    slots: Slots,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    /// How many of its calls wait for agents.
    lent: usize,
    /// It works no more.
    left: bool,
}

impl SlotLease {
    /// Waits in line until the agent may work.
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

    /// Gives the slot away for as long as somebody waits; take it back with [`SlotLease::resume`].
    pub fn lend(&self) {
        let mut held = self.held.lock();
        held.lent += 1;
        held.permit = None;
    }

    /// The agent rests: the slot is for others, whoever still holds on to the lease.
    pub(super) fn leave(&self) {
        let mut held = self.held.lock();
        held.left = true;
        held.permit = None;
    }

    /// One wait is over; the last one waits in line for a slot again.
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
