//! The client's end of the wire: records everything that the daemon sends until the test reads it.
//!
//! `client` and `session` use it. It never answers a request by itself.

use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::wire::{ErrorObject, Notification, Peer, Reply, Request, Service};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

/// An event of a session, as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct SeenEvent {
    pub(crate) session: String,
    pub(crate) event: Value,
}

/// A request of the daemon that waits for the test's answer.
#[derive(Debug)]
pub struct ServerRequest {
    pub method: String,
    pub params: Value,
    reply: oneshot::Sender<Result<Value, ErrorObject>>,
}

impl ServerRequest {
    pub fn answer(self, result: Value) {
        let sent = self.reply.send(Ok(result));
        assert!(
            sent.is_ok(),
            "nobody waits for the answer to {}",
            self.method
        );
    }

    pub fn refuse(self, code: i64, message: &str) {
        let sent = self.reply.send(Err(ErrorObject::new(code, message)));
        assert!(
            sent.is_ok(),
            "nobody waits for the answer to {}",
            self.method
        );
    }

    /// Waits until the daemon has cancelled its request.
    pub async fn withdrawn(mut self) {
        crate::within("the daemon to take its request back", self.reply.closed()).await;
    }
}

/// Everything that arrived on one connection.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<SeenEvent>,
    /// Notifications other than `session.event`, by method.
    pub(crate) notes: Vec<(String, Value)>,
    pub(crate) requests: Vec<ServerRequest>,
}

/// Records what arrives on one connection.
#[derive(Debug)]
pub(crate) struct Recorder {
    seen: Mutex<Seen>,
    changes: watch::Sender<u64>,
}

impl Recorder {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        self.look(change);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Waits until `look` finds something; it is called again after every change.
    pub(crate) async fn find<T>(&self, mut look: impl FnMut(&mut Seen) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            if let Some(found) = self.look(&mut look) {
                return found;
            }
            // The sender lives as long as the recorder.
            changes.changed().await.unwrap();
        }
    }
}

impl Service for Recorder {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        let (reply, answer) = oneshot::channel();
        self.note(|seen| {
            seen.requests.push(ServerRequest {
                method: request.method.clone(),
                params: parse(request.params.as_deref()),
                reply,
            });
        });
        async move {
            match answer.await {
                Ok(Ok(value)) => Reply::result(&request.id, &value),
                Ok(Err(error)) => Reply::error(&request.id, error),
                // The test dropped the request, so this client never answers it.
                Err(_) => std::future::pending().await,
            }
        }
        .boxed()
    }

    fn notify(&self, _peer: &Peer, notification: Notification) {
        let params = parse(notification.params.as_deref());
        self.note(|seen| {
            if notification.method == "session.event" {
                seen.events.push(SeenEvent {
                    session: params["sessionId"].as_str().unwrap_or_default().to_owned(),
                    event: params["event"].clone(),
                });
            } else {
                seen.notes.push((notification.method, params));
            }
        });
    }
}

fn parse(params: Option<&serde_json::value::RawValue>) -> Value {
    params.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}
