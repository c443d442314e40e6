//! The connection of a client: routes incoming messages, and reconnects when it breaks.
//!
//! A reconnect has this order: connect to the daemon (and start it if necessary), resume every open
//! session with its pending work, read the events that each one missed, then let calls go on.

use loopd_proto::parse_error::plain;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::PROTOCOL_VERSION;
use loopd_proto::daemon_connection::{self, LaunchedConnection};
use loopd_proto::error as code;
use loopd_proto::event;
use loopd_proto::id::SessionId;
use loopd_proto::method::{self, Method};
use loopd_proto::params::server::{ConnectParams, Connected, NoParams};
use loopd_proto::wire::{
    CallError, CloseReason, ErrorObject, Notification, Peer, PeerId, Reply, Request, Service,
};
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use ulid::Ulid;

use crate::Error;
use crate::connect_options::{ConnectPlan, StartPolicy};
use crate::core::{SessionCore, parse_all};
use crate::events::End;
use crate::handler::{PlanProposed, UserInput};

/// A connection that breaks sooner than this counts as short.
const SHORT_LIFE: Duration = Duration::from_secs(10);
/// How many short connections in a row are accepted before the client gives up.
const SHORT_LIVES: u32 = 5;
/// On how many connections one call is tried.
const CALL_TRIES: u32 = 4;

/// The state of the connection.
#[derive(Debug, Clone)]
enum Link {
    Up(Peer),
    Down,
    /// No further attempt is made.
    Lost(Arc<str>),
}

/// The state that a client, its sessions and its tasks share.
pub(crate) struct Shared {
    pub(crate) plan: ConnectPlan,
    link: watch::Sender<Link>,
    sessions: Mutex<HashMap<SessionId, Weak<SessionCore>>>,
    /// The id of this client on each of its connections, so that the messages it sent stay its own.
    client_id: String,
    pub(crate) tasks: TaskTracker,
    pub(crate) closing: CancellationToken,
    no_reconnect: AtomicBool,
}

