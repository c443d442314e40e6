//! One connection to a server: requests with timeouts, cancellation and progress.

mod lists;
mod open;
mod resources;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::visible::visible;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, ErrorData, InputRequest,
    InputRequests, JsonObject, RequestMetaObject, ServerPeerInfo,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::open::{ConnectError, Connected, END_SEEN_WITHIN, connect, last_words};
use crate::asking::Asking;
use crate::calls::{CallGuard, Calls, Progress};
use crate::config::LONGEST_CALL;
use crate::handler::Handler;
use crate::http::Refused;
use crate::port::CallRef;
use crate::tap::Tap;
use crate::task::{Called, LONGEST_TASK};
use crate::tools::TaskSupport;

/// How often a server may ask for more input before it answers a call.
pub(crate) const MOST_ROUNDS: usize = 10;
/// The longest text about the use of a server.
const LONGEST_INSTRUCTIONS: usize = 8_000;
/// How many things it may ask for at once.
const MOST_ASKED: usize = 16;
/// How long telling a server that a request is cancelled may take.
const CANCELLED_WITHIN: Duration = Duration::from_secs(1);

/// A call of a tool.
#[derive(Clone)]
pub struct Call {
    /// The name of the tool on its server.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// The member `_meta` of the request.
    pub meta: Option<Map<String, Value>>,
    /// What the call belongs to.
    pub label: CallRef,
    pub timeout: Duration,
    /// Takes reports of progress.
    pub progress: Option<mpsc::Sender<Progress>>,
    pub cancel: CancellationToken,
    /// Whether the tool may or must be called as a task.
    pub task: TaskSupport,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("the server is not connected: {0}")]
    NotConnected(String),
    #[error("the server answered nothing for {} s and was told to stop", .0.as_secs_f64())]
    Timeout(Duration),
    #[error("{message} (error {code})")]
    Refused { code: i32, message: String },
    /// The request never left, so that it can be sent on another connection.
    #[error("the connection had ended before the request was sent; nothing was carried out")]
    NotSent,
    /// It is not known whether the request was carried out.
    #[error("the connection ended before the server answered; what it did until then is unknown")]
    Closed,
    /// The server does not know the connection any more. The request was not carried out.
    #[error("the server has forgotten this connection; nothing was carried out")]
    Forgotten,
    #[error("the server wants a login")]
    NeedsAuth,
    #[error("the call was cancelled")]
    Cancelled,
    #[error("the server cancelled it")]
    CancelledByServer,
    /// The server has lost a task, or never had it.
    #[error("the server does not know the task any more: {0}")]
    TaskUnknown(String),
    #[error("the server gave no answer that can be understood: {0}")]
    Unreadable(String),
}

/// A connection to a server.
pub(crate) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: Arc<Handler>,
    pub(super) calls: Arc<Calls>,
    pub(super) tap: Arc<Tap>,
    pub(super) refused: Refused,
    pub(super) asking: Asking,
    /// What the server said about itself.
    pub(super) greeting: Value,
    /// Cancelled when the connection has ended.
    pub(super) closed: CancellationToken,
}

/// How a request is sent.
struct Order<'a> {
    timeout: Duration,
    meta: Option<Map<String, Value>>,
    progress: Option<&'a mpsc::Sender<Progress>>,
    cancel: &'a CancellationToken,
}

impl<'a> Order<'a> {
    fn plain(timeout: Duration, cancel: &'a CancellationToken) -> Self {
        Self {
            timeout,
            meta: None,
            progress: None,
            cancel,
        }
    }
}

impl Connection {
    /// Returns what the server said about itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns what the server told models about its use.
    pub(crate) fn instructions(&self) -> Option<String> {
        let info = self.info()?;
        let said = info.instructions.as_deref()?;
        Some(visible(said).chars().take(LONGEST_INSTRUCTIONS).collect())
    }

    /// Returns whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Waits until the connection has ended.
    pub(crate) async fn ended(&self) {
        self.closed.cancelled().await;
    }

    /// Waits until nothing is asked of the server.
    pub(crate) async fn rest(&self) {
        self.calls.rest().await;
    }

    /// Returns since when nothing is asked of the server; `None` if something is.
    pub(crate) fn rests_since(&self) -> Option<Instant> {
        self.calls.rests_since()
    }

