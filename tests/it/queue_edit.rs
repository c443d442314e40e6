//! Changing what waits in the queue, by any attached client: move, edit, insert, remove, send now,
//! withdraw.

use futures::FutureExt;
use loopd_tests::{Client, Daemon, Gate, Session, Turn, call};
use serde_json::{Value, json};

/// A session whose first turn the gate holds, with another client attached to it.
async fn held(daemon: &Daemon, gate: &Gate) -> (Session, Session) {
    let session = daemon.client().create(json!({})).await;
    let other = daemon.client().resume(&session.id, json!({})).await;
    session.send("one").await;
    gate.reached().await;
    (session, other)
}

/// The texts that wait, first to last.
async fn waiting(session: &Session) -> Vec<String> {
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    let items = queue["items"].as_array().unwrap().iter();
    items
        .map(|item| item["displayText"].as_str().unwrap().to_owned())
        .collect()
}

/// What the user said, as the events tell it.
fn said(session: &Session) -> Vec<Value> {
    let events = session.events();
    let users = events
        .iter()
        .filter(|event| event["type"] == "user.message");
    users
        .map(|event| event["data"]["content"].clone())
        .collect()
}

#[tokio::test]
async fn an_item_is_moved_to_a_position_and_everyone_is_told() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("three").says("3"),
        Turn::user("two").says("2"),
    ])
    .await;
    let (mut session, mut other) = held(&daemon, &gate).await;
    let two = session.send("two").await;
    let three = session.send("three").await;
    let told = session.count("pending_messages.modified");
    let to = |id: &str, position: i64| json!({"id": id, "toPosition": position});
    let method = "session.queue.moveItem";
    let moved = other.call(method, to(&three, 0)).await;
    assert_eq!(moved, json!({"changed": true}));
    assert_eq!(waiting(&other).await, ["three", "two"]);
    assert_eq!(session.count("pending_messages.modified"), told + 1);
    // Positions outside the queue mean its ends; an item that is there already stays.
    let moved = other.call(method, to(&two, 99)).await;
    assert_eq!(moved, json!({"changed": false}));
    let moved = other.call(method, to(&three, -3)).await;
    assert_eq!(moved, json!({"changed": false}));
    assert_eq!(session.count("pending_messages.modified"), told + 1);
    let gone = other.refused(method, to("nothing", 0)).await;
    assert!(gone.message.contains("nothing"), "{}", gone.message);
    gate.open();
    session.next("session.idle").await;
    other.next("session.idle").await;
    assert_eq!(said(&session), ["one", "three", "two"]);
    let gone = other.refused(method, to(&two, 0)).await;
    assert!(gone.message.contains("pendingItems"), "{}", gone.message);
    daemon.finish().await;
}

#[tokio::test]
async fn an_edited_text_is_what_the_model_and_the_event_say_and_attachments_stay() {
    let gate = Gate::new();
    let mut daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("better").says("2"),
    ])
    .await;
    std::fs::write(daemon.file("note.txt"), "a note").unwrap();
    let (session, other) = held(&daemon, &gate).await;
    let file =
        json!([{"type": "file", "path": daemon.file("note.txt"), "displayName": "note.txt"}]);
    let two =
        json!({"prompt": "two", "displayPrompt": "2", "messageId": "m-2", "attachments": file});
    session.call("session.send", two.clone()).await;
    let method = "session.queue.updateText";
    let edit = json!({"id": "m-2", "prompt": "better"});
    assert_eq!(
        other.call(method, edit.clone()).await,
        json!({"updated": true})
    );
    assert_eq!(
        other.call(method, edit.clone()).await,
        json!({"updated": false})
    );
    assert_eq!(
        waiting(&session).await,
        ["better"],
        "the old display text is gone"
    );
    // The edit outlives the daemon.
    daemon.restart().await;
    gate.open();
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(waiting(&session).await, ["better"]);
    // The first send is still known by its own text.
    session.call("session.send", two).await;
    session.next("session.idle").await;
    let heard = daemon.script().last_request().last_user_text();
    assert!(
        heard.contains("better") && !heard.contains("two"),
        "{heard}"
    );
    let messages = session.messages().await;
    let last = messages
        .iter()
        .rfind(|event| event["type"] == "user.message")
        .unwrap();
    assert_eq!(last["data"]["content"], "better");
    assert_eq!(last["data"]["attachments"][0]["displayName"], "note.txt");
    let gone = session.refused(method, edit).await;
    assert!(gone.message.contains("m-2"), "{}", gone.message);
    daemon.finish().await;
}

