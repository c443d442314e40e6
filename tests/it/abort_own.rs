//! Who stops what: an abort takes its caller's waiting messages and leaves those of others, and a
//! guarded interrupt stops no turn of somebody else.

use futures::FutureExt;
use loopd_tests::{Daemon, Gate, Session, Turn, call};
use serde_json::{Value, json};

fn last(session: &Session, kind: &str) -> Value {
    let events = session.events();
    let found = events.iter().rev().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("there is no {kind}"))["data"].clone()
}

fn said(session: &Session) -> Vec<Value> {
    let events = session.events();
    let users = events
        .iter()
        .filter(|event| event["type"] == "user.message");
    users
        .map(|event| event["data"]["content"].clone())
        .collect()
}

async fn send_as(session: &Session, id: &str, prompt: &str) {
    let params = json!({"prompt": prompt, "messageId": id});
    session.call("session.send", params).await;
}

/// Two clients with names; the turn of the first is held by the gate.
async fn two_clients(daemon: &Daemon, gate: &Gate) -> (Session, Session) {
    let one = json!({"clientName": "first"});
    let one = daemon.client().create(one).await;
    let two = json!({"clientName": "second"});
    let two = daemon.client().resume(&one.id, two).await;
    send_as(&one, "m-1", "one").await;
    gate.reached().await;
    (one, two)
}

#[tokio::test]
async fn an_abort_drops_the_callers_messages_says_which_and_runs_those_of_others() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("never said").held_by(&gate),
        Turn::user("steered").says("s"),
        Turn::user("other").says("o"),
    ])
    .await;
    let (mut one, mut two) = two_clients(&daemon, &gate).await;
    send_as(&one, "m-2", "mine").await;
    send_as(&two, "m-3", "other").await;
    let steer =
        |id: &str, prompt: &str| json!({"prompt": prompt, "messageId": id, "mode": "immediate"});
    one.call("session.send", steer("m-4", "my steering")).await;
    two.call("session.send", steer("m-5", "steered")).await;
    let wait = json!({"prompt": "waited for", "messageId": "m-6"});
    let wait = one.start("session.sendAndWait", wait).boxed();
    one.call("session.queue.pendingItems", json!({})).await;
    let told = one.count("pending_messages.modified");
    let aborted = one.call("session.abort", json!({})).await;
    let removed = json!(["m-4", "m-2", "m-6"]);
    assert_eq!(
        aborted,
        json!({"success": true, "removedMessageIds": removed})
    );
    assert!(
        one.count("pending_messages.modified") > told,
        "the queue changed"
    );
    assert_eq!(wait.await.unwrap()["aborted"], true);
    gate.open();
    one.next("session.idle").await;
    two.next("session.idle").await;
    assert_eq!(said(&one), ["one", "steered", "other"]);
    assert_eq!(one.count("abort"), 1);
    let abort = last(&two, "abort");
    assert_eq!(abort["reason"], "user_initiated");
    assert_eq!(abort["removedMessageIds"], removed);
    assert_eq!(abort["abortedBy"]["name"], "first");
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_by_another_client_stops_the_turn_and_keeps_what_its_owner_queued() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("never said").held_by(&gate),
        Turn::user("mine").says("m"),
    ])
    .await;
    let (mut one, two) = two_clients(&daemon, &gate).await;
    send_as(&one, "m-2", "mine").await;
    send_as(&two, "m-3", "dropped").await;
    let aborted = two
        .call("session.abort", json!({"reason": "remote_command"}))
        .await;
    assert_eq!(
        aborted,
        json!({"success": true, "removedMessageIds": ["m-3"]})
    );
    gate.open();
    one.next("session.idle").await;
    assert_eq!(said(&one), ["one", "mine"]);
    let abort = last(&one, "abort");
    assert_eq!(abort["abortedBy"]["name"], "second");
    assert_eq!(abort["reason"], "remote_command");
    let wrong = two
        .refused("session.abort", json!({"reason": "boredom"}))
        .await;
    assert_eq!(wrong.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn an_interrupt_drops_or_keeps_what_its_caller_queued() {
    let (gate, later) = (Gate::new(), Gate::new());
    let daemon = Daemon::playing([
        Turn::user("one").says("never said").held_by(&gate),
        Turn::user("kept").says("never said").held_by(&later),
        Turn::user("other").says("o"),
    ])
    .await;
    let (mut one, two) = two_clients(&daemon, &gate).await;
    let method = "session.interruptMainTurn";
    send_as(&one, "m-2", "kept").await;
    let flushed = one.call(method, json!({"flushQueued": true})).await;
    assert_eq!(flushed, json!({"interrupted": true}));
    later.reached().await;
    send_as(&one, "m-3", "dropped").await;
    send_as(&two, "m-4", "other").await;
    let interrupted = one.call(method, json!({})).await;
    assert_eq!(
        interrupted,
        json!({"interrupted": true, "removedMessageIds": ["m-3"]})
    );
    gate.open();
    later.open();
    one.next("session.idle").await;
    assert_eq!(said(&one), ["one", "kept", "other"]);
    let idle = one.call(method, json!({})).await;
    assert_eq!(idle, json!({"interrupted": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_guarded_interrupt_stops_no_turn_of_another_message() {
    let (gate, later) = (Gate::new(), Gate::new());
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("never said").held_by(&later),
    ])
    .await;
    let (mut one, mut two) = two_clients(&daemon, &gate).await;
    send_as(&two, "m-2", "two").await;
    let steering = json!({"prompt": "aside", "messageId": "m-3", "mode": "immediate"});
    two.call("session.send", steering).await;
    let method = "session.interruptMainTurn";
    let only = |id: &str| json!({"onlyMessageId": id});
    for id in ["m-2", "m-3"] {
        let spared = two.call(method, only(id)).await;
        let expected = json!({"interrupted": false, "runningMessageId": "m-1", "runningBy": {"name": "first"}});
        assert_eq!(without_ids(spared), expected, "{id} waits");
    }
    let removed = json!({"id": "m-3"});
    two.call("session.queue.removeAt", removed).await;
    gate.open();
    later.reached().await;
    let stopped = two.call(method, only("m-2")).await;
    assert_eq!(stopped, json!({"interrupted": true}));
    one.next("session.idle").await;
    two.next("session.idle").await;
    assert_eq!(said(&one), ["one", "two"]);
    assert_eq!(one.count("abort"), 1);
    later.open();
    daemon.finish().await;
}

#[tokio::test]
async fn steering_in_a_foreign_turn_does_not_make_the_turn_ones_own() {
    let (gate, later) = (Gate::new(), Gate::new());
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("aside").says("2").held_by(&later),
    ])
    .await;
    let (mut one, two) = two_clients(&daemon, &gate).await;
    let steer =
        |id: &str, prompt: &str| json!({"prompt": prompt, "messageId": id, "mode": "immediate"});
    one.call("session.send", steer("m-2", "more")).await;
    two.call("session.send", steer("m-3", "aside")).await;
    gate.open();
    later.reached().await;
    let method = "session.interruptMainTurn";
    let spared = two.call(method, json!({"onlyMessageId": "m-3"})).await;
    assert_eq!(spared["interrupted"], false);
    assert_eq!(spared["runningMessageId"], "m-1");
    let stopped = one.call(method, json!({"onlyMessageId": "m-2"})).await;
    assert_eq!(
        stopped["interrupted"], true,
        "steering of its owner names the turn as well"
    );
    one.next("session.idle").await;
    later.open();
    daemon.finish().await;
}

#[tokio::test]
async fn steering_sent_while_a_question_is_open_is_named_by_the_abort_that_drops_it() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("c", "bash", json!({"command": "echo hi"}))]),
        Turn::user("fresh").says("fine"),
    ])
    .await;
    let mut one = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    one.send("one").await;
    one.permission().await;
    let steering = json!({"prompt": "rather not", "messageId": "m-2", "mode": "immediate"});
    one.call("session.send", steering).await;
    let aborted = one.call("session.abort", json!({})).await;
    assert_eq!(aborted["removedMessageIds"], json!(["m-2"]));
    one.next("session.idle").await;
    assert_eq!(last(&one, "abort")["removedMessageIds"], json!(["m-2"]));
    one.ask("fresh").await;
    daemon.finish().await;
}

