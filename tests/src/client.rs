//! A client that speaks the raw wire: one connection, everything it hears, and calls by name.

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
    /// The daemon's side of the connection, where it is in this process.
    served: Mutex<Option<JoinHandle<CloseReason>>>,
    /// What `session.create` says unless the test says otherwise.
    defaults: Value,
    scrub: Scrub,
}

impl Client {
    /// Speaks over a stream; `defaults` are merged into every `session.create` and resume.
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

    /// Queues a request now and returns the wait for its answer.
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

    /// The bare wait for an answer; dropping it cancels the request.
    pub fn pending(&self, method: &str, params: Value) -> PendingCall {
        let pending = self.inner.peer.start_request(method, &params);
        pending.unwrap_or_else(|closed| panic!("{method} cannot be sent: {closed}"))
    }

    /// Calls a method that may be refused.
    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.start(method, params).await
    }

    /// Calls a method that has to work.
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

    /// Tells the daemon something that has no answer.
    pub fn notify(&self, method: &str, params: &Value) {
        let sent = self.inner.peer.notify(method, params);
        sent.unwrap_or_else(|closed| panic!("{method} cannot be sent: {closed}"));
    }

    /// Creates a session with the harness's model, changed by `params` (null takes a default out).
    pub async fn create(&self, params: Value) -> Session {
        let params = merged(&self.inner.defaults, params);
        let opened = self.call("session.create", params).await;
        Session::new(self, opened["sessionId"].as_str().unwrap(), 0)
    }

    /// Resumes a session, with the harness's model, changed by `params`.
    pub async fn resume(&self, id: &str, params: Value) -> Session {
        let mut params = merged(&self.inner.defaults, params);
        params["sessionId"] = id.into();
        // Heard from here on: the resume itself is part of it.
        let session = Session::new(self, id, self.all_events().len());
        self.call("session.resume", params).await;
        session
    }

    /// A session this client is attached to already, heard from the connection's first event on.
    pub fn session(&self, id: &str) -> Session {
        Session::new(self, id, 0)
    }

    /// Takes the next request that the daemon makes with this method.
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

    /// Waits for a notification other than an event.
    pub async fn note(&self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let found = self.inner.recorder.find(|seen| {
            let mut notes = seen.notes.iter();
            let found = notes.find(|(name, params)| name == method && is_it(params))?;
            Some(found.1.clone())
        });
        within(&format!("the notification {method}"), found).await
    }

    /// The notifications of one method so far.
    pub fn notes(&self, method: &str) -> Vec<Value> {
        self.inner.recorder.look(|seen| {
            let notes = seen.notes.iter().filter(|(name, _)| name == method);
            notes.map(|(_, params)| params.clone()).collect()
        })
    }

    /// Waits until this many events of any session have come.
    pub async fn heard(&self, count: usize) {
        let enough = |seen: &mut Seen| (seen.events.len() >= count).then_some(());
        self.inner.recorder.find(enough).await;
    }

    /// The methods of requests that the daemon made and the test has not taken.
    pub fn open_requests(&self) -> Vec<String> {
        self.inner.recorder.look(|seen| {
            seen.requests
                .iter()
                .map(|request| request.method.clone())
                .collect()
        })
    }

    /// Cuts the connection without a word, and waits until the daemon has noticed.
    pub async fn vanish(&self) {
        let driving = self.inner.driving.lock().unwrap().take();
        let driving = driving.expect("a client vanishes once");
        driving.abort();
        // Aborted on purpose.
        driving.await.ok();
        let served = self.inner.served.lock().unwrap().take();
        if let Some(served) = served {
            within("the daemon to notice that a client vanished", served)
                .await
                .unwrap();
        }
    }

    /// Whether it still speaks to a daemon.
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

/// Lays one object's members over another's; null takes a member out.
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
