//! Maps the id of a session to its live actor: at most one per session, started on demand.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use loopd_proto::id::SessionId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::actor::Actor;
use super::queued_command::DaemonCommands;
use super::resume::Start;
use super::{MAILBOX, Message, SessionHandle};
use crate::services::Services;

/// The live sessions of this daemon.
pub struct Sessions {
    services: Arc<Services>,
    live: Mutex<LiveSessions>,
    /// The sessions of sub-agents that clients opened directly, by their parents.
    below: Mutex<HashMap<SessionId, Vec<SessionHandle>>>,
    tasks: TaskTracker,
    /// Cancelled when the daemon ends.
    ending: CancellationToken,
    /// What runs the slash commands of queues; set once, when the daemon is put together.
    commands: OnceLock<Arc<dyn DaemonCommands>>,
}

type LiveSessions = HashMap<SessionId, LiveSession>;

struct LiveSession {
    handle: SessionHandle,
    role: Role,
}

/// Which side ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The clients of the session, or the daemon.
    Top,
    /// The parent session of the sub-agent.
    Subagent,
}

impl Sessions {
    pub fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            live: Mutex::default(),
            below: Mutex::default(),
            tasks: TaskTracker::new(),
            ending: CancellationToken::new(),
            commands: OnceLock::new(),
        }
    }

    /// Sets what runs the slash commands of queues. Only the first call counts.
    pub fn set_commands(&self, commands: Arc<dyn DaemonCommands>) {
        self.commands.get_or_init(|| commands);
    }

    pub(super) fn commands(&self) -> Option<Arc<dyn DaemonCommands>> {
        self.commands.get().cloned()
    }

    fn live(&self) -> parking_lot::MutexGuard<'_, LiveSessions> {
        self.live.lock()
    }

    /// Returns the session if it is live.
    pub fn get(&self, id: &SessionId) -> Option<SessionHandle> {
        let live = self.live();
        let handle = live.get(id).map(|session| &session.handle);
        handle.filter(|handle| !handle.is_closed()).cloned()
    }

    /// Lists the live sessions, sub-agents last. A caller that stops all of them one by one then
    /// stops each sub-agent through its parent, which does not take that end for a failure.
    pub fn ids(&self) -> Vec<SessionId> {
        let live = self.live();
        let of = |role| move |(_, session): &(&SessionId, &LiveSession)| session.role == role;
        let tops = live.iter().filter(of(Role::Top));
        let all = tops.chain(live.iter().filter(of(Role::Subagent)));
        all.map(|(id, _)| id.clone()).collect()
    }

    /// Starts a session that has no log yet, unless a session with this id is live.
    pub fn start_new(self: &Arc<Self>, id: SessionId) -> Option<SessionHandle> {
        self.start_as(id, Role::Top)
    }

    /// Starts the session of a sub-agent, unless a session with this id is live.
    pub(super) fn start_subagent(self: &Arc<Self>, id: SessionId) -> Option<SessionHandle> {
        self.start_as(id, Role::Subagent)
    }

    fn start_as(self: &Arc<Self>, id: SessionId, role: Role) -> Option<SessionHandle> {
        let mut live = self.live();
        let known = live.get(&id);
        if known.is_some_and(|session| !session.handle.is_closed()) {
            return None;
        }
        Some(self.spawn(&mut live, id, Start::New, role))
    }

    /// Returns the live session, or starts it by loading its log.
    pub fn open(self: &Arc<Self>, id: SessionId) -> SessionHandle {
        let mut live = self.live();
        let known = live.get(&id).map(|session| &session.handle);
        match known.filter(|handle| !handle.is_closed()) {
            Some(handle) => handle.clone(),
            None => self.spawn(&mut live, id, Start::Load, Role::Top),
        }
    }

    /// Starts a session from the copy of a log that a client made.
    pub fn open_fork(self: &Arc<Self>, id: SessionId) -> SessionHandle {
        self.spawn(&mut self.live(), id, Start::Fork, Role::Top)
    }

    /// Opens the session of a sub-agent that works again; from now on its parent ends it.
    pub(super) fn open_subagent(self: &Arc<Self>, id: SessionId) -> SessionHandle {
        let mut live = self.live();
        let known = live.get_mut(&id);
        match known.filter(|session| !session.handle.is_closed()) {
            Some(session) => {
                session.role = Role::Subagent;
                session.handle.clone()
            }
            None => self.spawn(&mut live, id, Start::Load, Role::Subagent),
        }
    }

    /// Starts a session from a copied log, to become a sub-agent of the session that was copied.
    pub(super) fn open_copy(self: &Arc<Self>, id: SessionId) -> SessionHandle {
        self.spawn(&mut self.live(), id, Start::Copy, Role::Subagent)
    }

    fn spawn(
        self: &Arc<Self>,
        live: &mut LiveSessions,
        id: SessionId,
        start: Start,
        role: Role,
    ) -> SessionHandle {
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let handle = SessionHandle {
            id: id.clone(),
            mailbox: mailbox.clone(),
        };
        let session = LiveSession {
            handle: handle.clone(),
            role,
        };
        live.insert(id.clone(), session);
        let actor = Box::new(Actor::new(
            id.clone(),
            self.services.clone(),
            self.clone(),
            mailbox.clone(),
            inbox,
        ));
        let run = Box::pin(actor.run(start));
        let sessions = self.clone();
        // A panic in one session must not end the others.
        self.tasks.spawn(async move {
            if AssertUnwindSafe(run).catch_unwind().await.is_err() {
                tracing::error!(session = %id, "a session panicked and was closed");
                sessions.services.processes.end_session(&id).await;
                sessions.forget(&id, &mailbox);
            }
        });
        handle
    }

    /// Notes that a client opened the session of a sub-agent directly: its parent hands it its changes.
    pub(super) fn opened_below(&self, parent: &SessionId, session: SessionHandle) {
        let mut below = self.below.lock();
        // None stays for longer than its session lives.
        below.retain(|_, sessions| {
            sessions.retain(|session| !session.is_closed());
            !sessions.is_empty()
        });
        below.entry(parent.clone()).or_default().push(session);
    }

    /// Returns the live sessions below this one that clients opened directly.
    pub(super) fn below(&self, parent: &SessionId) -> Vec<SessionHandle> {
        let below = self.below.lock();
        let sessions = below.get(parent).into_iter().flatten();
        sessions
            .filter(|session| !session.is_closed())
            .cloned()
            .collect()
    }

    /// Removes a session whose actor has ended.
    pub(super) fn forget(&self, id: &SessionId, mailbox: &mpsc::Sender<Message>) {
        let mut live = self.live();
        if live
            .get(id)
            .is_some_and(|session| session.handle.mailbox.same_channel(mailbox))
        {
            live.remove(id);
        }
    }

    /// Runs work that goes on after the end of a session, until the daemon ends.
    pub(super) fn after_the_end(&self, work: impl Future<Output = ()> + Send + 'static) {
        let ending = self.ending.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = ending.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Waits until all actors have ended.
    pub async fn drained(&self) {
        self.ending.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
