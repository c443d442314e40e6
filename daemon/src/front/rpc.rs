//! Binds every row of the method table to a handler, and answers requests by that table.

pub mod context;
pub mod error;
mod handover;
mod limit;
mod method;
pub mod server;

pub use method::QueuedCommands;

use loopd_proto::parse_error::at_path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use jsonrpsee_core::server::{MethodCallback, RpcModule};
use jsonrpsee_types::{ErrorObjectOwned, Id, Params};
use loopd_proto::error as code;
use loopd_proto::method::{self as m, ALL, Method};
use loopd_proto::params::launch::JOIN;
use loopd_proto::wire::{CloseReason, ErrorObject, Notification, Peer, Reply, Request, Service};

use crate::front::connection::Connection;
use context::Context;
use error::RpcError;
use server::Server;

/// The methods of the daemon with their handlers.
pub struct Table {
    module: RpcModule<()>,
}

/// Why the table cannot be built. This is a bug, and it is found when the daemon starts.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("the method {0} is bound twice or has an invalid name")]
    Bound(&'static str),
    #[error("the method {0} has no handler")]
    Missing(&'static str),
}

impl Table {
    /// Binds all handlers and checks that every row has one.
    pub fn new() -> Result<Self, TableError> {
        let mut table = Self {
            module: RpcModule::new(()),
        };
        method::bind_all(&mut table)?;
        for row in ALL {
            if table.module.method(row.name).is_none() {
                return Err(TableError::Missing(row.name));
            }
        }
        Ok(table)
    }

    /// Binds one method to its handler.
    fn bind<M, F, Fut>(&mut self, handler: F) -> Result<(), TableError>
    where
        M: Method,
        F: Fn(Context, M::Params) -> Fut + Copy + Send + Sync + 'static,
        Fut: Future<Output = Result<M::Result, RpcError>> + Send + 'static,
    {
        let bound = self.module.register_async_method(
            M::NAME,
            move |params: Params<'static>, _, extensions| async move {
                let answer = async {
                    let context = extensions
                        .get::<Context>()
                        .cloned()
                        .ok_or_else(|| RpcError::Failed("the connection is unknown".to_owned()))?;
                    check_access(M::NAME, &context)?;
                    limit::request(params.as_str().unwrap_or_default())?;
                    let params = parse::<M>(&params)?;
                    match handler(context.clone(), params).await {
                        Err(RpcError::NoSession(id)) => Err(context.why_missing(id).await),
                        answer => answer,
                    }
                };
                let value = answer.await.map_err(|error| error.to_object(M::NAME))?;
                serde_json::value::to_raw_value(&value).map_err(|failed| {
                    RpcError::Failed(format!("the result cannot be written: {failed}"))
                        .to_object(M::NAME)
                })
            },
        );
        bound.map(|_| ()).map_err(|_| TableError::Bound(M::NAME))
    }

    fn call(&self, context: Context, request: Request) -> BoxFuture<'static, Reply> {
        let Some(MethodCallback::Async(callback)) = self.module.method(&request.method) else {
            let error = ErrorObject::new(
                code::METHOD_NOT_FOUND.into(),
                format!("Unhandled method {}", request.method),
            );
            return futures::future::ready(Reply::error(&request.id, error)).boxed();
        };
        let Ok(id) = serde_json::from_str::<Id<'_>>(request.id.as_json()).map(Id::into_owned)
        else {
            let error = ErrorObject::new(
                code::INVALID_REQUEST.into(),
                "a request's id is a string or a whole number from 0 on",
            );
            return futures::future::ready(Reply::error(&request.id, error)).boxed();
        };
        let params = request
            .params
            .map(|raw| Box::<str>::from(raw).into_string());
        let params = Params::new(params.as_deref()).into_owned();
        let mut extensions = jsonrpsee_core::server::Extensions::new();
        extensions.insert(context.clone());
        let answer = callback(id, params, 0_usize.into(), usize::MAX, extensions);
        async move {
            let response = answer.await;
            Reply {
                message: Bytes::from(String::from(Box::<str>::from(response.into_json()))),
                after: context.take_after(),
            }
        }
        .boxed()
    }
}

fn parse<M: Method>(params: &Params<'_>) -> Result<M::Params, RpcError> {
    let text = named(params.as_str().map_or("{}", str::trim));
    if !text.starts_with('{') {
        return Err(RpcError::InvalidParams(
            "parameters are given by name, in one object".to_owned(),
        ));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let params = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| RpcError::InvalidParams(at_path(&error)))?;
    reader.end().map_err(|_| {
        RpcError::InvalidParams("parameters are one object, not several".to_owned())
    })?;
    Ok(params)
}

/// Returns the object of named parameters. Some clients put that object, or null, into a list of
/// one.
fn named(text: &str) -> &str {
    let inner = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .map_or(text, str::trim);
    match inner {
        "" | "null" => "{}",
        inner => inner,
    }
}

/// Refuses everything but the handshake to a connection that is not authenticated, or whose launch
/// has ended.
fn check_access(method: &str, context: &Context) -> Result<(), RpcError> {
    if method == "connect" {
        return Ok(());
    }
    if !context.connection.is_authenticated() {
        return Err(RpcError::AuthenticationFailed);
    }
    if context.connection.launch().has_ended() {
        return Err(RpcError::Failed(
            "the runtime was shut down; start a new one".to_owned(),
        ));
    }
    Ok(())
}

/// The methods whose answer waits for something in a session. The caller's later requests must be
/// read meanwhile, because one of them may cause what the answer waits for.
const AWAITING: &[&str] = &[
    m::SessionSendAndWait::NAME,
    m::UiElicitation::NAME,
    m::CommandsInvoke::NAME,
    m::CommandsExecute::NAME,
    m::FleetStart::NAME,
    m::TasksWaitForPending::NAME,
    m::LoopdWaitIdle::NAME,
];

/// Answers the requests of one connection.
pub struct ConnectionService {
    app: Arc<Server>,
    connection: OnceLock<Arc<Connection>>,
}

impl ConnectionService {
    pub fn new(app: Arc<Server>) -> Self {
        Self {
            app,
            connection: OnceLock::new(),
        }
    }

    /// Sets the connection. The server calls this once, before the first byte is read.
    pub fn opened(&self, connection: Arc<Connection>) {
        // A second call would be a bug; the first one wins.
        self.connection.set(connection).ok();
    }
}

impl Service for ConnectionService {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        let Some(connection) = self.connection.get() else {
            let error = ErrorObject::new(code::FAILED.into(), "the connection is not open yet");
            return futures::future::ready(Reply::error(&request.id, error)).boxed();
        };
        connection.introduce();
        let context = Context::new(self.app.clone(), connection.clone());
        self.app.table.call(context, request)
    }

    fn awaits(&self, method: &str) -> bool {
        AWAITING.contains(&method)
    }

    fn notify(&self, peer: &Peer, notification: Notification) {
        let (Some(connection), JOIN) = (self.connection.get(), notification.method.as_str()) else {
            tracing::debug!(method = notification.method, "a notification was ignored");
            return;
        };
        let params = notification.params.as_ref().map_or("{}", |raw| raw.get());
        if let Err(why) = self.app.join(connection, params) {
            tracing::warn!(why, "a connection could not join its launch");
            peer.close(CloseReason::Done);
        }
    }
}

impl RpcError {
    fn to_object(&self, method: &str) -> ErrorObjectOwned {
        let (code, message) = self.code_and_message(method);
        ErrorObjectOwned::owned(code, message, self.data())
    }
}