impl Shared {
    /// Connects for the first time and starts the task that reconnects.
    pub(crate) async fn connect(plan: ConnectPlan) -> Result<Arc<Self>, Error> {
        let never_start = plan.start == StartPolicy::Never;
        let shared = Arc::new(Self {
            plan,
            link: watch::Sender::new(Link::Down),
            sessions: Mutex::default(),
            client_id: Ulid::generate().to_string(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            no_reconnect: AtomicBool::new(never_start),
        });
        let (peer, driving) = shared.open_connection().await?;
        shared.link.send_replace(Link::Up(peer));
        let supervisor = shared.clone();
        shared
            .tasks
            .spawn(async move { supervisor.supervise(driving).await });
        Ok(shared)
    }

    async fn open_connection(self: &Arc<Self>) -> Result<(Peer, JoinHandle<CloseReason>), Error> {
        let service = Arc::new(Incoming(Arc::downgrade(self)));
        let target = &self.plan.target;
        let (peer, driving) = match self.plan.start {
            StartPolicy::WhenNeeded => {
                let LaunchedConnection { peer, driving, .. } =
                    target.connect_or_start(&self.plan.launch, service).await?;
                (peer, driving)
            }
            StartPolicy::Never => {
                let opened = daemon_connection::connect_running(&target.socket, service).await;
                opened.map_err(|_| Error::NotRunning {
                    home: target.home.clone(),
                })?
            }
        };
        let params = ConnectParams {
            loopd_client_id: Some(self.client_id.clone()),
            ..ConnectParams::default()
        };
        let connected: Connected = peer.request(method::Connect::NAME, &params).await?;
        if connected.protocol_version != PROTOCOL_VERSION {
            peer.close(CloseReason::Done);
            return Err(Error::Protocol {
                theirs: connected.protocol_version,
                ours: PROTOCOL_VERSION,
            });
        }
        Ok((peer, driving))
    }

    /// Reconnects each time the connection breaks, until the client closes or gives up.
    async fn supervise(self: Arc<Self>, mut driving: JoinHandle<CloseReason>) {
        let mut short = 0;
        loop {
            let made = tokio::time::Instant::now();
            tokio::select! {
                ended = &mut driving => tracing::debug!(?ended, "the connection broke"),
                () = self.closing.cancelled() => {
                    if let Link::Up(peer) = &*self.link.borrow() {
                        peer.close(CloseReason::Done);
                    }
                    // Bounded by the time limit of the last flush.
                    driving.await.ok();
                    self.lose("it was closed by this side");
                    return;
                }
            }
            short = if made.elapsed() < SHORT_LIFE {
                short + 1
            } else {
                0
            };
            self.link.send_replace(Link::Down);
            if self.no_reconnect.load(Ordering::Acquire) || short > SHORT_LIVES {
                self.lose("the daemon went away");
                return;
            }
            let reconnecting = self.reconnect();
            let reconnected = tokio::select! {
                reconnected = reconnecting => reconnected,
                () = self.closing.cancelled() => Err(Error::Closed),
            };
            match reconnected {
                Ok(again) => driving = again,
                Err(error) => {
                    self.lose(&error.to_string());
                    return;
                }
            }
        }
    }

    /// Opens a new connection and resumes every open session on it.
    async fn reconnect(self: &Arc<Self>) -> Result<JoinHandle<CloseReason>, Error> {
        let (peer, driving) = self.open_connection().await?;
        for session in self.open_sessions() {
            match self.resume_session(&session, &peer).await {
                Ok(()) => {}
                // The new connection broke, too: `supervise` sees that and reconnects.
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

    async fn resume_session(
        self: &Arc<Self>,
        session: &Arc<SessionCore>,
        peer: &Peer,
    ) -> Result<(), CallError> {
        let mut cursor = session.feed.hold();
        let resumed = session.resume_params();
        request::<method::SessionResume>(peer, &resumed).await?;
        loop {
            let read = session.read_params(cursor);
            let page = request::<method::EventLogRead>(peer, &read).await?;
            session.feed.catch_up(&parse_all(&page.events));
            cursor = Some(page.cursor);
            if !page.has_more {
                break;
            }
        }
        let status = request::<method::LoopdDaemonStatus>(peer, &NoParams {}).await?;
        for event in session.feed.release(cursor.unwrap_or_default()) {
            session.dispatch(self, &event);
        }
        session.publish_idle_if_missed(&status);
        Ok(())
    }

    /// Makes the client give up when the connection ends.
    pub(crate) fn disable_reconnect(&self) {
        self.no_reconnect.store(true, Ordering::Release);
    }

    /// Drops all running handlers.
    pub(crate) fn cancel_handlers(&self) {
        for session in self.open_sessions() {
            session.stop(|_, _| true);
        }
    }

    fn lose(&self, why: &str) {
        self.link.send_replace(Link::Lost(why.into()));
        for session in self.open_sessions() {
            session.feed.end(End::Lost(why.to_owned()));
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<SessionCore>>> {
        self.sessions.lock()
    }

    fn open_sessions(&self) -> Vec<Arc<SessionCore>> {
        self.sessions().values().filter_map(Weak::upgrade).collect()
    }

    fn session(&self, id: &SessionId) -> Option<Arc<SessionCore>> {
        self.sessions().get(id).and_then(Weak::upgrade)
    }

    /// Registers a session: its events are routed to it from now on.
    pub(crate) fn add(&self, session: &Arc<SessionCore>) -> Result<(), Error> {
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

    /// Waits for a connection other than `after`.
    async fn wait_connected(&self, after: Option<PeerId>) -> Result<Peer, Error> {
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

    /// Sends a request, and sends it again on the next connection if this one breaks. Use it only
    /// for requests that may be carried out twice.
    pub(crate) async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        Ok(self.call_counting::<M>(params).await?.0)
    }

    /// Does the same as `call`, and also returns how often the request was sent.
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
            let peer = self.wait_connected(tried).await?;
            tried = Some(peer.id());
            match request::<M>(&peer, params).await {
                Err(CallError::Closed) => {}
                answer => return Ok((answer?, tries)),
            }
        }
        Err(CallError::Closed.into())
    }

    /// Sends a request at most once.
    pub(crate) async fn call_once<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        let peer = self.wait_connected(None).await?;
        Ok(request::<M>(&peer, params).await?)
    }

    /// Waits until the current connection has closed.
    pub(crate) async fn disconnected(&self) {
        let link = self.link.borrow().clone();
        if let Link::Up(peer) = link {
            peer.closed().await;
        }
    }
}

async fn request<M>(peer: &Peer, params: &M::Params) -> Result<M::Result, CallError>
where
    M: Method,
    M::Params: Serialize,
    M::Result: DeserializeOwned,
{
    peer.request(M::NAME, params).await
}

/// Handles the notifications and requests of the daemon.
struct Incoming(Weak<Shared>);

/// The request with which the daemon asks a hook. The reply has its output.
const HOOK: &str = "hooks.invoke";

impl Incoming {
    fn run_hook(&self, request: Request) -> BoxFuture<'static, Reply> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Asked {
            session_id: SessionId,
            hook_type: String,
            input: Value,
        }
        #[derive(Serialize)]
        struct Answer {
            output: Option<Value>,
        }
        let id = request.id.clone();
        let failed =
            move |code: i32, why: String| Reply::error(&id, ErrorObject::new(code.into(), why));
        let params = request.params.as_ref().map_or("{}", |raw| raw.get());
        let asked: Asked = match serde_json::from_str(params) {
            Ok(asked) => asked,
            Err(error) => {
                let refused = failed(code::INVALID_PARAMS, plain(&error));
                return futures::future::ready(refused).boxed();
            }
        };
        let session = self
            .0
            .upgrade()
            .and_then(|it| it.session(&asked.session_id));
        let Some(session) = session else {
            // An answer without output would let a guarded call pass.
            let refused = failed(code::FAILED, "the session is not open here".to_owned());
            return futures::future::ready(refused).boxed();
        };
        let running = session
            .config
            .handlers
            .hooks
            .run(&asked.hook_type, asked.input);
        let id = request.id;
        async move {
            match running {
                None => Reply::result(&id, &Answer { output: None }),
                Some(running) => match running.await {
                    Ok(output) => Reply::result(
                        &id,
                        &Answer {
                            output: Some(output),
                        },
                    ),
                    Err(why) => failed(code::FAILED, why),
                },
            }
        }
        .boxed()
    }
}

/// The request with which the daemon asks the user a question. The reply is the answer.
const USER_INPUT: &str = "userInput.request";

/// The request with which the daemon asks whether plan mode may end. The reply is the answer.
const EXIT_PLAN_MODE: &str = "exitPlanMode.request";

impl Incoming {
    fn session(&self, id: &SessionId) -> Option<Arc<SessionCore>> {
        self.0.upgrade().and_then(|it| it.session(id))
    }
}

impl Service for Incoming {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        let refused = |code: i32, why: String| {
            let error = ErrorObject::new(code.into(), why);
            futures::future::ready(Reply::error(&request.id, error)).boxed()
        };
        if request.method == HOOK {
            return self.run_hook(request);
        }
        let nobody = || refused(code::FAILED, "nobody is there to answer".to_owned());
        let params = request.params.as_ref().map_or("{}", |raw| raw.get());
        let id = request.id.clone();
        match request.method.as_str() {
            USER_INPUT => {
                let asked: UserInput = match serde_json::from_str(params) {
                    Ok(asked) => asked,
                    Err(error) => return refused(code::INVALID_PARAMS, plain(&error)),
                };
                let session = self.session(&asked.session_id);
                match session.and_then(|session| session.config.handlers.user_input.clone()) {
                    Some(answer) => async move { Reply::result(&id, &answer(asked).await) }.boxed(),
                    None => nobody(),
                }
            }
            EXIT_PLAN_MODE => {
                let plan: PlanProposed = match serde_json::from_str(params) {
                    Ok(plan) => plan,
                    Err(error) => return refused(code::INVALID_PARAMS, plain(&error)),
                };
                let session = self.session(&plan.session_id);
                match session.and_then(|session| session.config.handlers.plan.clone()) {
                    Some(approve) => {
                        async move { Reply::result(&id, &approve(plan).await) }.boxed()
                    }
                    None => nobody(),
                }
            }
            other => refused(code::METHOD_NOT_FOUND, format!("Unhandled method {other}")),
        }
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
            .and_then(|sent| Ok((sent.session_id, event::read(sent.event.get())?)));
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
                session.dispatch(&shared, &event);
            }
            session.refresh_cursor_when_due(&shared);
        }
    }
}
