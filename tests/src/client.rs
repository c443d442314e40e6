//! A client that speaks the raw wire format: one connection, all messages that arrive on it, and
//! calls by method name.

use std::sync::{Arc, Mutex};

use loopd_proto::wire::{self, CallError, CloseReason, ErrorObject, Limits, Peer, PendingCall};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::recorder::{Recorder, Seen, SeenEvent, ServerRequest};
use crate::session::Session;
use crate::transcript::Scrub;
use crate::within;

/// One connection to a daemon; clones are the same connection.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    peer: Peer,
    recorder: Arc<Recorder>,
    driving: Mutex<Option<JoinHandle<CloseReason>>>,
    /// The daemon's side of the connection, if the daemon runs in this process.
    served: Mutex<Option<JoinHandle<CloseReason>>>,
    /// The default parameters of `session.create` and `session.resume`.
    defaults: Value,
    scrub: Scrub,
}

impl Client {
    /// Connects over a stream. `defaults` are merged into every `session.create` and
    /// `session.resume`.
    pub fn over<S>(stream: S, defaults: Value, scrub: Scrub) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let recorder = Recorder::new();
        let (peer, driving) = wire::connect(stream, recorder.clone(), Limits::default());
        Self {
            inner: Arc::new(Inner {
                peer,
                recorder,
                driving: Mutex::new(Some(tokio::spawn(driving))),
                served: Mutex::default(),
                defaults,
                scrub,
            }),
        }
    }

    pub(crate) fn served_by(self, served: JoinHandle<CloseReason>) -> Self {
        *self.inner.served.lock().unwrap() = Some(served);
        self
    }

    /// Queues a request now; the future waits for its answer.
    pub fn start(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, ErrorObject>> + use<> {
        let pending = self.pending(method, params);
        let what = format!("the answer to {method}");
        async move {
            match within(&what, pending).await {
                Ok(raw) => Ok(serde_json::from_str(raw.get()).unwrap()),
                Err(CallError::Remote(error)) => Err(error),
                Err(error) => panic!("{what} did not come: {error}"),
            }
        }
    }

    /// Queues a request and returns the pending call. Dropping it cancels the request.
    pub fn pending(&self, method: &str, params: Value) -> PendingCall {
        let pending = self.inner.peer.start_request(method, &params);
        pending.unwrap_or_else(|closed| panic!("{method} cannot be sent: {closed}"))
    }

    /// Calls a method that may be refused.
    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.start(method, params).await
    }

    /// Calls a method that has to succeed.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let answer = self.try_call(method, params.clone()).await;
        answer.unwrap_or_else(|error| panic!("{method} {params} was refused: {error}"))
    }

    /// Calls a method that has to be refused.
    pub async fn refused(&self, method: &str, params: Value) -> ErrorObject {
        match self.try_call(method, params.clone()).await {
            Err(error) => error,
            Ok(value) => panic!("{method} {params} was not refused; it answered {value}"),
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &Value) {
        let sent = self.inner.peer.notify(method, params);
        sent.unwrap_or_else(|closed| panic!("{method} cannot be sent: {closed}"));
    }

    /// Creates a session with the defaults, changed by `params`; null removes a default.
    pub async fn create(&self, params: Value) -> Session {
        let params = merged(&self.inner.defaults, params);
        let opened = self.call("session.create", params).await;
        Session::new(self, opened["sessionId"].as_str().unwrap(), 0)
    }

    /// Resumes a session with the defaults, changed by `params`.
    pub async fn resume(&self, id: &str, params: Value) -> Session {
        let mut params = merged(&self.inner.defaults, params);
        params["sessionId"] = id.into();
        // The events of the session begin here, so that those of the resume are included.
        let session = Session::new(self, id, self.all_events().len());
        self.call("session.resume", params).await;
        session
    }

    /// Returns a session that this client is attached to already, with all events since the
    /// connection began.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self, id, 0)
    }

    /// Waits for the next request of the daemon with this method, and takes it.
    pub async fn request(&self, method: &str) -> ServerRequest {
        let found = self.inner.recorder.find(|seen| {
            let at = seen
                .requests
                .iter()
                .position(|request| request.method == method)?;
            Some(seen.requests.remove(at))
        });
        within(&format!("the request {method}"), found).await
    }

    /// Waits for a notification other than `session.event`.
    pub async fn note(&self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let found = self.inner.recorder.find(|seen| {
            let mut notes = seen.notes.iter();
            let found = notes.find(|(name, params)| name == method && is_it(params))?;
            Some(found.1.clone())
        });
        within(&format!("the notification {method}"), found).await
    }

    /// Returns the notifications of one method so far.
    pub fn notes(&self, method: &str) -> Vec<Value> {
        self.inner.recorder.look(|seen| {
            let notes = seen.notes.iter().filter(|(name, _)| name == method);
            notes.map(|(_, params)| params.clone()).collect()
        })
    }

    /// Waits until this many events of any session have arrived.
    pub async fn heard(&self, count: usize) {
        let enough = |seen: &mut Seen| (seen.events.len() >= count).then_some(());
        self.inner.recorder.find(enough).await;
    }

    /// Returns the methods of requests that the daemon sent and the test has not taken.
    pub fn open_requests(&self) -> Vec<String> {
        self.inner.recorder.look(|seen| {
            seen.requests
                .iter()
                .map(|request| request.method.clone())
                .collect()
        })
    }

    /// Cuts the connection without closing it properly, and waits until the daemon has noticed.
    pub async fn vanish(&self) {
        let driving = self.inner.driving.lock().unwrap().take();
        let driving = driving.expect("a client vanishes once");
        driving.abort();
        // The task was aborted on purpose, so its error is expected.
        driving.await.ok();
        let served = self.inner.served.lock().unwrap().take();
        if let Some(served) = served {
            within("the daemon to notice that a client vanished", served)
                .await
                .unwrap();
        }
    }

    /// Returns whether the connection was not cut yet.
    pub(crate) fn is_connected(&self) -> bool {
        self.inner.driving.lock().unwrap().is_some()
    }

    /// Waits until the other side has closed the connection.
    pub async fn closed(&self) -> CloseReason {
        within(
            "the daemon to close the connection",
            self.inner.peer.closed(),
        )
        .await
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    pub(crate) fn scrub(&self) -> &Scrub {
        &self.inner.scrub
    }

    pub(crate) fn all_events(&self) -> Vec<SeenEvent> {
        self.inner.recorder.look(|seen| seen.events.clone())
    }
}

/// Merges the members of `changes` into `base`; null removes a member.
fn merged(base: &Value, changes: Value) -> Value {
    let mut all = base.clone();
    let members = all.as_object_mut().expect("parameters are an object");
    let Value::Object(changes) = changes else {
        panic!("parameters are an object, not {changes}");
    };
    for (name, value) in changes {
        if value.is_null() {
            members.remove(&name);
        } else {
            members.insert(name, value);
        }
    }
    all
}
