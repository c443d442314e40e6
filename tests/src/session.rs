//! One session as one client sees it: calls with the session's id, and its events in order.

use std::time::Duration;

use loopd_proto::wire::ErrorObject;
use serde_json::{Value, json};

use crate::client::Client;
use crate::recorder::Seen;
use crate::transcript;
use crate::within;

/// A session and how far the test has read its events.
pub struct Session {
    pub id: String,
    client: Client,
    /// How many of the connection's events came before this session was opened.
    from: usize,
    /// How many of the connection's events the test has read.
    read: usize,
}

impl Session {
    /// Makes a session that skips the first `from` events of the connection.
    pub(crate) fn new(client: &Client, id: &str, from: usize) -> Self {
        Self {
            id: id.to_owned(),
            from,
            read: from,
            client: client.clone(),
        }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    fn params(&self, mut params: Value) -> Value {
        params["sessionId"] = self.id.as_str().into();
        params
    }

    /// Calls a method of this session that has to succeed.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        self.client.call(method, self.params(params)).await
    }

    /// Calls a method of this session that may be refused.
    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        self.client.try_call(method, self.params(params)).await
    }

    /// Calls a method of this session that has to be refused.
    pub async fn refused(&self, method: &str, params: Value) -> ErrorObject {
        self.client.refused(method, self.params(params)).await
    }

    /// Queues a request now; the future waits for its answer.
    pub fn start(
        &self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, ErrorObject>> + use<> {
        self.client.start(method, self.params(params))
    }

    /// Sends a prompt and returns the id of the message.
    pub async fn send(&self, prompt: &str) -> String {
        let sent = self.call("session.send", json!({ "prompt": prompt })).await;
        sent["messageId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and waits until the session is idle after it. An idle that comes before the
    /// message belongs to other work.
    pub async fn ask(&mut self, prompt: &str) -> Value {
        let id = self.send(prompt).await;
        self.next_where("the message that was sent", |event| {
            event["type"] == "user.message" && event["data"]["messageId"] == id.as_str()
        })
        .await;
        self.next("session.idle").await
    }

    /// Waits for the next event of this kind; the events before it count as read.
    pub async fn next(&mut self, kind: &str) -> Value {
        self.next_where(kind, |event| event["type"] == kind).await
    }

    /// Waits for the next event that fits; the events before it count as read.
    pub async fn next_where(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.next_within(crate::PATIENCE, what, fits).await
    }

    /// Does the same as [`Session::next_where`], for events that may take minutes.
    pub async fn next_slowly(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.next_within(15 * crate::PATIENCE, what, fits).await
    }

    async fn next_within(
        &mut self,
        patience: Duration,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        let (id, mut from) = (self.id.clone(), self.read);
        let find = |seen: &mut Seen| {
            let mut new = seen.events.iter().enumerate().skip(from);
            let found = new.find(|(_, seen)| seen.session == id && fits(&seen.event));
            // Events that do not fit are not checked again.
            from = seen.events.len();
            found.map(|(at, found)| (at, found.event.clone()))
        };
        let wait = self.client.recorder().find(find);
        let Ok((at, event)) = tokio::time::timeout(patience, wait).await else {
            panic!("{what} did not come; what came is:\n{}", self.transcript());
        };
        self.read = at + 1;
        event
    }

    /// Returns all events since this client opened the session, in the order of arrival.
    pub fn events(&self) -> Vec<Value> {
        let all = self.client.all_events().into_iter().skip(self.from);
        all.filter(|seen| seen.session == self.id)
            .map(|seen| seen.event)
            .collect()
    }

    /// Waits until this many events of the session have arrived.
    pub async fn heard(&self, count: usize) {
        let find = |seen: &mut Seen| {
            let ours = seen
                .events
                .iter()
                .skip(self.from)
                .filter(|seen| seen.session == self.id);
            (ours.count() >= count).then_some(())
        };
        self.client.recorder().find(find).await;
    }

    /// Returns the kinds of all events so far, without ephemeral ones.
    pub fn durable_kinds(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|event| event["ephemeral"] != true)
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Counts the events of one kind so far.
    pub fn count(&self, kind: &str) -> usize {
        let events = self.events();
        events.iter().filter(|event| event["type"] == kind).count()
    }

    /// Renders the events as text, with ids, times and paths replaced.
    pub fn transcript(&self) -> String {
        transcript::render(&self.events(), self.client.scrub())
    }

    /// Returns the stored events, as `session.getMessages` reports them.
    pub async fn messages(&self) -> Vec<Value> {
        let got = self.call("session.getMessages", json!({})).await;
        got["events"].as_array().unwrap().clone()
    }

    /// Allows every tool without asking.
    pub async fn approve_all(&self) {
        let params = json!({ "enabled": true });
        self.call("session.permissions.setApproveAll", params).await;
    }

    /// Waits for the next permission request; returns its id and the request.
    pub async fn permission(&mut self) -> (String, Value) {
        let asked = self.next("permission.requested").await;
        let id = asked["data"]["requestId"].as_str().unwrap().to_owned();
        (id, asked["data"]["permissionRequest"].clone())
    }

    /// Answers a permission request; returns whether the daemon accepted the answer.
    pub async fn decide(&self, request: &str, decision: Value) -> bool {
        let params = json!({ "requestId": request, "result": decision });
        let method = "session.permissions.handlePendingPermissionRequest";
        self.call(method, params).await["success"] == true
    }

    /// Waits for the next call of a client tool; returns its request id and the event's data.
    pub async fn tool_call(&mut self) -> (String, Value) {
        let asked = self.next("external_tool.requested").await;
        let id = asked["data"]["requestId"].as_str().unwrap().to_owned();
        (id, asked["data"].clone())
    }

    /// Sends the result of a client tool; returns whether the daemon accepted it.
    pub async fn give(&self, request: &str, mut answer: Value) -> bool {
        answer["requestId"] = request.into();
        let method = "session.tools.handlePendingToolCall";
        self.call(method, answer).await["success"] == true
    }

    /// Destroys the session.
    pub async fn destroy(&self) {
        let left = self.call("session.destroy", json!({}));
        assert_eq!(
            within("session.destroy", left).await,
            json!({"success": true})
        );
    }
}
