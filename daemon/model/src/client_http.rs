//! Model requests carried by a connected client: the request goes out over its connection, the
//! response comes back as requests of its own.
//!
//! The daemon holds one [`ClientHttp`] for a client that asked to carry requests, takes a carrier
//! from it for each session, and passes in what the client answers. The client itself is a
//! [`CarryingClient`], which the daemon implements. Every exchange has a bounded queue, so that a
//! client which is faster than the reader waits. Dropping an exchange tells the client to stop.
//! Nothing here knows a vendor, a key, a retry or a connection.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use loopd_proto::params::inference::{
    Headers, RequestChunk, RequestStart, ResponseChunk, ResponseStart,
};
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;

use super::error::ProviderError;
use super::http::{HttpCarrier, HttpMethod, HttpRequest, HttpResponse};

/// How many pieces of one response may wait for their reader.
const WAITING_PIECES: usize = 32;
/// How much of a request's body goes into one message, in bytes.
const PIECE_OF_BODY: usize = 1024 * 1024;
/// How many requests to stop may be unanswered; older ones are forgotten.
const WITHDRAWALS: usize = 32;

/// The way to a client that carries requests.
///
/// Both messages are queued by the call. The future resolves when the client has taken the message;
/// dropping it before that takes the message back.
pub trait CarryingClient: Send + Sync {
    /// Sends the head of a request.
    fn start_http(&self, start: &RequestStart<'_>) -> Taking;

    /// Sends a piece of a request's body, its end, or its withdrawal.
    fn send_http_chunk(&self, chunk: &RequestChunk<'_>) -> Taking;

    fn is_gone(&self) -> bool;

    /// Resolves when the client is gone.
    fn gone(&self) -> BoxFuture<'static, ()>;
}

/// The wait until a client has taken a message.
pub type Taking = BoxFuture<'static, Result<(), NotTaken>>;

/// Why a client did not take a message.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    #[error("the client is gone")]
    Gone,
    #[error("{0}")]
    Refused(String),
}

/// A client that carries the requests of its launch.
pub struct ClientHttp {
    /// None for a client that has yet to come back.
    client: Option<Arc<dyn CarryingClient>>,
    /// Tells the requests of this client from those of others.
    prefix: String,
    exchanges: Mutex<HashMap<String, mpsc::Sender<Piece>>>,
    withdrawals: Mutex<VecDeque<Taking>>,
    next: AtomicU64,
}

/// What a client sends back.
#[derive(Debug)]
enum Piece {
    Head { status: u16, headers: Headers },
    Body(Bytes),
    End,
    Failed(ProviderError),
}

/// The session and agent that requests are made for, which the client is told.
#[derive(Debug, Clone)]
pub struct RequestOrigin {
    pub session: String,
    /// The sub-agent that asks; none for the main agent.
    pub agent: Option<SubagentOrigin>,
}

/// The sub-agent that requests are made for, and the agent that started it.
#[derive(Debug, Clone)]
pub struct SubagentOrigin {
    pub id: String,
    pub parent: String,
}

impl ClientHttp {
    pub fn new(client: Arc<dyn CarryingClient>, prefix: String) -> Self {
        Self {
            client: Some(client),
            prefix,
            ..Self::awaiting()
        }
    }

