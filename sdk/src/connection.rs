//! The one connection of a client: routes what comes in, and makes it anew when it breaks.
//!
//! A break is met in this order: the daemon is reached (started if need be), every open session is
//! resumed with its pending work, its missed events are read, and only then calls go on.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::PROTOCOL_VERSION;
use loopd_proto::error as code;
use loopd_proto::event;
use loopd_proto::id::SessionId;
use loopd_proto::method::{self, Method};
use loopd_proto::params::server::{ConnectParams, Connected, NoParams};
use loopd_proto::reach::{self, Reached};
use loopd_proto::wire::{
    CallError, CloseReason, ErrorObject, Notification, Peer, PeerId, Reply, Request, Service,
};
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Error;
use crate::core::{Core, parse_all};
use crate::events::End;
use crate::handler::UserInput;
use crate::spawn::{Spawn, StartPolicy};

/// A connection that broke this soon after it was made has not helped.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// How many such connections in a row are put up with.
const SHORT_LIVES: u32 = 5;
/// How often one call is tried on new connections.
const CALL_TRIES: u32 = 4;

/// Whether there is a connection to call over.
#[derive(Debug, Clone)]
enum Link {
    Up(Peer),
    Down,
    /// For good.
    Lost(Arc<str>),
}

/// What the parts of a client share.
pub(crate) struct Shared {
    pub(crate) spawn: Spawn,
    link: watch::Sender<Link>,
    sessions: Mutex<HashMap<SessionId, Weak<Core>>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
    unwanted: AtomicBool,
}

impl Shared {
    /// Connects for the first time and keeps the connection from then on.
    pub(crate) async fn connect(spawn: Spawn) -> Result<Arc<Self>, Error> {
        let spawn_never = spawn.start == StartPolicy::Never;
        let shared = Arc::new(Self {
            spawn,
            link: watch::Sender::new(Link::Down),
            sessions: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            unwanted: AtomicBool::new(spawn_never),
        });
        let (peer, driving) = shared.reach().await?;
        shared.link.send_replace(Link::Up(peer));
        let keeper = shared.clone();
        shared
            .tasks
            .spawn(async move { keeper.keep(driving).await });
        Ok(shared)
    }

    async fn reach(self: &Arc<Self>) -> Result<(Peer, JoinHandle<CloseReason>), Error> {
        let service = Arc::new(Incoming(Arc::downgrade(self)));
        let target = &self.spawn.target;
        let (peer, driving) = match self.spawn.start {
            StartPolicy::WhenNeeded => {
                let Reached { peer, driving, .. } =
                    target.reach(&self.spawn.launch, service).await?;
                (peer, driving)
            }
            StartPolicy::Never => {
                let opened = reach::open(&target.socket, service).await;
                opened.map_err(|_| Error::NotRunning {
                    home: target.home.clone(),
                })?
            }
        };
        let hello = ConnectParams { token: None };
        let connected: Connected = peer.request(method::Connect::NAME, &hello).await?;
        if connected.protocol_version != PROTOCOL_VERSION {
            peer.close(CloseReason::Done);
            return Err(Error::Protocol {
                theirs: connected.protocol_version,
                ours: PROTOCOL_VERSION,
            });
        }
        Ok((peer, driving))
    }

    /// Waits for the connection's end, again and again.
    async fn keep(self: Arc<Self>, mut driving: JoinHandle<CloseReason>) {
        let mut short = 0;
        loop {
            let made = tokio::time::Instant::now();
            tokio::select! {
                ended = &mut driving => tracing::debug!(?ended, "the connection broke"),
                () = self.closing.cancelled() => {
                    if let Link::Up(peer) = &*self.link.borrow() {
                        peer.close(CloseReason::Done);
                    }
                    // Its end is bounded by the time for the last flush.
                    driving.await.ok();
                    self.give_up("it was closed by this side");
                    return;
                }
            }
            short = if made.elapsed() < SHORT_LIFE {
                short + 1
            } else {
                0
            };
            self.link.send_replace(Link::Down);
            if self.unwanted.load(Ordering::Acquire) || short > SHORT_LIVES {
                self.give_up("the daemon went away");
                return;
            }
            let mending = self.mend();
            let mended = tokio::select! {
                mended = mending => mended,
                () = self.closing.cancelled() => Err(Error::Closed),
            };
            match mended {
                Ok(again) => driving = again,
                Err(error) => {
                    self.give_up(&error.to_string());
                    return;
                }
            }
        }
    }

    /// Makes a new connection and brings every open session onto it.
    async fn mend(self: &Arc<Self>) -> Result<JoinHandle<CloseReason>, Error> {
        let (peer, driving) = self.reach().await?;
        for session in self.open_sessions() {
            match self.bring_back(&session, &peer).await {
                Ok(()) => {}
                // The next round of the keeper meets it again.
                Err(CallError::Closed) => break,
                Err(error) => {
                    tracing::warn!(session = %session.id, %error, "a session could not be resumed");
                    session.feed.end(End::Lost(Error::from(error).to_string()));
                    self.forget(&session.id);
                }
            }
        }
        self.link.send_replace(Link::Up(peer));
        Ok(driving)
    }

    async fn bring_back(
        self: &Arc<Self>,
        session: &Arc<Core>,
        peer: &Peer,
    ) -> Result<(), CallError> {
        let mut cursor = session.feed.hold();
        let resumed = session.resume_params();
        ask::<method::SessionResume>(peer, &resumed).await?;
        loop {
            let read = session.read_params(cursor);
            let page = ask::<method::EventLogRead>(peer, &read).await?;
            session.feed.catch_up(&parse_all(&page.events));
            cursor = Some(page.cursor);
            if !page.has_more {
                break;
            }
        }
        let status = ask::<method::LoopdDaemonStatus>(peer, &NoParams {}).await?;
        for event in session.feed.release(cursor.unwrap_or_default()) {
            session.act_upon(self, &event);
        }
        session.may_rest(&status);
        Ok(())
    }

