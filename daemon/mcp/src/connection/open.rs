//! Starts or reaches a server and greets it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, serve_client_with_lifecycle};
use tokio::io::AsyncRead;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Connection;
use crate::asking::Asking;
use crate::config::{Endpoint, Lifecycle, Program, ServerConfig, Transport};
use crate::handler::Handler;
use crate::http::{McpHttp, Refused};
use crate::log::ServerLog;
use crate::port::{Ports, ProgramSpec, ServerProcess, TokenSource};
use crate::stdio::StdioTransport;
use crate::tap::Tap;

/// How long the end of a program may come after the end of its output.
pub(crate) const END_SEEN_WITHIN: Duration = Duration::from_secs(2);
/// How long what a program wrote last may be on its way after its end.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// Why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// It wants a login.
    NeedsAuth,
    /// Nobody wants the connection any more.
    Cancelled,
    Failed(String),
}

/// A server that was greeted, and what has to be looked after while it is connected.
pub(crate) struct Connected {
    pub(crate) connection: Arc<Connection>,
    /// Ends the connection.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the connection has ended.
    pub(crate) closed: CancellationToken,
    pub(crate) process: Option<Box<dyn ServerProcess>>,
    pub(crate) lists_changed: Arc<Notify>,
    /// Reads the standard error of the program.
    pub(crate) errors: Option<AbortOnDropHandle<()>>,
}

/// Starts or reaches a server and greets it. Nothing of it is left when this fails.
pub(crate) async fn connect(
    config: &ServerConfig,
    ports: &Ports,
    tokens: Option<Arc<dyn TokenSource>>,
    log: &ServerLog,
    cancel: &CancellationToken,
) -> Result<Connected, ConnectError> {
    let opening = Opening {
        config,
        ports,
        log,
        tap: Arc::default(),
        refused: Refused::default(),
        lists_changed: Arc::default(),
        asking: Asking::default(),
        closed: CancellationToken::new(),
    };
    let asking = opening.asking.clone();
    match &config.transport {
        Transport::Stdio(program) => opening.start(program, cancel).await,
        Transport::Http(endpoint) => {
            let greeted = opening.reach(endpoint, tokens);
            let limit = config.startup_timeout;
            tokio::select! {
                greeted = asking.within(limit, greeted) => {
                    greeted.unwrap_or_else(|| Err(too_slow(config)))
                }
                () = cancel.cancelled() => Err(ConnectError::Cancelled),
            }
        }
    }
}

fn too_slow(config: &ServerConfig) -> ConnectError {
    ConnectError::Failed(format!(
        "it did not answer within {} s after its start",
        config.startup_timeout.as_secs_f64()
    ))
}

/// What belongs to one attempt.
struct Opening<'a> {
    config: &'a ServerConfig,
    ports: &'a Ports,
    log: &'a ServerLog,
    tap: Arc<Tap>,
    refused: Refused,
    lists_changed: Arc<Notify>,
    asking: Asking,
    closed: CancellationToken,
}

