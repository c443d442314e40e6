//! Which message an event belongs to: ids that tie what users say to what comes of it.

use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

/// Of each event of a kind, one member of its data.
fn members(session: &Session, kind: &str, member: &str) -> Vec<Value> {
    let events = session.events().into_iter();
    events
        .filter(|event| event["type"] == kind && event["agentId"].is_null())
        .map(|event| event["data"][member].clone())
        .collect()
}

fn origins(session: &Session) -> Vec<Value> {
    members(session, "assistant.message", "originatingMessageId")
}

#[tokio::test]
async fn what_the_model_says_names_the_message_that_started_the_run() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "glob", json!({"pattern": "*"}))]),
        Turn::results([""])
            .calls([call("b", "glob", json!({"pattern": "*"}))])
            .held_by(&gate),
        Turn::user("steer").says("1"),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    let one = session.send("one").await;
    gate.reached().await;
    let steering = session
        .call(
            "session.send",
            json!({"prompt": "steer", "mode": "immediate"}),
        )
        .await["messageId"]
        .clone();
    let two = session.send("two").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        members(&session, "user.message", "messageId"),
        [json!(one), steering, json!(two)]
    );
    assert_eq!(
        origins(&session),
        [json!(one), json!(one), json!(one), json!(two)],
        "tools and steering do not change whose run it is"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_failed_run_names_its_message_and_a_remark_of_a_client_none() {
    let daemon = Daemon::playing([Turn::user("fail").fails(400, "no")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let message = session.send("fail").await;
    session.next("session.idle").await;
    let remark = json!({"message": "mine", "level": "error"});
    session.call("session.log", remark).await;
    session.next("session.error").await;
    let errors = members(&session, "session.error", "originatingMessageId");
    assert_eq!(errors, [json!(message), Value::Null]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_ids_survive_a_restart_in_the_middle_of_a_run() {
    let mut daemon = Daemon::playing([
        Turn::user("one").calls([call("a", "bash", json!({"command": "echo hi"}))]),
        Turn::results(["hi"]).says("1"),
        Turn::user("two").says("2"),
    ])
    .await;
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer.clone()).await;
    let one = session.send("one").await;
    let (request, _) = session.permission().await;
    let id = session.id.clone();
    daemon.restart().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let mut session = daemon.client().resume(&id, offer).await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    let two = session.send("two").await;
    session.next("session.idle").await;
    assert_eq!(origins(&session), [json!(one), json!(two)]);
    let stored = session.messages().await;
    let mut users = stored
        .iter()
        .filter(|event| event["type"] == "user.message");
    assert!(users.all(|event| event["data"]["messageId"].is_string()));
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_an_abort_cut_short_is_still_named() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    let one = session.send("one").await;
    gate.reached().await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    assert_eq!(members(&session, "user.message", "messageId"), [json!(one)]);
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_fork_keeps_the_ids_of_the_past_and_gives_its_own_to_what_is_new() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let one = session.send("one").await;
    session.next("session.idle").await;
    let forked = client
        .call("sessions.fork", json!({"sessionId": session.id}))
        .await;
    let mut fork = client
        .resume(forked["sessionId"].as_str().unwrap(), json!({}))
        .await;
    let two = fork.send("two").await;
    fork.next("session.idle").await;
    assert_ne!(one, two);
    assert_eq!(origins(&fork), [json!(two)]);
    let stored = fork.messages().await;
    let users: Vec<&Value> = stored
        .iter()
        .filter(|event| event["type"] == "user.message")
        .map(|event| &event["data"]["messageId"])
        .collect();
    assert_eq!(users, [&json!(one), &json!(two)]);
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_has_messages_and_runs_of_its_own() {
    let task = call(
        "t",
        "task",
        json!({"prompt": "look", "description": "d", "agent_type": "general-purpose"}),
    );
    let script = Script::voices([
        (
            "go",
            vec![Turn::user("go").calls([task]), Turn::any().says("done")],
        ),
        ("look", vec![Turn::user("look").says("seen")]),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    let go = session.send("go").await;
    session.next("session.idle").await;
    assert_eq!(origins(&session), [json!(go), json!(go)]);
    let events = session.events();
    let of_agent = |kind: &str| {
        let mut events = events.iter();
        let own = events.find(|event| event["type"] == kind && event["agentId"].is_string());
        own.unwrap()["data"].clone()
    };
    let told = of_agent("user.message")["messageId"].clone();
    assert!(told.is_string());
    assert_ne!(told, json!(go));
    assert_eq!(of_agent("assistant.message")["originatingMessageId"], told);
    daemon.finish().await;
}