    /// Stands for a client that has yet to come back; until then every request fails.
    pub fn awaiting() -> Self {
        Self {
            client: None,
            prefix: String::new(),
            exchanges: Mutex::default(),
            withdrawals: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    pub fn is_gone(&self) -> bool {
        self.client.as_ref().is_none_or(|client| client.is_gone())
    }

    /// A carrier for the requests of one session, or of nobody in particular.
    pub fn carrier(self: Arc<Self>, origin: Option<RequestOrigin>) -> ClientCarrier {
        ClientCarrier { http: self, origin }
    }

    /// Takes the head of a response; tells whether anybody waits for it.
    pub async fn take_head(&self, start: ResponseStart) -> bool {
        let piece = Piece::Head {
            status: start.status,
            headers: start.headers,
        };
        self.hand_in(&start.request_id, piece).await
    }

    /// Takes a piece of a response; tells whether anybody waits for it.
    pub async fn take_chunk(&self, chunk: ResponseChunk) -> bool {
        let id = chunk.request_id;
        if let Some(error) = chunk.error {
            let error = match error.code.as_deref() {
                Some("cancelled") => ProviderError::Cancelled,
                _ => ProviderError::network(format!(
                    "the client could not make the request: {}",
                    error.message
                )),
            };
            return self.hand_in(&id, Piece::Failed(error)).await;
        }
        if !chunk.data.is_empty() {
            let piece = if chunk.binary {
                match STANDARD.decode(&chunk.data) {
                    Ok(bytes) => Piece::Body(bytes.into()),
                    Err(failure) => Piece::Failed(ProviderError::malformed(format!(
                        "a piece that the client sent is not base64: {failure}"
                    ))),
                }
            } else {
                Piece::Body(chunk.data.into())
            };
            if !self.hand_in(&id, piece).await {
                return false;
            }
        }
        !chunk.end || self.hand_in(&id, Piece::End).await
    }

    async fn hand_in(&self, id: &str, piece: Piece) -> bool {
        let Some(reader) = self.exchanges.lock().get(id).cloned() else {
            return false;
        };
        reader.send(piece).await.is_ok()
    }

    fn begin(self: &Arc<Self>) -> Result<Exchange, ProviderError> {
        let client = self.client.clone().ok_or_else(gone)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{number}", self.prefix);
        let (sender, pieces) = mpsc::channel(WAITING_PIECES);
        self.exchanges.lock().insert(id.clone(), sender);
        Ok(Exchange {
            http: self.clone(),
            gone: client.gone(),
            client,
            id,
            pieces,
            over: false,
        })
    }
}

/// Carries requests over a client's connection.
#[derive(Clone)]
pub struct ClientCarrier {
    http: Arc<ClientHttp>,
    origin: Option<RequestOrigin>,
}

impl HttpCarrier for ClientCarrier {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ProviderError>> {
        async move {
            let mut exchange = self.http.begin()?;
            let origin = match request.method {
                HttpMethod::Post => self.origin.as_ref(),
                HttpMethod::Get | HttpMethod::Delete => None,
            };
            let session = origin.map(|origin| origin.session.as_str());
            let agent = origin.and_then(|origin| origin.agent.as_ref());
            let start = RequestStart {
                request_id: &exchange.id,
                method: match request.method {
                    HttpMethod::Get => "GET",
                    HttpMethod::Post => "POST",
                    HttpMethod::Delete => "DELETE",
                },
                url: request.url.as_str(),
                headers: &header_lists(&request.headers),
                transport: "http",
                session_id: session,
                agent_id: agent.map(|agent| agent.id.as_str()).or(session),
                parent_agent_id: agent.map(|agent| agent.parent.as_str()),
                interaction_type: origin.map(|_| match agent {
                    Some(_) => "conversation-subagent",
                    None => "conversation-agent",
                }),
            };
            taken(exchange.client.start_http(&start)).await?;
            exchange.send_body(&request.body).await?;
            exchange.head().await
        }
        .boxed()
    }
}

async fn taken(taking: Taking) -> Result<(), ProviderError> {
    taking.await.map_err(|error| match error {
        NotTaken::Gone => gone(),
        NotTaken::Refused(why) => {
            ProviderError::network(format!("the client did not take the request: {why}"))
        }
    })
}

/// Cuts a text into pieces, never inside a letter.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = PIECE_OF_BODY.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at_checked(end)?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// One request on its way; dropping it withdraws it.
struct Exchange {
    http: Arc<ClientHttp>,
    client: Arc<dyn CarryingClient>,
    gone: BoxFuture<'static, ()>,
    id: String,
    pieces: mpsc::Receiver<Piece>,
    over: bool,
}

impl Exchange {
    async fn send_body(&mut self, body: &Bytes) -> Result<(), ProviderError> {
        let text = std::str::from_utf8(body)
            .map_err(|_| ProviderError::misconfigured("a request's body is not text"))?;
        let mut pieces = pieces(text).peekable();
        loop {
            let data = pieces.next().unwrap_or_default();
            let end = pieces.peek().is_none();
            let chunk = RequestChunk {
                request_id: &self.id,
                data,
                binary: false,
                end,
                cancel: false,
                cancel_reason: None,
            };
            taken(self.client.send_http_chunk(&chunk)).await?;
            if end {
                return Ok(());
            }
        }
    }

    async fn head(mut self) -> Result<HttpResponse, ProviderError> {
        let (status, headers) = match self.next().await {
            Some(Piece::Head { status, headers }) => (status, header_map(&headers)),
            Some(Piece::Failed(error)) => return Err(error),
            Some(Piece::Body(_) | Piece::End) => {
                return Err(ProviderError::malformed(
                    "the client sent a body before its head",
                ));
            }
            None => return Err(gone()),
        };
        // A client whose request failed says so after the head of a made-up error response.
        let mut first = None;
        if status >= 400 {
            match self.next().await {
                Some(Piece::Failed(error)) => return Err(error),
                Some(piece) => first = Some(piece),
                None => return Err(gone()),
            }
        }
        Ok(HttpResponse {
            status,
            headers,
            body: self.body(first).boxed(),
        })
    }

    fn body(
        self,
        first: Option<Piece>,
    ) -> impl futures::Stream<Item = Result<Bytes, ProviderError>> {
        stream::unfold(Some((self, first)), |state| async move {
            let (mut exchange, first) = state?;
            let piece = match first {
                Some(piece) => Some(piece),
                None => exchange.next().await,
            };
            match piece {
                Some(Piece::Body(bytes)) => Some((Ok(bytes), Some((exchange, None)))),
                Some(Piece::End) => None,
                Some(Piece::Head { .. }) => {
                    let error = ProviderError::malformed("the client sent a second head");
                    Some((Err(error), None))
                }
                Some(Piece::Failed(ProviderError::Network { detail })) => {
                    Some((Err(ProviderError::Truncated { detail }), None))
                }
                Some(Piece::Failed(error)) => Some((Err(error), None)),
                None => {
                    let error = ProviderError::truncated("the client that carried it is gone");
                    Some((Err(error), None))
                }
            }
        })
    }

    /// The next piece; none when the client is gone.
    async fn next(&mut self) -> Option<Piece> {
        if self.over {
            return None;
        }
        let piece = tokio::select! {
            biased;
            piece = self.pieces.recv() => piece,
            () = &mut self.gone => None,
        };
        if matches!(piece, Some(Piece::End | Piece::Failed(_)) | None) {
            self.over = true;
        }
        piece
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.http.exchanges.lock().remove(&self.id);
        if self.over {
            return;
        }
        let taking = self.client.send_http_chunk(&RequestChunk {
            request_id: &self.id,
            data: "",
            binary: false,
            end: true,
            cancel: true,
            cancel_reason: Some("the request is no longer wanted"),
        });
        // The client's answer does not matter, but dropping the wait for it would take the message
        // back.
        let mut withdrawals = self.http.withdrawals.lock();
        withdrawals.push_back(taking);
        if withdrawals.len() > WITHDRAWALS {
            withdrawals.pop_front();
        }
    }
}

fn header_lists(headers: &HeaderMap) -> Headers {
    let mut lists = Headers::new();
    for (name, value) in headers {
        lists
            .entry(name.as_str().to_owned())
            .or_default()
            .push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    lists
}

/// Leaves out headers that are not valid: none of them matters to us.
fn header_map(lists: &Headers) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, values) in lists {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        for value in values {
            if let Ok(value) = HeaderValue::from_str(value) {
                map.append(name.clone(), value);
            }
        }
    }
    map
}

fn gone() -> ProviderError {
    ProviderError::network("the client that carries model requests is gone; connect it again")
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