#[tokio::test]
async fn only_messages_are_edited_and_sent_now() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let (mut session, other) = held(&daemon, &gate).await;
    let command = json!({"command": "/deploy"});
    session.call("session.commands.enqueue", command).await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    let item = queue["items"][0].clone();
    assert_eq!(item["kind"], "command");
    assert_eq!(item.get("messageId"), None);
    for (method, params) in [
        (
            "session.queue.updateText",
            json!({"id": item["id"], "prompt": "/other"}),
        ),
        ("session.queue.sendNow", json!({"id": item["id"]})),
    ] {
        let refused = other.refused(method, params).await;
        assert!(
            refused.message.contains("slash command"),
            "{}",
            refused.message
        );
    }
    let removed = json!({"id": item["id"]});
    let removed = other.call("session.queue.removeAt", removed).await;
    assert_eq!(removed, json!({"removed": true}));
    gate.open();
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_edited_message_stays_a_message_and_that_of_a_command_keeps_its_text() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("/compact now").says("2"),
        Turn::user("the review").says("3"),
    ])
    .await;
    let (mut session, other) = held(&daemon, &gate).await;
    let scoped =
        json!({"prompt": "the review", "messageId": "m-3", "runScope": {"command": "review"}});
    session
        .call("session.send", json!({"prompt": "two", "messageId": "m-2"}))
        .await;
    session.call("session.send", scoped).await;
    let method = "session.queue.updateText";
    let edit = |id: &str, prompt: &str| json!({"id": id, "prompt": prompt});
    for empty in ["", " \n"] {
        let refused = other.refused(method, edit("m-2", empty)).await;
        assert!(
            refused.message.contains(": prompt: it is empty"),
            "{}",
            refused.message
        );
    }
    let refused = other.refused(method, edit("m-3", "delete all")).await;
    assert!(
        refused.message.contains("slash command"),
        "{}",
        refused.message
    );
    let edited = other.call(method, edit("m-2", "/compact now")).await;
    assert_eq!(edited, json!({"updated": true}));
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][0]["kind"], "message");
    gate.open();
    session.next("session.idle").await;
    assert_eq!(said(&session), ["one", "/compact now", "the review"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_removed_message_ends_its_wait_as_aborted() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let (mut session, other) = held(&daemon, &gate).await;
    let two = json!({"prompt": "two", "messageId": "m-2"});
    let wait = session.start("session.sendAndWait", two).boxed();
    assert_eq!(waiting(&session).await, ["two"]);
    let method = "session.queue.removeAt";
    let removed = other.call(method, json!({"id": "m-2"})).await;
    assert_eq!(removed, json!({"removed": true}));
    assert_eq!(
        wait.await.unwrap(),
        json!({"messageId": "m-2", "aborted": true}),
        "no event ends a quiet removal"
    );
    let removed = other.call(method, json!({"id": "m-2"})).await;
    assert_eq!(removed, json!({"removed": false}));
    gate.open();
    session.next("session.idle").await;
    assert_eq!(said(&session), ["one"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_is_inserted_at_a_position() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("two").says("2"),
        Turn::user("between").says("2.5"),
        Turn::user("three").says("3"),
        Turn::user("at once").says("4"),
    ])
    .await;
    let (mut session, mut other) = held(&daemon, &gate).await;
    session.send("two").await;
    session.send("three").await;
    let method = "session.queue.insertAt";
    let at =
        |position: u64, prompt: &str| json!({"position": position, "message": {"prompt": prompt}});
    let inserted = other.call(method, at(1, "between")).await;
    assert_eq!(waiting(&session).await, ["two", "between", "three"]);
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][1]["id"], inserted["id"]);
    assert_eq!(queue["items"][1]["messageId"], inserted["id"]);
    let hidden = json!({"position": 0, "message": {"prompt": "psst", "source": "system"}});
    let refused = other.refused(method, hidden).await;
    assert_eq!(refused.code, -32602);
    assert!(refused.message.contains("source"), "{}", refused.message);
    gate.open();
    session.next("session.idle").await;
    other.next("session.idle").await;
    assert_eq!(said(&session), ["one", "two", "between", "three"]);
    // Into an idle session, the message starts a turn.
    other.call(method, at(7, "at once")).await;
    session.next("session.idle").await;
    assert_eq!(session.count("user.message"), 5);
    daemon.finish().await;
}

