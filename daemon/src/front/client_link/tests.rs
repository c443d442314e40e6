//! Tests what a client at the other end of a pipe reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::wire::{CloseReason, Limits, NoMethods, Notification, Reply, Request, Service};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::*;
use crate::launch::{Launch, LaunchOptions};

const WAIT: Duration = Duration::from_secs(5);

/// A client that answers nothing. It reports to the test every message, and every question that was
/// withdrawn.
struct Silent(mpsc::UnboundedSender<(String, Value)>);

struct Unanswered(mpsc::UnboundedSender<(String, Value)>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.send(("withdrawn".to_owned(), Value::Null)).ok();
    }
}

impl Silent {
    fn note(&self, method: String, params: Option<&RawValue>) {
        let params = params.map_or("null", RawValue::get);
        self.0
            .send((method, serde_json::from_str(params).unwrap()))
            .ok();
    }
}

impl Service for Silent {
    fn call(&self, _peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        self.note(request.method, request.params.as_deref());
        let unanswered = Unanswered(self.0.clone());
        async move {
            let _unanswered = unanswered;
            futures::future::pending().await
        }
        .boxed()
    }

    fn notify(&self, _peer: &Peer, notification: Notification) {
        self.note(notification.method, notification.params.as_deref());
    }
}

fn link() -> (
    Arc<dyn Client>,
    Peer,
    mpsc::UnboundedReceiver<(String, Value)>,
) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (sender, came) = mpsc::unbounded_channel();
    let (peer, driving) = wire::connect(ours, Arc::new(NoMethods), Limits::default());
    let (_, driven) = wire::connect(theirs, Arc::new(Silent(sender)), Limits::default());
    tokio::spawn(driving);
    tokio::spawn(driven);
    (Arc::new(ClientLink::new(peer.clone())), peer, came)
}

#[tokio::test]
async fn an_event_is_the_line_in_a_notification() {
    let (client, _, mut came) = link();
    let session = SessionId::new("a\"b");
    let notice = Notice::event(&session, r#"{"type":"x","data":{"n":1}}"#);
    client.tell(Class::Event, &notice);
    let (method, params) = timeout(WAIT, came.recv()).await.unwrap().unwrap();
    assert_eq!(method, "session.event");
    let event = json!({ "type": "x", "data": { "n": 1 } });
    assert_eq!(params, json!({ "sessionId": "a\"b", "event": event }));
}

#[tokio::test]
async fn a_question_goes_out_before_its_answer_is_awaited_and_dropping_it_withdraws_it() {
    let (client, _, mut came) = link();
    let session = SessionId::new("s");
    let asking = client.ask_token(&session, "mine");
    let (method, params) = timeout(WAIT, came.recv()).await.unwrap().unwrap();
    assert_eq!(method, "providerToken.getToken");
    assert_eq!(params, json!({ "sessionId": "s", "providerName": "mine" }));
    drop(asking);
    let (what, _) = timeout(WAIT, came.recv()).await.unwrap().unwrap();
    assert_eq!(what, "withdrawn");
}

#[tokio::test]
async fn a_question_to_a_client_that_leaves_ends_without_an_answer() {
    let (client, peer, _came) = link();
    let asking = client.ask_token(&SessionId::new("s"), "mine");
    peer.close(CloseReason::Done);
    let answer = timeout(WAIT, asking).await.unwrap();
    assert!(matches!(answer, Err(AskError::Gone)), "{answer:?}");
    let later = timeout(WAIT, client.ask_token(&SessionId::new("s"), "mine")).await;
    assert!(matches!(later.unwrap(), Err(AskError::Gone)));
}

#[tokio::test]
async fn one_client_of_a_launch_carries_model_requests() {
    let options = LaunchOptions::default();
    let launch = Launch::new(PathBuf::from("/w"), BTreeMap::new(), options);
    let (first, first_peer, _) = link();
    let (second, _, _) = link();
    assert!(launch.inference_of(first.id()).is_none());
    launch.carry_inference(&first).unwrap();
    launch.carry_inference(&first).unwrap();
    assert!(launch.carry_inference(&second).is_err());
    first_peer.close(CloseReason::Done);
    launch.carry_inference(&second).unwrap();
    assert!(launch.inference_of(second.id()).is_some());
    assert!(launch.inference_of(first.id()).is_none());
}