#[tokio::test]
async fn messages_of_a_client_before_a_restart_are_nobodys_to_drop() {
    let gate = Gate::new();
    let mut daemon = Daemon::playing([
        Turn::user("one").says("never said").held_by(&gate),
        Turn::user("new").says("never said"),
    ])
    .await;
    let (one, _two) = two_clients(&daemon, &gate).await;
    send_as(&one, "m-2", "waits").await;
    daemon.restart().await;
    gate.open();
    let again = daemon.client().resume(&one.id, json!({})).await;
    let aborted = again.call("session.abort", json!({})).await;
    assert_eq!(aborted, json!({"success": true}));
    let queue = again.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][0]["messageId"], "m-2");
    assert_eq!(queue["items"][0]["sentBy"]["name"], "first");
    again.call("session.queue.clear", json!({})).await;
    let mut again = again;
    again.ask("new").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_connects_again_under_its_id_has_its_messages_still() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("never said").held_by(&gate)]).await;
    let other = daemon.client().create(json!({})).await;
    let me = json!({"loopdClientId": "me", "clientInfo": {"editorName": "editor\u{1b}[2J"}});
    let first = daemon.client();
    first.call("connect", me.clone()).await;
    let session = first.resume(&other.id, json!({})).await;
    other.send("one").await;
    gate.reached().await;
    send_as(&session, "m-2", "mine").await;
    first.vanish().await;
    let again = daemon.client();
    again.call("connect", me).await;
    let mut again = again.resume(&other.id, json!({})).await;
    let queue = again.call("session.queue.pendingItems", json!({})).await;
    let sender = json!({"id": "me", "name": "editor[2J"});
    assert_eq!(queue["items"][0]["sentBy"], sender);
    let aborted = again.call("session.abort", json!({})).await;
    assert_eq!(aborted["removedMessageIds"], json!(["m-2"]));
    again.next("session.idle").await;
    gate.open();
    let wrong = json!({"loopdClientId": "x".repeat(65)});
    let wrong = daemon.client().refused("connect", wrong).await;
    assert_eq!(wrong.code, -32602);
    daemon.finish().await;
}

/// The answer without the ids of connections, which differ from run to run.
fn without_ids(mut answer: Value) -> Value {
    if let Some(by) = answer["runningBy"].as_object_mut() {
        by.remove("id");
    }
    answer
}