impl Opening<'_> {
    async fn start(
        self,
        program: &Program,
        cancel: &CancellationToken,
    ) -> Result<Connected, ConnectError> {
        let spec = ProgramSpec {
            program: program.command.clone(),
            args: program.args.clone(),
            env: program.env.clone(),
            cwd: program.cwd.clone(),
            label: format!("MCP server {}", self.config.name),
        };
        let launched = self.ports.launcher.launch(spec).await;
        let mut process = launched.map_err(ConnectError::Failed)?;
        let Some(pipes) = process.pipes() else {
            process.end().await;
            let why = "its input and output cannot be used".to_owned();
            return Err(ConnectError::Failed(why));
        };
        let mut errors = read_errors(self.log, pipes.errors);
        let (tap, log) = (self.tap.clone(), self.log.clone());
        let transport = StdioTransport::new(pipes.input, pipes.output, tap, log);
        let limit = self.config.startup_timeout;
        let greeted = async {
            let lifecycle = lifecycle(self.config.lifecycle);
            serve_client_with_lifecycle(self.handler(), transport, lifecycle).await
        };
        let greeted = tokio::select! {
            greeted = tokio::time::timeout(limit, greeted) => match greeted {
                Ok(Ok(service)) => Ok(service),
                Ok(Err(error)) => {
                    // A program that closes its output mostly ends, and its end says more.
                    match tokio::time::timeout(END_SEEN_WITHIN, process.exit()).await {
                        Ok(how) => {
                            last_words(&mut errors).await;
                            process.end().await;
                            return Err(ConnectError::Failed(self.ended(&how)));
                        }
                        Err(_) => Err(self.why(&error)),
                    }
                }
                Err(_) => Err(too_slow(self.config)),
            },
            how = process.exit() => {
                // What it wrote last says why.
                last_words(&mut errors).await;
                process.end().await;
                return Err(ConnectError::Failed(self.ended(&how)));
            }
            () = cancel.cancelled() => Err(ConnectError::Cancelled),
        };
        match greeted {
            Ok(service) => Ok(self.connected(service, Some(process), Some(errors))),
            Err(error) => {
                process.end().await;
                Err(error)
            }
        }
    }

    async fn reach(
        self,
        endpoint: &Endpoint,
        tokens: Option<Arc<dyn TokenSource>>,
    ) -> Result<Connected, ConnectError> {
        let mut headers = HashMap::new();
        for (name, value) in &endpoint.headers {
            let wrong = |what: &str| {
                ConnectError::Failed(format!("the {what} of its header `{name}` is not valid"))
            };
            let header = HeaderName::try_from(name.as_str()).map_err(|_| wrong("name"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong("value"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let client = McpHttp {
            port: self.ports.http.clone(),
            tap: self.tap.clone(),
            tokens,
            refused: self.refused.clone(),
            asking: self.asking.clone(),
        };
        let mut settings = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
        settings.custom_headers = headers;
        // A request is never sent twice: a server that forgot the connection is greeted anew.
        settings.reinit_on_expired_session = false;
        let transport = StreamableHttpClientTransport::with_client(client, settings);
        let lifecycle = lifecycle(self.config.lifecycle);
        let greeted = serve_client_with_lifecycle(self.handler(), transport, lifecycle).await;
        match greeted {
            Ok(service) => Ok(self.connected(service, None, None)),
            Err(error) => Err(self.why(&error)),
        }
    }

    fn handler(&self) -> Arc<Handler> {
        Arc::new(Handler {
            server: self.config.name.as_str().into(),
            session: self.ports.session.clone(),
            log: self.log.clone(),
            calls: Arc::default(),
            asking: self.asking.clone(),
            closed: self.closed.clone(),
            lists_changed: self.lists_changed.clone(),
            tasks_changed: Notify::new(),
            may_push: self.config.may_push,
            push_limit: Mutex::default(),
        })
    }

    fn connected(
        self,
        service: RunningService<RoleClient, Arc<Handler>>,
        process: Option<Box<dyn ServerProcess>>,
        errors: Option<AbortOnDropHandle<()>>,
    ) -> Connected {
        let handler = service.service().clone();
        let connection = Arc::new(Connection {
            peer: service.peer().clone(),
            calls: handler.calls.clone(),
            handler,
            greeting: self.tap.take_greeting().unwrap_or_default(),
            tap: self.tap,
            refused: self.refused,
            asking: self.asking,
            closed: self.closed.clone(),
        });
        let (stop, closed) = (CancellationToken::new(), self.closed.clone());
        let ends = service.cancellation_token();
        let (stopped, ended) = (stop.clone(), closed.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with the connection, which `stop` ends"
        )]
        tokio::spawn(async move {
            let waiting = service.waiting();
            tokio::pin!(waiting);
            tokio::select! {
                _ = &mut waiting => {}
                () = stopped.cancelled() => {
                    ends.cancel();
                    if let Err(error) = waiting.await {
                        tracing::error!(%error, "the connection to a server crashed");
                    }
                }
            }
            ended.cancel();
        });
        Connected {
            connection,
            stop,
            closed,
            process,
            lists_changed: self.lists_changed,
            errors,
        }
    }

    fn why(&self, error: &ClientInitializeError) -> ConnectError {
        if self.refused.get() {
            return ConnectError::NeedsAuth;
        }
        ConnectError::Failed(match error {
            ClientInitializeError::ConnectionClosed(_) => self.ended("it closed its output"),
            ClientInitializeError::JsonRpcError(error) => {
                format!("it refused the connection: {}", error.message)
            }
            other => other.to_string(),
        })
    }

    /// Says how a program ended, with the last that it wrote.
    fn ended(&self, how: &str) -> String {
        match self.log.last() {
            Some(line) => format!("{how}: {line}"),
            None => how.to_owned(),
        }
    }
}

/// Reads what a program writes to its standard error, as long as the handle lives.
#[expect(clippy::disallowed_methods, reason = "the caller keeps the handle")]
fn read_errors(
    log: &ServerLog,
    errors: Box<dyn AsyncRead + Send + Unpin>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(log.clone().drain(errors)))
}

/// Waits a moment for what a program that has ended wrote last. What it started may keep the stream open.
pub(crate) async fn last_words(errors: &mut AbortOnDropHandle<()>) {
    tokio::time::timeout(LAST_WORDS_WITHIN, errors).await.ok();
}

fn lifecycle(lifecycle: Lifecycle) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    match lifecycle {
        Lifecycle::Initialize => ClientLifecycleMode::Initialize,
        Lifecycle::Discover => ClientLifecycleMode::Discover { preferred_versions },
        Lifecycle::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}