    /// A connection that ends from now on is not made again.
    pub(crate) fn stay_down(&self) {
        self.unwanted.store(true, Ordering::Release);
    }

    /// Drops the handlers that are under way.
    pub(crate) fn withdraw(&self) {
        for session in self.open_sessions() {
            session.stop(|_, _| true);
        }
    }

    fn give_up(&self, why: &str) {
        self.link.send_replace(Link::Lost(why.into()));
        for session in self.open_sessions() {
            session.feed.end(End::Lost(why.to_owned()));
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Core>>> {
        self.sessions.lock()
    }

    fn open_sessions(&self) -> Vec<Arc<Core>> {
        self.sessions().values().filter_map(Weak::upgrade).collect()
    }

    fn session(&self, id: &SessionId) -> Option<Arc<Core>> {
        self.sessions().get(id).and_then(Weak::upgrade)
    }

    /// Routes events of a session to it from now on.
    pub(crate) fn add(&self, session: &Arc<Core>) -> Result<(), Error> {
        let mut sessions = self.sessions();
        sessions.retain(|_, known| known.strong_count() > 0);
        if sessions.contains_key(&session.id) {
            return Err(Error::AlreadyOpen(session.id.clone()));
        }
        sessions.insert(session.id.clone(), Arc::downgrade(session));
        Ok(())
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        self.sessions().remove(id);
    }

    /// The connection, once there is one other than `after`.
    async fn up(&self, after: Option<PeerId>) -> Result<Peer, Error> {
        let mut links = self.link.subscribe();
        let usable = |link: &Link| match link {
            Link::Up(peer) => Some(peer.id()) != after,
            Link::Down => false,
            Link::Lost(_) => true,
        };
        let link = links.wait_for(usable).await.map(|link| link.clone());
        match link {
            Ok(Link::Up(peer)) => Ok(peer),
            Ok(Link::Lost(why)) => Err(Error::Lost(why.to_string())),
            Ok(Link::Down) | Err(_) => Err(Error::Closed),
        }
    }

    /// Asks the daemon; asks again on the next connection when this one breaks, so only for what
    /// does no harm when it is done twice.
    pub(crate) async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        Ok(self.call_counting::<M>(params).await?.0)
    }

    /// Does the same, and tells how often it asked.
    pub(crate) async fn call_counting<M>(
        &self,
        params: &M::Params,
    ) -> Result<(M::Result, u32), Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        let mut tried = None;
        for tries in 1..=CALL_TRIES {
            let peer = self.up(tried).await?;
            tried = Some(peer.id());
            match ask::<M>(&peer, params).await {
                Err(CallError::Closed) => {}
                answer => return Ok((answer?, tries)),
            }
        }
        Err(CallError::Closed.into())
    }

    /// Asks the daemon once.
    pub(crate) async fn call_once<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        let peer = self.up(None).await?;
        Ok(ask::<M>(&peer, params).await?)
    }

    /// Resolves when the connection of this moment has ended.
    pub(crate) async fn disconnected(&self) {
        let link = self.link.borrow().clone();
        if let Link::Up(peer) = link {
            peer.closed().await;
        }
    }
}

async fn ask<M>(peer: &Peer, params: &M::Params) -> Result<M::Result, CallError>
where
    M: Method,
    M::Params: Serialize,
    M::Result: DeserializeOwned,
{
    peer.request(M::NAME, params).await
}

/// What the daemon tells and asks.
struct Incoming(Weak<Shared>);

/// A question to the user comes as a request; its answer is the reply.
const USER_INPUT: &str = "userInput.request";

impl Service for Incoming {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        let refused = |code: i32, why: String| {
            let error = ErrorObject::new(code.into(), why);
            futures::future::ready(Reply::error(&request.id, error)).boxed()
        };
        if request.method != USER_INPUT {
            let why = format!("Unhandled method {}", request.method);
            return refused(code::METHOD_NOT_FOUND, why);
        }
        let params = request.params.as_ref().map_or("{}", |raw| raw.get());
        let asked: UserInput = match serde_json::from_str(params) {
            Ok(asked) => asked,
            Err(error) => return refused(code::INVALID_PARAMS, error.to_string()),
        };
        let session = self
            .0
            .upgrade()
            .and_then(|it| it.session(&asked.session_id));
        let Some(answer) = session.and_then(|session| session.config.handlers.user_input.clone())
        else {
            return refused(code::FAILED, "nobody is there to answer".to_owned());
        };
        let id = request.id.clone();
        async move { Reply::result(&id, &answer(asked).await) }.boxed()
    }

    fn notify(&self, _peer: &Peer, notification: Notification) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SessionEvent {
            session_id: SessionId,
            event: Box<RawValue>,
        }
        if notification.method != "session.event" {
            return;
        }
        let params = notification.params.as_ref().map_or("{}", |raw| raw.get());
        let parsed = serde_json::from_str::<SessionEvent>(params)
            .and_then(|told| Ok((told.session_id, event::read(told.event.get())?)));
        let (id, event) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                tracing::warn!(%error, "an event could not be read");
                return;
            }
        };
        let Some(shared) = self.0.upgrade() else {
            return;
        };
        if let Some(session) = shared.session(&id) {
            for event in session.feed.receive(event) {
                session.act_upon(&shared, &event);
            }
            session.keep_cursor(&shared);
        }
    }
}
