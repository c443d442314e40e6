//! A client that has nobody to ask does not answer for the other clients of a session.

use loopd_tests::session::Session;
use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

const DENIED: &str = "denied-no-approval-rule-and-could-not-request-from-user";

fn offer() -> Value {
    json!({"requestPermission": true})
}

fn nobody() -> Value {
    json!({"kind": "user-not-available"})
}

/// Two clients of one session, and a question that both see.
async fn asked(daemon: &Daemon) -> (Session, Session, String) {
    let mut person = daemon.client().create(offer()).await;
    let mut script = daemon.client().resume(&person.id, offer()).await;
    person.send("go").await;
    let (request, _) = person.permission().await;
    assert_eq!(script.permission().await.0, request);
    (person, script, request)
}

async fn daemon(result: &str) -> Daemon {
    Daemon::playing([
        Turn::user("go").calls([call("go", "bash", json!({"command": "touch made"}))]),
        Turn::results([result]).says("ok"),
    ])
    .await
}

async fn open_requests(session: &Session) -> Vec<Value> {
    let pending = session.call("session.permissions.pendingRequests", json!({}));
    pending.await["items"].as_array().unwrap().clone()
}

fn outcomes(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let completed = events.filter(|event| event["type"] == "permission.completed");
    completed
        .map(|event| event["data"]["result"]["kind"].clone())
        .collect()
}

#[tokio::test]
async fn the_question_stays_open_for_the_client_that_can_ask() {
    let daemon = daemon("").await;
    let (mut person, script, request) = asked(&daemon).await;
    assert!(script.decide(&request, nobody()).await);
    assert_eq!(open_requests(&person).await.len(), 1);
    let yes = json!({"kind": "approve-once"});
    assert!(person.decide(&request, yes).await);
    person.next("session.idle").await;
    assert!(daemon.work().join("made").exists());
    assert_eq!(outcomes(&person), ["approved"]);
    daemon.finish().await;
}

#[tokio::test]
async fn it_is_denied_when_all_have_nobody_to_ask() {
    let daemon = daemon("denied").await;
    let (mut person, script, request) = asked(&daemon).await;
    assert!(script.decide(&request, nobody()).await);
    assert!(person.decide(&request, nobody()).await);
    person.next("session.idle").await;
    assert!(!daemon.work().join("made").exists());
    assert_eq!(outcomes(&person), [DENIED]);
    daemon.finish().await;
}

#[tokio::test]
async fn it_is_denied_when_the_last_client_that_can_ask_leaves() {
    let daemon = daemon("denied").await;
    let (person, mut script, request) = asked(&daemon).await;
    assert!(script.decide(&request, nobody()).await);
    person.call("session.destroy", json!({})).await;
    script.next("session.idle").await;
    assert!(!daemon.work().join("made").exists());
    assert_eq!(outcomes(&script), [DENIED]);
    daemon.finish().await;
}

#[tokio::test]
async fn it_is_denied_when_the_last_client_that_can_ask_asks_no_more() {
    let daemon = daemon("denied").await;
    let (mut person, script, request) = asked(&daemon).await;
    assert!(script.decide(&request, nobody()).await);
    let no_more = json!({"required": false});
    person
        .call("session.permissions.setRequired", no_more)
        .await;
    person.next("session.idle").await;
    assert_eq!(outcomes(&person), [DENIED]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_question_of_a_sub_agent_stays_open_too() {
    let start = json!({"description": "a part", "prompt": "inner", "name": "inner",
                       "agent_type": "general-purpose", "mode": "sync"});
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("t", "task", start)]),
        Turn::user("inner").calls([call("c", "bash", json!({"command": "touch made"}))]),
        Turn::results([""]).says("found it"),
        Turn::results(["found it"]).says("ok"),
    ])
    .await;
    let (mut person, script, request) = asked(&daemon).await;
    assert!(script.decide(&request, nobody()).await);
    assert_eq!(open_requests(&person).await.len(), 1);
    let yes = json!({"kind": "approve-once"});
    assert!(person.decide(&request, yes).await);
    person.next("session.idle").await;
    assert!(daemon.work().join("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_closed_question_cannot_be_declined() {
    let daemon = daemon("").await;
    let (mut person, script, request) = asked(&daemon).await;
    assert!(
        person
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    person.next("session.idle").await;
    assert!(!script.decide(&request, nobody()).await);
    assert!(!script.decide("unknown", nobody()).await);
    daemon.finish().await;
}
