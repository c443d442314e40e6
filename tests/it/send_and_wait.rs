//! `session.sendAndWait`: each wait ends as its own message does.

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::wire::ErrorObject;
use loopd_tests::{Client, Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

const METHOD: &str = "session.sendAndWait";

/// The wait for what becomes of a message.
type Waiting = BoxFuture<'static, Result<Value, ErrorObject>>;

/// Sends a prompt now and returns the wait for what becomes of it.
fn start(session: &Session, prompt: &str) -> Waiting {
    session.start(METHOD, json!({ "prompt": prompt })).boxed()
}

fn text(completed: &Value) -> &str {
    completed["response"]["data"]["content"]
        .as_str()
        .unwrap_or_default()
}

/// The event that a wait ended with, as this client got it.
fn boundary(session: &Session, id: &Value) -> Value {
    let mut events = session.events().into_iter();
    let found = events.find(|event| event["id"] == *id);
    found.unwrap_or_else(|| panic!("{id} was not sent"))
}

/// The waits for a message that the model holds back, and for one in the queue.
async fn one_runs_and_one_waits(session: &Session, gate: &Gate) -> (Waiting, Waiting) {
    let one = start(session, "one");
    gate.reached().await;
    let two = start(session, "two");
    pending(session, 1).await;
    (one, two)
}

/// A daemon whose model starts an agent in the background when it is told to go, says so, and goes on
/// with these turns; the agent answers when the gate opens.
async fn with_an_agent(gate: &Gate, more: impl IntoIterator<Item = Turn>) -> Daemon {
    let task = call(
        "t",
        "task",
        json!({"prompt": "look", "description": "d", "mode": "background", "agent_type": "general-purpose"}),
    );
    let mut turns = vec![Turn::user("go").calls([task]), Turn::any().says("started")];
    turns.extend(more);
    let agent = vec![Turn::user("look").says("seen").held_by(gate)];
    let script = Script::voices([("go", turns), ("look", agent)]).await;
    Daemon::builder().script(script).yolo().start().await
}

async fn pending(session: &Session, count: usize) {
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"].as_array().unwrap().len(), count);
}

#[tokio::test]
async fn the_answer_is_the_event_itself_and_the_wait_ends_with_idle() {
    let daemon = Daemon::playing([
        Turn::user("go").says_and_calls("first", [call("a", "glob", json!({"pattern": "*"}))]),
        Turn::results([""]).says("last"),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    let completed = session.call(METHOD, json!({"prompt": "go"})).await;
    assert_eq!(completed["aborted"], false);
    let event = boundary(&session, &completed["response"]["id"]);
    assert_eq!(completed["response"], event);
    assert_eq!(text(&completed), "last");
    assert_eq!(
        event["data"]["originatingMessageId"],
        completed["messageId"]
    );
    let idle = boundary(&session, &completed["completionEventId"]);
    assert_eq!(idle["type"], "session.idle");
    daemon.finish().await;
}

#[tokio::test]
async fn two_waits_at_once_get_each_their_own_answer() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    let (one, two) = one_runs_and_one_waits(&session, &gate).await;
    gate.open();
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert_eq!((text(&one), text(&two)), ("1", "2"));
    assert_eq!(one["completionEventId"], two["completionEventId"]);
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_ends_the_waits_and_says_so() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let session = daemon.client().create(json!({})).await;
    let (one, two) = one_runs_and_one_waits(&session, &gate).await;
    session.call("session.abort", json!({})).await;
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert_eq!(
        (&one["aborted"], &two["aborted"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&one["response"], &two["response"]),
        (&Value::Null, &Value::Null)
    );
    let idle = boundary(&session, &one["completionEventId"]);
    assert_eq!(idle["data"]["aborted"], true);
    assert_eq!(two["completionEventId"], Value::Null, "it never ran");
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn an_aborted_message_does_not_wait_for_that_of_another_client() {
    let (gate, others) = (Gate::new(), Gate::new());
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2").held_by(&others),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let one = start(&session, "one");
    gate.reached().await;
    let other = daemon.client().resume(&session.id, json!({})).await;
    other.send("two").await;
    session.call("session.abort", json!({})).await;
    let one = one.await.unwrap();
    assert_eq!(one["aborted"], true, "{one}");
    others.reached().await;
    gate.open();
    others.open();
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_answered_message_stays_answered_when_the_next_one_is_aborted() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2").held_by(&gate),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    let one = start(&session, "one");
    let two = start(&session, "two");
    gate.reached().await;
    session.call("session.abort", json!({})).await;
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert_eq!((&one["aborted"], text(&one)), (&json!(false), "1"));
    assert_eq!(two["aborted"], true);
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_leaves_the_queue_ends_its_wait_quietly() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let session = daemon.client().create(json!({})).await;
    let (one, two) = one_runs_and_one_waits(&session, &gate).await;
    session.call("session.queue.clear", json!({})).await;
    let two = two.await.unwrap();
    assert_eq!(two["aborted"], true);
    assert_eq!(two["completionEventId"], Value::Null);
    gate.open();
    assert_eq!(text(&one.await.unwrap()), "1");
    daemon.finish().await;
}

#[tokio::test]
async fn a_failed_run_fails_its_own_wait_and_names_the_error() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").fails(400, "wrong").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    let one = start(&session, "one");
    gate.reached().await;
    let two = start(&session, "two");
    gate.open();
    let error = one.await.unwrap_err();
    assert_eq!(error.code, -32603);
    assert!(error.message.contains("wrong"), "{error}");
    let event = boundary(&session, &error.data.unwrap()["completionEventId"]);
    assert_eq!(event["type"], "session.error");
    assert_eq!(text(&two.await.unwrap()), "2");
    daemon.finish().await;
}

#[tokio::test]
async fn to_give_up_a_wait_stops_nothing() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let params = json!({"sessionId": session.id, "prompt": "one"});
    let waiting = client.pending(METHOD, params);
    gate.reached().await;
    drop(waiting);
    gate.open();
    session.next("session.idle").await;
    assert_eq!(session.count("abort"), 0);
    assert_eq!(text(&start(&session, "two").await.unwrap()), "2");
    daemon.finish().await;
}

#[tokio::test]
async fn steering_waits_for_the_run_that_it_joined() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one")
            .calls([call("a", "glob", json!({"pattern": "*"}))])
            .held_by(&gate),
        Turn::user("steer").says("both"),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    let one = start(&session, "one");
    gate.reached().await;
    let steer = session.start(METHOD, json!({"prompt": "steer", "mode": "immediate"}));
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["steeringMessages"].as_array().unwrap().len(), 1);
    gate.open();
    let (one, steer) = (one.await.unwrap(), steer.await.unwrap());
    assert_eq!((text(&one), text(&steer)), ("both", "both"));
    assert_ne!(one["messageId"], steer["messageId"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_wait_for_idle_gets_what_background_agents_led_to() {
    let gate = Gate::new();
    let daemon = with_an_agent(&gate, [Turn::any().says("all of it")]).await;
    let session = daemon.client().create(json!({})).await;
    let answer = session.start(METHOD, json!({"prompt": "go", "loopdUntil": "answer"}));
    let answered = answer.await.unwrap();
    assert_eq!(text(&answered), "started");
    let event = boundary(&session, &answered["completionEventId"]);
    assert_eq!(event["type"], "assistant.idle");
    // Asked again with its id while the agent works, as after a broken connection.
    let again = json!({"prompt": "go", "messageId": answered["messageId"]});
    let all = session.start(METHOD, again.clone());
    gate.reached().await;
    gate.open();
    let all = all.await.unwrap();
    assert_eq!(text(&all), "all of it");
    let event = boundary(&session, &all["completionEventId"]);
    assert_eq!(event["type"], "session.idle");
    let late = session.call(METHOD, again).await;
    assert_eq!(late["aborted"], false);
    assert_eq!(late["completionEventId"], Value::Null, "it was sent before");
    daemon.finish().await;
}

#[tokio::test]
async fn what_an_agent_of_one_message_led_to_is_not_the_answer_to_another() {
    let gate = Gate::new();
    let daemon = with_an_agent(
        &gate,
        [
            Turn::user("aside").says("by the way"),
            Turn::any().says("all of it"),
        ],
    )
    .await;
    let session = daemon.client().create(json!({})).await;
    let go = start(&session, "go");
    gate.reached().await;
    let aside = session.start(METHOD, json!({"prompt": "aside", "loopdUntil": "answer"}));
    assert_eq!(text(&aside.await.unwrap()), "by the way");
    gate.open();
    let go = go.await.unwrap();
    assert_eq!(text(&go), "all of it");
    assert_eq!(
        go["response"]["data"]["originatingMessageId"],
        go["messageId"]
    );
    daemon.finish().await;
}

#[tokio::test]
async fn who_asks_for_a_message_that_only_waits_gets_it_going() {
    let gate = Gate::new();
    let mut daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    let two = json!({"prompt": "two", "messageId": "mine"});
    session.call("session.send", two.clone()).await;
    let id = session.id.clone();
    daemon.restart().await;
    let session = daemon.client().resume(&id, json!({})).await;
    assert_eq!(text(&session.call(METHOD, two).await), "2");
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn an_id_belongs_to_one_message() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let session = daemon.client().create(json!({})).await;
    session
        .call(METHOD, json!({"prompt": "one", "messageId": "mine"}))
        .await;
    let other = json!({"prompt": "another", "messageId": "mine"});
    for method in [METHOD, "session.send"] {
        let refused = session.refused(method, other.clone()).await;
        assert!(refused.message.contains("mine"), "{refused}");
    }
    let empty = json!({"prompt": "x", "messageId": ""});
    let refused = session.refused(METHOD, empty).await;
    assert!(refused.message.contains("messageId"), "{refused}");
    let refused = session
        .refused(METHOD, json!({"prompt": "x", "agentMode": "nonsense"}))
        .await;
    assert!(refused.message.contains("agentMode"), "{refused}");
    daemon.finish().await;
}

#[tokio::test]
async fn who_asks_again_after_a_restart_gets_the_stored_answer() {
    let mut daemon = Daemon::playing([Turn::user("go").says("kept")]).await;
    let session = daemon.client().create(json!({})).await;
    let first = session.call(METHOD, json!({"prompt": "go"})).await;
    let id = session.id.clone();
    daemon.restart().await;
    let session = daemon.client().resume(&id, json!({})).await;
    let again = json!({"prompt": "go", "messageId": first["messageId"]});
    let late = session.call(METHOD, again).await;
    assert_eq!(late["response"], first["response"]);
    assert_eq!(session.count("user.message"), 0, "nothing is sent twice");
    daemon.finish().await;
}

#[tokio::test]
async fn a_wait_ends_when_its_connection_leaves_and_when_the_session_does() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let session = daemon.client().create(json!({})).await;
    let other = daemon.client();
    let theirs = other.resume(&session.id, json!({})).await;
    let one = start(&session, "one");
    gate.reached().await;
    let two = start(&theirs, "two");
    pending(&session, 1).await;
    session.call("session.detach", json!({})).await;
    let error = one.await.unwrap_err();
    assert!(error.message.contains("has left the session"), "{error}");
    other
        .call("session.shutdown", json!({"sessionId": theirs.id}))
        .await;
    let error = two.await.unwrap_err();
    assert!(error.message.contains("ended before"), "{error}");
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn bad_parameters_are_named_and_nothing_is_sent() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let refused = session.refused(METHOD, json!({"prompt": 1})).await;
    assert_eq!(refused.code, -32602);
    assert!(refused.message.contains("prompt"), "{refused}");
    for (member, value) in [("responseFormat", "something"), ("requiredTool", "")] {
        let wants = json!({"prompt": "x", member: value});
        for method in [METHOD, "session.send"] {
            let refused = session.refused(method, wants.clone()).await;
            assert!(refused.message.contains(member), "{refused}");
        }
    }
    let unknown = json!({"prompt": "x", "loopdUntil": "tomorrow"});
    let refused = session.refused(METHOD, unknown).await;
    assert!(refused.message.contains("loopdUntil"), "{refused}");
    pending(&session, 0).await;
    daemon.finish().await;
}

/// More waits than a connection may have requests under way: what ends them still gets through.
#[tokio::test]
async fn many_waits_do_not_block_their_own_connection() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("first").says("1").held_by(&gate)]).await;
    let client: Client = daemon.client();
    let session = client.create(json!({})).await;
    let first = start(&session, "first");
    gate.reached().await;
    let waits: Vec<_> = (0..400).map(|_| start(&session, "later")).collect();
    pending(&session, 400).await;
    session.call("session.abort", json!({})).await;
    assert_eq!(first.await.unwrap()["aborted"], true);
    for wait in waits {
        assert_eq!(wait.await.unwrap()["aborted"], true);
    }
    gate.open();
    daemon.finish().await;
}
