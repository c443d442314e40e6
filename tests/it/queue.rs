//! Messages and commands that wait: first in first out, steering, repeats, slash commands.

use loopd_tests::{Daemon, Gate, Session, Turn, call};
use serde_json::{Value, json};

/// What the user said so far, and how each message met the loop.
fn user_messages(session: &Session) -> Vec<(Value, Value)> {
    session
        .events()
        .iter()
        .filter(|event| event["type"] == "user.message")
        .map(|event| {
            (
                event["data"]["content"].clone(),
                event["data"]["delivery"].clone(),
            )
        })
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(Value, Value)> {
    expected
        .iter()
        .map(|(text, delivery)| (json!(text), json!(delivery)))
        .collect()
}

async fn steer(session: &Session, prompt: &str) {
    let params = json!({"prompt": prompt, "mode": "immediate"});
    session.call("session.send", params).await;
}

#[tokio::test]
async fn messages_wait_in_order_and_each_is_its_own_turn() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
        Turn::user("four").says("4"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    let two = session.send("three").await;
    let three = session.send("four").await;
    let params = json!({"prompt": "two", "prepend": true});
    let first = session.call("session.send", params).await["messageId"].clone();
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    let sender = queue["items"][0]["sentBy"].clone();
    assert!(sender["id"].is_string(), "{queue}");
    let item = |id: Value, text: &str| {
        json!({"id": id, "messageId": id, "kind": "message", "displayText": text,
            "agentMode": "interactive", "sentBy": sender})
    };
    let items = [
        item(first, "two"),
        item(json!(two), "three"),
        item(json!(three), "four"),
    ];
    assert_eq!(queue, json!({"items": items, "steeringMessages": []}));
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        session.count("session.idle"),
        1,
        "idle comes when the queue is drained, not before"
    );
    assert_eq!(
        user_messages(&session),
        pairs(&[
            ("one", "idle"),
            ("two", "queued"),
            ("three", "queued"),
            ("four", "queued")
        ])
    );
    assert_eq!(session.count("assistant.turn_start"), 4);
    daemon.finish().await;
}

