//! Commands of the daemon and of files in the queue: they wait for their turn, run in order, and what
//! they say or why they fail is an event.

use loopd_tests::{Daemon, Gate, Script, Session, Turn};
use serde_json::{Value, json};

use crate::file_commands::{command, session, trust};

const ENQUEUE: &str = "session.commands.enqueue";

async fn enqueue(session: &Session, command: &str) {
    let queued = session.call(ENQUEUE, json!({"command": command})).await;
    assert_eq!(queued, json!({"queued": true}));
}

/// The messages of the events of a kind, in order.
fn messages(session: &Session, kind: &str) -> Vec<String> {
    let events = session.events().into_iter();
    events
        .filter(|event| event["type"] == kind)
        .map(|event| event["data"]["message"].as_str().unwrap().to_owned())
        .collect()
}

/// What the model was asked, in order.
fn asked(daemon: &Daemon) -> Vec<String> {
    let requests = daemon.script().requests();
    let last = |text: String| text.rsplit("\n\n").next().unwrap().to_owned();
    requests
        .iter()
        .map(|request| last(request.last_user_text()))
        .collect()
}

#[tokio::test]
async fn a_command_of_the_daemon_runs_when_its_turn_comes() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("the house").says("planned"),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    enqueue(&session, "/plan the house").await;
    session.send("two").await;
    assert_eq!(
        session.call("session.mode.get", json!({})).await,
        "interactive",
        "it waits"
    );
    let waiting = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(waiting["items"].as_array().unwrap().len(), 2, "{waiting}");
    gate.open();
    session.next("session.idle").await;
    assert_eq!(asked(&daemon), ["one", "the house", "two"]);
    assert_eq!(session.call("session.mode.get", json!({})).await, "plan");
    assert_eq!(
        session.count("command.queued"),
        0,
        "no client has to run it"
    );
    let shown: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "user.message")
        .map(|event| event["data"]["content"].clone())
        .collect();
    assert_eq!(shown, ["one", "/plan the house", "two"]);
    daemon.finish().await;
}

#[tokio::test]
async fn what_it_says_and_why_it_fails_are_events_and_the_queue_goes_on() {
    let daemon = Daemon::playing([Turn::user("after").says("ok")]).await;
    let mut session = daemon.client().create(json!({})).await;
    enqueue(&session, "/todos").await;
    session.next("session.idle").await;
    assert_eq!(
        messages(&session, "session.info"),
        ["/todos\nNothing is on the list."]
    );
    enqueue(&session, "/model one two three").await;
    enqueue(&session, "/rename Hut").await;
    session.send("after").await;
    session.next("assistant.message").await;
    session.next("session.idle").await;
    let failed = messages(&session, "session.warning");
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(
        failed[0].contains("/model one two three") && failed[0].contains("nothing more"),
        "{failed:?}"
    );
    let name = session.call("session.name.get", json!({})).await;
    assert_eq!(name["name"], "Hut");
    daemon.finish().await;
}

#[tokio::test]
async fn after_a_kill_it_runs_in_its_place() {
    let gate = Gate::new();
    let script = Script::play([
        Turn::user("one").says("1").held_by(&gate),
        Turn::any().says("1 again"),
        Turn::user("the house").says("planned"),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut daemon = Daemon::with(script).await;
    let session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    enqueue(&session, "/plan the house").await;
    session.send("two").await;
    daemon.restart().await;
    let pending = json!({"continuePendingWork": true});
    let mut session = daemon.client().resume(&session.id, pending).await;
    session.next("session.idle").await;
    let asked = asked(&daemon);
    assert_eq!(asked[asked.len() - 2..], ["the house", "two"], "{asked:?}");
    assert_eq!(session.call("session.mode.get", json!({})).await, "plan");
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_fleet_of_the_queue_begins_before_what_waits_behind_it() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("Build a hut").says("it was small"),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    enqueue(&session, "/fleet Build a hut").await;
    session.send("two").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 3);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_of_a_file_keeps_what_it_sets_and_asks_what_it_has_to() {
    let daemon = Daemon::playing([
        Turn::user("Look at trunk.").says("seen"),
        Turn::user("next").says("ok"),
    ])
    .await;
    let text = "---\nallowed-tools: Read, Grep\n---\nLook at !`echo trunk`.";
    command(&daemon, "look", text);
    trust(&daemon).await;
    let mut session = session(&daemon).await;
    enqueue(&session, "/look").await;
    session.send("next").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["fullCommandText"], "echo trunk");
    assert_eq!(
        daemon.script().requests().len(),
        0,
        "what is behind it waits"
    );
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    assert_eq!(requests[0].tools().len(), 2, "{:?}", requests[0].tools());
    assert!(requests[1].tools().contains(&"bash"));
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_ends_it_and_its_question() {
    let daemon = Daemon::playing([Turn::user("next").says("ok")]).await;
    command(&daemon, "look", "Look at !`echo trunk`.");
    trust(&daemon).await;
    let mut session = session(&daemon).await;
    enqueue(&session, "/look").await;
    session.permission().await;
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    let open = session
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    assert_eq!(open["items"], json!([]), "{open}");
    session.ask("next").await;
    assert_eq!(session.count("assistant.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_daemon_that_dies_meanwhile_says_that_it_was_interrupted() {
    let mut daemon = Daemon::playing([]).await;
    command(&daemon, "look", "Look at !`echo trunk`.");
    trust(&daemon).await;
    let mut session = session(&daemon).await;
    enqueue(&session, "/look").await;
    session.permission().await;
    daemon.restart().await;
    let session = daemon.client().resume(&session.id, json!({})).await;
    let told = session.messages().await;
    let told = told
        .iter()
        .find(|event| event["type"] == "session.warning")
        .unwrap();
    assert_eq!(told["data"]["warningType"], "command_failed");
    let message = told["data"]["message"].as_str().unwrap();
    assert!(message.contains("/look"), "{message}");
    daemon.finish().await;
}

#[tokio::test]
async fn people_see_the_text_that_the_client_gave_the_command() {
    let daemon = Daemon::playing([Turn::user("the house").says("planned")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let params = json!({"command": "/plan the house", "displayText": "Plan it"});
    session.call(ENQUEUE, params).await;
    session.next("session.idle").await;
    let events = session.events();
    let shown = events.iter().find(|event| event["type"] == "user.message");
    assert_eq!(shown.unwrap()["data"]["content"], "Plan it");
    let wrong = json!({"command": "/plan it", "displayText": 7});
    let refused = session.refused(ENQUEUE, wrong).await;
    assert!(
        refused.message.contains("displayText"),
        "{}",
        refused.message
    );
    daemon.finish().await;
}