#[tokio::test]
async fn a_queued_message_is_steered_into_the_running_turn() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one")
            .calls([call("c", "bash", json!({"command": "echo result"}))])
            .held_by(&gate),
        Turn::user("three").says("now"),
        Turn::user("two").says("later"),
    ])
    .await;
    let (mut session, other) = held(&daemon, &gate).await;
    session.approve_all().await;
    session.send("two").await;
    let three = session.send("three").await;
    let method = "session.queue.sendNow";
    let now = json!({"id": three});
    assert_eq!(
        other.call(method, now.clone()).await,
        json!({"steered": true})
    );
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["steeringMessages"], json!(["three"]));
    assert_eq!(waiting(&session).await, ["two"]);
    gate.open();
    session.next("session.idle").await;
    assert_eq!(said(&session), ["one", "three", "two"]);
    let events = session.events();
    let steered = events
        .iter()
        .find(|event| event["data"]["content"] == "three" && event["type"] == "user.message");
    assert_eq!(steered.unwrap()["data"]["delivery"], "steering");
    let gone = other.refused(method, now).await;
    assert!(gone.message.contains(&three), "{}", gone.message);
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_live_turn_nothing_is_sent_now() {
    let gate = Gate::new();
    let mut daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let (session, _other) = held(&daemon, &gate).await;
    let two = session.send("two").await;
    daemon.restart().await;
    gate.open();
    let session = daemon.client().resume(&session.id, json!({})).await;
    let steered = json!({"id": two});
    let steered = session.call("session.queue.sendNow", steered).await;
    assert_eq!(steered, json!({"steered": false}));
    assert_eq!(waiting(&session).await, ["two"]);
    session.call("session.queue.clear", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_unchanged_message_is_withdrawn_and_an_edited_one_is_not() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("1").held_by(&gate),
        Turn::user("better").says("2"),
    ])
    .await;
    let (mut session, other) = held(&daemon, &gate).await;
    let method = "session.queue.withdrawMessage";
    let withdraw = |id: &str, prompt: &str| json!({"messageId": id, "expectedPrompt": prompt});
    let two = session.send("two").await;
    let wait = json!({"prompt": "three", "messageId": "m-3"});
    let wait = session.start("session.sendAndWait", wait).boxed();
    let steering = json!({"prompt": "four", "mode": "immediate", "messageId": "m-4"});
    session.call("session.send", steering).await;
    let edit = json!({"id": two, "prompt": "better"});
    other.call("session.queue.updateText", edit).await;
    let no = json!({"removed": false, "interrupted": false});
    let yes = json!({"removed": true, "interrupted": false});
    assert_eq!(session.call(method, withdraw(&two, "two")).await, no);
    assert_eq!(session.call(method, withdraw("m-3", "three")).await, yes);
    assert_eq!(session.call(method, withdraw("m-3", "three")).await, no);
    assert_eq!(session.call(method, withdraw("m-4", "four")).await, yes);
    assert_eq!(wait.await.unwrap()["aborted"], true);
    gate.open();
    session.next("session.idle").await;
    assert_eq!(said(&session), ["one", "better"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_is_being_prepared_is_withdrawn_with_its_turn() {
    let gate = Gate::new();
    let script = loopd_tests::Script::play([]).await;
    script.hold_models(&gate);
    let daemon = Daemon::builder().copilot(script).start().await;
    let mut session = daemon.client().create(json!({})).await;
    let one = session.send("one").await;
    gate.reached().await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["withdrawableTurnMessageId"], json!(one));
    let params = json!({"messageId": one, "expectedPrompt": "one"});
    let withdrawn = session.call("session.queue.withdrawMessage", params).await;
    assert_eq!(withdrawn, json!({"removed": true, "interrupted": true}));
    session.next("session.idle").await;
    assert_eq!(said(&session), [] as [Value; 0]);
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn who_is_not_attached_changes_nothing() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let (mut session, _other) = held(&daemon, &gate).await;
    let two = session.send("two").await;
    let stranger: Client = daemon.client();
    for (method, params) in [
        (
            "session.queue.moveItem",
            json!({"id": two, "toPosition": 0}),
        ),
        (
            "session.queue.updateText",
            json!({"id": two, "prompt": "x"}),
        ),
        ("session.queue.removeAt", json!({"id": two})),
        (
            "session.queue.insertAt",
            json!({"position": 0, "message": {"prompt": "x"}}),
        ),
        ("session.queue.sendNow", json!({"id": two})),
        (
            "session.queue.withdrawMessage",
            json!({"messageId": two, "expectedPrompt": "two"}),
        ),
        ("session.interruptMainTurn", json!({})),
    ] {
        let refused = stranger.session(&session.id).refused(method, params).await;
        assert!(
            refused.message.contains("Session not found"),
            "{method}: {}",
            refused.message
        );
    }
    session.call("session.queue.clear", json!({})).await;
    gate.open();
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn large_texts_that_wait_are_listed_by_their_beginnings_and_have_a_limit_together() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let (mut session, _other) = held(&daemon, &gate).await;
    let large = "x".repeat(2 * 1024 * 1024);
    for _ in 0..8 {
        session.send(&large).await;
    }
    let send = json!({"prompt": large});
    let refused = session.refused("session.send", send).await;
    let limit = "it holds at most 16777216";
    assert!(refused.message.contains(limit), "{}", refused.message);
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    let items = queue["items"].as_array().unwrap();
    let length = |at: usize| items[at]["displayText"].as_str().unwrap().chars().count();
    assert_eq!((items.len(), length(1)), (8, large.len()));
    assert_eq!(items[1]["isShortened"], Value::Null);
    assert_eq!((&items[7]["isShortened"], length(7)), (&json!(true), 201));
    session.call("session.queue.clear", json!({})).await;
    gate.open();
    session.next("session.idle").await;
    daemon.finish().await;
}
