//! What this crate needs from outside: processes, HTTP, and the session that its servers work for.
//!
//! The daemon implements these traits. This crate starts no process and opens no connection by itself,
//! so that every process has an owner that can end it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::pushed::PushedMessage;

/// A program to start. It is started as it is named here, never through a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSpec {
    pub program: String,
    pub args: Vec<String>,
    /// The complete environment.
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// The text in the process list.
    pub label: String,
}

/// Starts the programs of servers.
pub trait Launcher: Send + Sync + 'static {
    /// Starts a program. The error says why it could not be started.
    fn launch(&self, spec: ProgramSpec) -> BoxFuture<'_, Result<Box<dyn ServerProcess>, String>>;
}

/// The streams of a program.
pub struct ServerPipes {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
}

/// A program that was started.
pub trait ServerProcess: Send + Sync {
    /// Returns the streams. They are given once.
    fn pipes(&mut self) -> Option<ServerPipes>;

    /// Waits until the program has ended, and says how.
    fn exit(&self) -> BoxFuture<'_, String>;

    /// Ends the program and everything that it started; all are gone when this resolves.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// The methods that servers are called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Post,
    Delete,
}

/// A request to a server.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: String,
    /// May hold secrets, so that the request has no `Debug`.
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

/// A response whose body is still on its way.
pub struct HttpResponse {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: BoxStream<'static, Result<Bytes, HttpFailure>>,
}

/// Why an exchange failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct HttpFailure(pub String);

/// Carries requests to servers. Dropping the future or the body ends the exchange.
pub trait HttpPort: Send + Sync + 'static {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, HttpFailure>>;
}

/// Why a token is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthReason {
    /// There is none yet.
    Initial,
    /// The server rejected the one that was sent.
    Refresh,
    /// The one that was sent does not cover what was asked for.
    Upscope,
}

/// What a server said when it refused a request for want of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthChallenge {
    pub reason: AuthReason,
    /// The token that was refused.
    pub rejected: Option<String>,
    pub status: u16,
    /// The header `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
    /// The headers and the beginning of the body of the answer.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// A person has to log in.
    #[error("{0}")]
    NeedsLogin(String),
    /// Whoever gives tokens cannot be reached now. The login is still valid.
    #[error("{0}")]
    Passing(String),
}

/// Provides the tokens of one server.
pub trait TokenSource: Send + Sync + 'static {
    /// Returns the token to send now. One that has ended by the clock is renewed first.
    fn current(&self) -> BoxFuture<'_, Option<String>>;

    /// Gets a token in the place of the one that was refused; the error says why there is none.
    fn obtain(&self, challenge: AuthChallenge) -> BoxFuture<'_, Result<String, TokenError>>;

    /// Waits until there is another token than when `obtain` last failed.
    fn renewed(&self) -> BoxFuture<'_, ()>;
}

/// A question of a server to a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// A form, described by a JSON schema.
    Form { message: String, schema: Value },
    /// A page to visit.
    Url {
        message: String,
        url: String,
        id: String,
    },
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    Accepted(Option<Value>),
    Declined,
    Cancelled,
}

/// Something that a server or its connection reports.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNews {
    /// Its status, its tools or its error are others than before.
    Status,
    /// It cannot be used, and why. It may be started again at once.
    Failed(String),
    ToolsChanged,
    PromptsChanged,
    ResourcesChanged,
    /// A resource that somebody subscribed to has changed.
    ResourceUpdated(String),
    /// It pushes a message, which its entry allows.
    Pushed(Box<PushedMessage>),
    /// A line of its log.
    Log {
        level: String,
        text: String,
    },
}

/// What the tool call that a question belongs to is, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRef(pub Option<String>);

/// The session that the servers of a host work for.
pub trait HostSession: Send + Sync + 'static {
    /// Asks a person. A session without people declines.
    fn elicit(
        &self,
        server: &str,
        call: CallRef,
        asked: Elicitation,
    ) -> BoxFuture<'_, ElicitationAnswer>;

    /// Lets the model of the session answer. `request` is `sampling/createMessage`, and so is the result.
    fn sample(
        &self,
        server: &str,
        call: CallRef,
        request: Value,
    ) -> BoxFuture<'_, Result<Value, String>>;

    /// Returns the time in milliseconds since 1970.
    fn now_ms(&self) -> u64;

    /// Returns the directories that the session works in.
    fn roots(&self) -> Vec<PathBuf>;

    /// Learns that the servers are others than before. It must not block.
    fn servers_changed(&self);

    /// Takes a report. It must not block.
    fn news(&self, server: &str, news: ServerNews);
}

/// Everything that a host needs from outside.
#[derive(Clone)]
pub struct Ports {
    pub launcher: Arc<dyn Launcher>,
    pub http: Arc<dyn HttpPort>,
    pub session: Arc<dyn HostSession>,
}
