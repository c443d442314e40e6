//! One server of a session: its status, its tools, its log, and its calls.
//!
//! A [`Server`] is a handle. The task in `server/life.rs` starts the server, looks after it, starts it
//! again after a crash, and ends it; it begins with the first start.

mod life;
mod lists;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use self::life::{Control, Life};
use crate::cache::ToolCache;
use crate::config::ServerConfig;
use crate::connection::{Call, CallError, Connection};
use crate::log::ServerLog;
use crate::port::{Ports, TokenSource};
use crate::prompts::ServerPrompt;
use crate::task::Called;
use crate::tools::{ServerTool, ToolKind};

/// How long a caller waits for a server beyond the time that the server has to start.
const WAIT_BEYOND_START: Duration = Duration::from_secs(5);
/// The most orders that wait for the task of a server.
const MOST_ORDERS: usize = 16;
/// How many connections are tried for a request that never left.
const MOST_TRIES: usize = 3;

/// The status of a server, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStatus {
    /// It starts, or will when it is needed.
    Pending,
    Connected,
    NeedsAuth,
    Failed,
    Stopped,
}

/// What people are told about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusReport {
    pub status: ServerStatus,
    pub error: Option<String>,
    /// When it failed, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// What it tells models about its use.
    pub instructions: Option<String>,
    /// What is wrong with tools that are left out.
    pub problems: Vec<String>,
    /// Whether it is being connected now.
    pub is_starting: bool,
}

/// What is known of a server.
#[derive(Clone)]
pub(crate) struct Known {
    phase: Phase,
    /// How often it was started.
    attempt: u64,
    /// Its tools; `None` if they were never known.
    tools: Option<Arc<Vec<ServerTool>>>,
    prompts: Arc<Vec<ServerPrompt>>,
    problems: Arc<Vec<String>>,
    instructions: Option<Arc<str>>,
    /// Whether it failed last time, so that nobody waits for it.
    fails: bool,
}

#[derive(Clone)]
enum Phase {
    /// It starts when it is needed.
    Idle,
    Starting,
    Connected(Arc<Connection>),
    NeedsAuth,
    Failed {
        why: Arc<str>,
        since_ms: u64,
    },
    Stopped,
}

/// A server of a session.
pub struct Server {
    pub name: Arc<str>,
    config: Mutex<Arc<ServerConfig>>,
    known: watch::Sender<Known>,
    pub log: ServerLog,
    setup: Setup,
    task: Mutex<Option<RunningTask>>,
}

struct RunningTask {
    orders: mpsc::Sender<Control>,
    handle: JoinHandle<()>,
}

