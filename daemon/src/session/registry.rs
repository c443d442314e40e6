//! From a session's id to its live actor: at most one per session, started on demand.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use loopd_proto::id::SessionId;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::actor::{Actor, Start};
use super::{MAILBOX, Message, SessionHandle};
use crate::services::Services;

/// The sessions that live in this daemon.
pub struct Sessions {
    services: Arc<Services>,
    live: Mutex<HashMap<SessionId, SessionHandle>>,
    tasks: TaskTracker,
}

impl Sessions {
    pub fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            live: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    fn live(&self) -> parking_lot::MutexGuard<'_, HashMap<SessionId, SessionHandle>> {
        self.live.lock()
    }

    /// The session, if it is live.
    pub fn get(&self, id: &SessionId) -> Option<SessionHandle> {
        self.live()
            .get(id)
            .filter(|handle| !handle.is_closed())
            .cloned()
    }

    pub fn ids(&self) -> Vec<SessionId> {
        self.live().keys().cloned().collect()
    }

    /// Starts a session that has no log yet, unless one with this id is live.
    pub fn start_new(self: &Arc<Self>, id: SessionId) -> Option<SessionHandle> {
        let mut live = self.live();
        if live.get(&id).is_some_and(|handle| !handle.is_closed()) {
            return None;
        }
        Some(self.spawn(&mut live, id, Start::New))
    }

    /// The live session, or one that starts by loading its log.
    pub fn open(self: &Arc<Self>, id: SessionId) -> (SessionHandle, Opened) {
        let mut live = self.live();
        match live.get(&id).filter(|handle| !handle.is_closed()) {
            Some(handle) => (handle.clone(), Opened::Live),
            None => (self.spawn(&mut live, id, Start::Load), Opened::Cold),
        }
    }

    /// A session that starts from the copy of another one's log, to become an agent of that one.
    pub(super) fn open_copy(self: &Arc<Self>, id: SessionId) -> SessionHandle {
        self.spawn(&mut self.live(), id, Start::Copy)
    }

    fn spawn(
        self: &Arc<Self>,
        live: &mut HashMap<SessionId, SessionHandle>,
        id: SessionId,
        start: Start,
    ) -> SessionHandle {
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let handle = SessionHandle {
            id: id.clone(),
            mailbox: mailbox.clone(),
        };
        live.insert(id.clone(), handle.clone());
        let actor = Actor::new(
            id.clone(),
            self.services.clone(),
            self.clone(),
            mailbox.clone(),
            inbox,
        );
        let sessions = self.clone();
        // One session's panic must not take the others along.
        self.tasks.spawn(async move {
            if AssertUnwindSafe(Box::pin(actor.run(start)))
                .catch_unwind()
                .await
                .is_err()
            {
                tracing::error!(session = %id, "a session panicked and was closed");
                sessions.services.processes.end_session(&id).await;
                sessions.forget(&id, &mailbox);
            }
        });
        handle
    }

    /// An actor has ended.
    pub(super) fn forget(&self, id: &SessionId, mailbox: &mpsc::Sender<Message>) {
        let mut live = self.live();
        if live
            .get(id)
            .is_some_and(|handle| handle.mailbox.same_channel(mailbox))
        {
            live.remove(id);
        }
    }

    /// Waits until all actors have ended.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Whether a session was in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    Live,
    Cold,
}