    /// Returns whether the server has this capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        let at = self
            .greeting
            .pointer(&format!("/capabilities/{capability}"));
        at.is_some_and(|value| !value.is_null())
    }

    /// Sends a request that nobody cancels, and returns its result as the server sent it.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        let mut guard = self.calls.begin(CallRef::default());
        let cancel = CancellationToken::new();
        self.exchange(request, &mut guard, &Order::plain(timeout, &cancel))
            .await
    }

    /// Sends a request by its method.
    pub(crate) async fn request_by_name(
        &self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<Value, CallError> {
        self.request(request_of(method, params), timeout).await
    }

    /// Calls a tool, and answers what the server asks for meanwhile. The call may go on as a task.
    pub(crate) async fn call(self: &Arc<Self>, call: Call) -> Result<Called, CallError> {
        let mut guard = self.calls.begin(call.label.clone());
        let wants_task = call.task != TaskSupport::Forbidden && self.has_tasks();
        let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        let order = Order {
            timeout: call.timeout,
            meta: call.meta,
            progress: call.progress.as_ref(),
            cancel: &call.cancel,
        };
        for round in 0..MOST_ROUNDS {
            let request = if wants_task {
                task_request(&params)?
            } else {
                ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
            };
            let result = self.exchange(request, &mut guard, &order).await;
            let result = result.map_err(|error| match error {
                // The server has begun with the call in the round before.
                CallError::NotSent if round > 0 => CallError::Closed,
                error => error,
            })?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return self.called(&result, guard);
            }
            let asked: InputRequests = result
                .get("inputRequests")
                .map(|asked| serde_json::from_value(asked.clone()))
                .transpose()
                .map_err(|error| CallError::Unreadable(error.to_string()))?
                .unwrap_or_default();
            params.input_responses = Some(self.answers(asked).await?);
            let state = result.get("requestState").and_then(Value::as_str);
            params.request_state = state.map(str::to_owned);
        }
        let why = format!("it asked for more input {MOST_ROUNDS} times");
        Err(CallError::Unreadable(why))
    }

    /// Answers what a server wants to know before it goes on with a call.
    pub(crate) async fn answers(
        &self,
        asked: InputRequests,
    ) -> Result<BTreeMap<String, Value>, CallError> {
        if asked.len() > MOST_ASKED {
            let why = format!("it asked for more than {MOST_ASKED} things at once");
            return Err(CallError::Unreadable(why));
        }
        let mut answers = BTreeMap::new();
        for (key, request) in asked {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(self.handler.elicit(request.params).await)
                }
                InputRequest::CreateMessage(request) => {
                    let sampled = self.handler.sample(request.params).await;
                    serde_json::to_value(sampled.map_err(refused)?)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(self.handler.roots()),
                _ => {
                    let why = "it asked for a kind of input that is not known";
                    return Err(CallError::Unreadable(why.to_owned()));
                }
            };
            answers.insert(key, answer.unwrap_or_default());
        }
        Ok(answers)
    }

    /// Sends a request and waits for its result. The time begins anew with each report of progress.
    async fn exchange(
        &self,
        request: ClientRequest,
        guard: &mut CallGuard,
        order: &Order<'_>,
    ) -> Result<Value, CallError> {
        let mut options = PeerRequestOptions::no_options();
        if let Some(meta) = &order.meta {
            let meta: JsonObject = meta.clone();
            options = options.with_meta(RequestMetaObject::from(meta));
        }
        let sent = self.peer.send_request_with_option(request, options);
        let sent = tokio::time::timeout(order.timeout, sent).await;
        let sent = sent.map_err(|_| CallError::Timeout(order.timeout))?;
        let mut handle = sent.map_err(|error| match error {
            ServiceError::TransportClosed => CallError::NotSent,
            error => self.failure(error),
        })?;
        let _forgotten = self.tap.guard(&handle.id);
        let mut reports = guard.listen(handle.progress_token.clone());
        let end = Instant::now() + LONGEST_CALL;
        let mut due = Instant::now() + order.timeout;
        loop {
            tokio::select! {
                response = &mut handle.rx => {
                    let raw = self.tap.take(&handle.id);
                    let response = response.unwrap_or(Err(ServiceError::TransportClosed));
                    let response = response.map_err(|error| match self.failure(error) {
                        CallError::Closed if !self.tap.may_have_left(&handle.id) => CallError::NotSent,
                        failure => failure,
                    })?;
                    return raw
                        .map_or_else(|| serde_json::to_value(&response), Ok)
                        .map_err(|error| CallError::Unreadable(error.to_string()));
                }
                Some(report) = reports.recv() => {
                    due = Instant::now() + order.timeout;
                    if let Some(progress) = order.progress {
                        // A report that does not fit is dropped: the next one says more.
                        progress.try_send(report).ok();
                    }
                }
                () = tokio::time::sleep_until(due.min(end)) => {
                    if self.asking.is_open() && Instant::now() < end {
                        // The server waits for a person.
                        due = Instant::now() + order.timeout;
                        continue;
                    }
                    self.cancel(handle, "the request took too long").await;
                    return Err(CallError::Timeout(order.timeout));
                }
                () = order.cancel.cancelled() => {
                    self.cancel(handle, "the call was cancelled").await;
                    return Err(CallError::Cancelled);
                }
            }
        }
    }

    /// Tells the server that nobody waits for a request any more.
    async fn cancel(&self, handle: RequestHandle<RoleClient>, why: &str) {
        let told = handle.cancel(Some(why.to_owned()));
        if let Ok(Err(error)) = tokio::time::timeout(CANCELLED_WITHIN, told).await {
            tracing::debug!(%error, "a server could not be told that a request is cancelled");
        }
    }

    fn failure(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => refused(error),
            ServiceError::TransportClosed => CallError::Closed,
            ServiceError::Timeout { timeout } => CallError::Timeout(timeout),
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            ServiceError::TransportSend(_) if self.refused.get() => CallError::NeedsAuth,
            ServiceError::TransportSend(error) => {
                let text = error.to_string();
                // The library does not say it otherwise.
                if text.contains("Session expired") {
                    CallError::Forgotten
                } else {
                    CallError::NotConnected(text)
                }
            }
            other => CallError::Unreadable(other.to_string()),
        }
    }
}

/// Returns a request by its method, whose result is not decoded.
fn request_of(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// Returns the request for a call as a task, which the library does not know.
fn task_request(params: &CallToolRequestParams) -> Result<ClientRequest, CallError> {
    let mut params =
        serde_json::to_value(params).map_err(|error| CallError::Unreadable(error.to_string()))?;
    if let Some(params) = params.as_object_mut() {
        let ttl = u64::try_from(LONGEST_TASK.as_millis()).unwrap_or(u64::MAX);
        params.insert("task".to_owned(), json!({"ttl": ttl}));
    }
    let request = CustomRequest::new("tools/call", Some(params));
    Ok(ClientRequest::CustomRequest(request))
}

fn refused(error: ErrorData) -> CallError {
    CallError::Refused {
        code: error.code.0,
        message: error.message.into_owned(),
    }
}