#[tokio::test]
async fn what_waits_can_be_taken_out_again() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    session.send("three").await;
    let removed = session
        .call("session.queue.removeMostRecent", json!({}))
        .await;
    assert_eq!(removed, json!({"removed": true}));
    gate.open();
    session.next("session.idle").await;
    assert_eq!(session.count("user.message"), 2);
    let removed = session
        .call("session.queue.removeMostRecent", json!({}))
        .await;
    assert_eq!(removed, json!({"removed": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn clearing_the_queue_leaves_the_running_turn_alone() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    steer(&session, "three").await;
    session.call("session.queue.clear", json!({})).await;
    gate.open();
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"].get("aborted"), None);
    assert_eq!(session.count("user.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn steering_joins_the_running_loop_before_its_next_model_call() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("go")
            .calls([call("c", "bash", json!({"command": "echo result"}))])
            .held_by(&gate),
        Turn::user("rather left").says("left it is"),
        Turn::user("queued").says("at last"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.send("go").await;
    gate.reached().await;
    session.send("queued").await;
    steer(&session, "rather left").await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["steeringMessages"], json!(["rather left"]));
    gate.open();
    session.next("session.idle").await;
    let request = &daemon.script().requests()[1];
    let roles: Vec<&Value> = request
        .messages()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    assert_eq!(
        user_messages(&session),
        pairs(&[
            ("go", "idle"),
            ("rather left", "steering"),
            ("queued", "queued")
        ])
    );
    let interactions: Vec<Value> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "assistant.turn_start")
        .map(|event| event["data"]["interactionId"].clone())
        .collect();
    assert_eq!(
        interactions[0], interactions[1],
        "steering belongs to the running interaction"
    );
    assert_ne!(
        interactions[1], interactions[2],
        "a queued message is an interaction of its own"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn steering_during_the_last_words_still_reaches_the_model_first() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("go").says("done").held_by(&gate),
        Turn::user("one more thing").says("also done"),
        Turn::user("queued").says("at last"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    session.send("queued").await;
    steer(&session, "one more thing").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(session.count("session.idle"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn steering_that_the_turn_did_not_live_to_hear_is_queued_first() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("go").fails(400, "no").held_by(&gate),
        Turn::user("steered").says("heard"),
        Turn::user("queued").says("at last"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    session.send("queued").await;
    steer(&session, "steered").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(session.count("session.error"), 1);
    assert_eq!(session.count("user.message"), 3);
    daemon.finish().await;
}

#[tokio::test]
async fn steering_an_idle_session_is_sending() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    steer(&session, "hello").await;
    session.next("session.idle").await;
    assert_eq!(user_messages(&session), pairs(&[("hello", "idle")]));
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_sent_twice_with_one_id_is_heard_once() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("hello").says("hi").held_by(&gate),
        Turn::user("bye").says("bye"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let hello = json!({"prompt": "hello", "messageId": "m-1"});
    let once = json!({"messageId": "m-1"});
    assert_eq!(session.call("session.send", hello.clone()).await, once);
    gate.reached().await;
    assert_eq!(
        session.call("session.send", hello.clone()).await,
        once,
        "while it runs"
    );
    let bye = json!({"prompt": "bye", "messageId": "m-2"});
    session.call("session.send", bye.clone()).await;
    session.call("session.send", bye).await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        session.call("session.send", hello.clone()).await,
        once,
        "when it is over"
    );
    session.destroy().await;
    let session = session.client().resume(&session.id, json!({})).await;
    assert_eq!(
        session.call("session.send", hello).await,
        once,
        "after a resume"
    );
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"], json!([]));
    let heard = session.messages().await;
    let heard = heard
        .iter()
        .filter(|event| event["type"] == "user.message")
        .count();
    assert_eq!(heard, 2);
    daemon.finish().await;
}

#[tokio::test]
async fn slash_commands_wait_like_messages_and_a_client_runs_them() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
    ])
    .await;
    let commands = json!([{"name": "deploy", "description": "Deploys"}]);
    let mut session = daemon.client().create(json!({"commands": commands})).await;
    let only_clients = json!({"includeBuiltins": false});
    let listed = session.call("session.commands.list", only_clients).await;
    assert_eq!(
        listed,
        json!({"commands": [{"name": "deploy", "description": "Deploys", "kind": "client",
            "allowDuringAgentExecution": true}]})
    );
    let wrong = session
        .refused("session.commands.enqueue", json!({"command": "deploy"}))
        .await;
    assert_eq!(wrong.code, -32602);
    session.send("one").await;
    gate.reached().await;
    let queued = session
        .call(
            "session.commands.enqueue",
            json!({"command": "/deploy now"}),
        )
        .await;
    assert_eq!(queued, json!({"queued": true}));
    session.send("two").await;
    gate.open();
    let command = session.next("command.queued").await;
    assert_eq!(command["data"]["command"], "/deploy now");
    assert_eq!(
        daemon.script().requests().len(),
        1,
        "the message behind it waits"
    );
    let request = command["data"]["requestId"].clone();
    let answer = json!({"requestId": request, "result": {"handled": true}});
    let respond = "session.commands.respondToQueuedCommand";
    assert_eq!(
        session.call(respond, answer.clone()).await,
        json!({"success": true})
    );
    assert_eq!(
        session.call(respond, answer).await,
        json!({"success": false})
    );
    session.next("command.completed").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_can_stop_the_queue_behind_it() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    session
        .call("session.commands.enqueue", json!({"command": "/quit"}))
        .await;
    let command = session.next("command.queued").await;
    session.send("never").await;
    let request = command["data"]["requestId"].clone();
    let result = json!({"handled": true, "stopProcessingQueue": true});
    let answer = json!({"requestId": request, "result": result});
    session
        .call("session.commands.respondToQueuedCommand", answer)
        .await;
    session.next("session.idle").await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][0]["displayText"], "never");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_reports_its_own_command_as_done() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let handle = "session.commands.handlePendingCommand";
    session
        .call("session.commands.enqueue", json!({"command": "/hello"}))
        .await;
    let command = session.next("command.queued").await;
    let request = command["data"]["requestId"].clone();
    let done = session
        .call(handle, json!({"requestId": request, "error": "it broke"}))
        .await;
    assert_eq!(done, json!({"success": true}));
    session.next("session.idle").await;
    daemon.finish().await;
}