/// What a server needs from its host.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) ports: Ports,
    pub(crate) cache: ToolCache,
    pub(crate) idle: Duration,
    pub(crate) tokens: Option<Arc<dyn TokenSource>>,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, setup: Setup) -> Arc<Self> {
        Arc::new(Self {
            name: config.name.as_str().into(),
            config: Mutex::new(Arc::new(config)),
            known: watch::Sender::new(Known {
                phase: Phase::Idle,
                attempt: 0,
                tools: None,
                prompts: Arc::default(),
                problems: Arc::default(),
                instructions: None,
                fails: false,
            }),
            log: ServerLog::default(),
            setup,
            task: Mutex::default(),
        })
    }

    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.lock().clone()
    }

    /// Takes the tools that the server had last time, if nothing newer is known.
    pub(crate) fn remember(&self, tools: Vec<ServerTool>) {
        self.known.send_if_modified(|known| {
            let is_new = known.tools.is_none();
            if is_new {
                known.tools = Some(Arc::new(tools));
            }
            is_new
        });
    }

    /// Notes that the server could not be used last time.
    pub(crate) fn expect_failure(&self) {
        self.known.send_modify(|known| known.fails = true);
    }

    /// Returns its tools; `None` if they were never known.
    pub fn tools(&self) -> Option<Arc<Vec<ServerTool>>> {
        self.known.borrow().tools.clone()
    }

    /// Returns its prompts, as far as they are known.
    pub fn prompts(&self) -> Arc<Vec<ServerPrompt>> {
        self.known.borrow().prompts.clone()
    }

    pub fn report(&self) -> StatusReport {
        let known = self.known.borrow();
        let (status, error, since_ms) = match &known.phase {
            Phase::Idle | Phase::Starting => (ServerStatus::Pending, None, None),
            Phase::Connected(_) => (ServerStatus::Connected, None, None),
            Phase::NeedsAuth => (ServerStatus::NeedsAuth, None, None),
            Phase::Failed { why, since_ms } => {
                (ServerStatus::Failed, Some(why.to_string()), Some(*since_ms))
            }
            Phase::Stopped => (ServerStatus::Stopped, None, None),
        };
        StatusReport {
            status,
            error,
            since_ms,
            instructions: known.instructions.as_deref().map(str::to_owned),
            problems: known.problems.to_vec(),
            is_starting: matches!(known.phase, Phase::Starting),
        }
    }

    /// Starts the server unless it is there, starts already or was stopped. Does not wait.
    pub fn start(self: &Arc<Self>) {
        let is_wanted = matches!(self.known.borrow().phase, Phase::Idle);
        if is_wanted {
            self.order(Control::Start);
        }
    }

    /// Starts the server whatever it was before, with another configuration if one is given.
    pub fn restart(self: &Arc<Self>, config: Option<ServerConfig>) {
        if let Some(config) = config {
            *self.config.lock() = Arc::new(config);
        }
        self.order(Control::Restart);
    }

    /// Ends the server. It does not start again by itself.
    pub fn stop(self: &Arc<Self>) {
        if self.task.lock().is_some() {
            self.order(Control::Stop);
        } else {
            self.known.send_modify(|known| known.phase = Phase::Stopped);
        }
    }

    /// Ends the server and everything about it; nothing is left when this resolves.
    pub(crate) async fn close(&self) {
        let task = self.task.lock().take();
        if let Some(RunningTask { orders, handle }) = task {
            orders.send(Control::End).await.ok();
            drop(orders);
            if let Err(error) = handle.await {
                tracing::error!(server = %self.name, %error, "the task of a server crashed");
            }
        }
    }

    /// Gives an order to the task of the server, which begins if it does not run.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server keeps the handle and `close` waits for it"
    )]
    fn order(self: &Arc<Self>, order: Control) {
        let mut task = self.task.lock();
        if task.as_ref().is_none_or(|task| task.handle.is_finished()) {
            let (orders, waiting) = mpsc::channel(MOST_ORDERS);
            let life = Life::new(self, waiting);
            let handle = tokio::spawn(life.run());
            *task = Some(RunningTask { orders, handle });
            self.known.send_modify(|known| {
                if !matches!(order, Control::Stop | Control::End) {
                    known.phase = Phase::Starting;
                }
            });
        }
        if let Some(task) = task.as_ref() {
            let is_repeated = matches!(order, Control::Start | Control::Forgotten(_));
            // If so many wait, one of them says the same. The other places are for a stop or a restart.
            if !is_repeated || task.orders.capacity() > MOST_ORDERS / 2 {
                task.orders.try_send(order).ok();
            }
        }
    }

    /// Returns whether the server was never connected and has not failed: nobody knows its tools.
    pub fn is_new(&self) -> bool {
        let known = self.known.borrow();
        let starts = matches!(known.phase, Phase::Idle | Phase::Starting);
        starts && known.attempt <= 1 && known.tools.is_none()
    }

    /// Returns whether the server is connected.
    pub fn is_connected(&self) -> bool {
        matches!(self.known.borrow().phase, Phase::Connected(_))
    }

    /// Waits until the tools of the server are known or cannot be had.
    pub async fn tools_known(&self) {
        let mut known = self.known.subscribe();
        let settled = known.wait_for(|known| {
            let starts = matches!(known.phase, Phase::Starting | Phase::Idle);
            known.tools.is_some() || known.fails || !starts
        });
        // The server cannot go away while it is borrowed.
        settled.await.ok();
    }

    /// Starts the server if needed and waits until it is connected.
    pub async fn connected(self: &Arc<Self>) -> Result<(), CallError> {
        self.connection().await.map(|_| ())
    }

    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, CallError> {
        let limit = self.config().startup_timeout + WAIT_BEYOND_START;
        let waited = tokio::time::timeout(limit, self.wait_for_connection()).await;
        waited.unwrap_or_else(|_| {
            let why = "it did not start in time".to_owned();
            Err(CallError::NotConnected(why))
        })
    }

    async fn wait_for_connection(self: &Arc<Self>) -> Result<Arc<Connection>, CallError> {
        let mut known = self.known.subscribe();
        let mut asked_at = None;
        loop {
            let (phase, attempt) = {
                let known = known.borrow_and_update();
                (known.phase.clone(), known.attempt)
            };
            match (phase, asked_at) {
                (Phase::Connected(connection), _) if !connection.is_closed() => {
                    return Ok(connection);
                }
                (Phase::Stopped, _) => {
                    let why = "it was stopped; start it again first".to_owned();
                    return Err(CallError::NotConnected(why));
                }
                (Phase::NeedsAuth, _) => return Err(CallError::NeedsAuth),
                (Phase::Failed { why, .. }, Some(before)) if attempt > before => {
                    return Err(CallError::NotConnected(why.to_string()));
                }
                (Phase::Idle | Phase::Failed { .. }, None) => {
                    asked_at = Some(attempt);
                    self.order(Control::Start);
                }
                (Phase::Starting, None) => asked_at = Some(attempt.saturating_sub(1)),
                // A connection that has just ended is told by the task of the server, and so is what comes of
                // a start.
                (Phase::Connected(_), _)
                | (Phase::Idle | Phase::Starting | Phase::Failed { .. }, Some(_)) => {}
            }
            if known.changed().await.is_err() {
                return Err(CallError::Closed);
            }
        }
    }

    /// Calls a tool. Starts the server first if needed. The call may go on as a task.
    pub async fn call(self: &Arc<Self>, call: Call) -> Result<Called, CallError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let connection = tokio::select! {
                connection = self.connection() => connection?,
                () = call.cancel.cancelled() => return Err(CallError::Cancelled),
            };
            let called = match self.kind_of(&call.tool) {
                ToolKind::Call => connection.call(call.clone()).await,
                kind => connection
                    .use_resources(kind, &call)
                    .await
                    .map(Called::Result),
            };
            match called {
                Err(CallError::NotSent) if tries < MOST_TRIES => connection.ended().await,
                Err(CallError::Forgotten) => {
                    self.connect_anew(&connection);
                    return Err(CallError::Forgotten);
                }
                called => return called,
            }
        }
    }

    /// Lets the server be greeted again, which has forgotten this connection.
    pub(crate) fn connect_anew(self: &Arc<Self>, forgotten: &Arc<Connection>) {
        let attempt = {
            let known = self.known.borrow();
            let Phase::Connected(connection) = &known.phase else {
                return;
            };
            // Others were told the same, and there is a newer connection already.
            Arc::ptr_eq(connection, forgotten).then_some(known.attempt)
        };
        if let Some(attempt) = attempt {
            self.order(Control::Forgotten(attempt));
        }
    }

    fn kind_of(&self, tool: &str) -> ToolKind {
        let tools = self.tools();
        let mut tools = tools.iter().flat_map(|tools| tools.iter());
        tools
            .find(|it| it.name == tool)
            .map_or(ToolKind::Call, |it| it.kind)
    }

    /// Asks the server for its tools.
    pub async fn list_tools(self: &Arc<Self>) -> Result<Vec<ServerTool>, CallError> {
        let connection = self.connection().await?;
        let (mut tools, _) = connection.list_tools(&self.config()).await?;
        tools.retain(|tool| tool.kind == ToolKind::Call);
        Ok(tools)
    }

    /// Sends a request to the server if it is connected.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let phase = self.known.borrow().phase.clone();
        let Phase::Connected(connection) = phase else {
            let why = format!("MCP server {} is not connected", self.name);
            return Err(CallError::NotConnected(why));
        };
        let timeout = self.config().call_timeout;
        connection.request_by_name(method, params, timeout).await
    }
}
