//! Stopping a turn at every point of it.

use loopd_tests::{Daemon, Gate, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};

/// Aborts and waits for the end of the loop, which has to say that it was aborted.
async fn abort(session: &mut Session) {
    let aborted = session.call("session.abort", json!({})).await;
    assert_eq!(aborted, json!({"success": true}));
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
}

fn last(session: &Session, kind: &str) -> Value {
    let events = session.events();
    let found = events.iter().rev().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("there is no {kind}"))["data"].clone()
}

#[tokio::test]
async fn while_streaming_the_model_is_hung_up_on_and_the_session_goes_on() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("long story")
            .streams(["once upon"])
            .paused_by(&gate),
        Turn::user("short one").says("the end"),
    ])
    .await;
    let mut session = daemon.client().create(json!({"streaming": true})).await;
    session.send("long story").await;
    session.next("assistant.message_delta").await;
    abort(&mut session).await;
    daemon.script().hung_up().await;
    let kinds = session.durable_kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["abort", "assistant.turn_end"]);
    let idle = session.ask("short one").await;
    assert_eq!(idle["data"].get("aborted"), None);
    daemon.finish().await;
}

#[tokio::test]
async fn while_a_command_runs_it_is_killed_and_its_call_gets_a_result() {
    let script = Script::answering(|request| {
        if request.last_user_text().contains("next") {
            Turn::any().says("fine")
        } else {
            let command = request.last_user_text();
            let (_, command) = command.split_once("run: ").unwrap();
            Turn::any().calls([call("c", "bash", json!({"command": command}))])
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let lifeline = Lifeline::new(daemon.work());
    let mut session = daemon.client().create(json!({})).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let command = lifeline.started().await;
    abort(&mut session).await;
    command.ended().await;
    let complete = last(&session, "tool.execution_complete");
    assert_eq!(complete["success"], false);
    assert_eq!(complete["toolCallId"], "c");
    assert_eq!(session.count("tool.execution_complete"), 1);
    session.ask("next").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_is_sent_while_the_abort_is_under_way_gets_its_answer() {
    let script = Script::answering(|request| {
        if request.last_user_text().contains("next") {
            return Turn::any().says("fine");
        }
        let text = request.last_user_text();
        let (_, command) = text.split_once("run: ").unwrap();
        Turn::any().calls([call("c", "bash", json!({"command": command}))])
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let lifeline = Lifeline::new(daemon.work());
    let mut session = daemon.client().create(json!({})).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let command = lifeline.started().await;
    // The command has yet to end: nobody waits for the session to be idle.
    session.call("session.abort", json!({})).await;
    session.send("next").await;
    let answer = session.next("assistant.message").await;
    let answer = match answer["data"]["toolRequests"].as_array() {
        Some(calls) if !calls.is_empty() => session.next("assistant.message").await,
        _ => answer,
    };
    assert_eq!(answer["data"]["content"], "fine");
    session.next("session.idle").await;
    command.ended().await;
    daemon.finish().await;
}

#[tokio::test]
async fn while_a_permission_is_asked_the_question_is_closed() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "bash", json!({"command": "echo never"}))]),
        Turn::user("next").says("fine"),
    ])
    .await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    abort(&mut session).await;
    assert_eq!(
        last(&session, "permission.completed")["result"]["kind"],
        "cancelled"
    );
    assert_eq!(last(&session, "tool.execution_complete")["success"], false);
    let counted = session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    assert!(!counted, "an answer after the abort counts for nothing");
    let pending = session
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    assert_eq!(pending, json!({"items": []}));
    session.ask("next").await;
    daemon.finish().await;
}

#[tokio::test]
async fn while_messages_are_prepared_the_message_is_over_and_does_not_come_back() {
    let gate = Gate::new();
    let script = Script::play([Turn::user("second").says("fine")]).await;
    script.hold_models(&gate);
    let daemon = Daemon::builder().copilot(script).start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("first").await;
    gate.reached().await;
    abort(&mut session).await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue, json!({"items": [], "steeringMessages": []}));
    gate.open();
    session.ask("second").await;
    let users: Vec<Value> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "user.message")
        .map(|event| event["data"]["content"].clone())
        .collect();
    assert_eq!(users, ["first", "second"]);
    daemon.finish().await;
}

#[tokio::test]
async fn the_messages_that_wait_are_dropped_with_the_turn() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one").says("never said").held_by(&gate),
        Turn::user("four").says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    session
        .call(
            "session.send",
            json!({"prompt": "three", "mode": "immediate"}),
        )
        .await;
    let aborted = session.call("session.abort", json!({})).await;
    assert_eq!(aborted["success"], true);
    assert_eq!(aborted["removedMessageIds"].as_array().unwrap().len(), 2);
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    session.ask("four").await;
    assert_eq!(session.count("user.message"), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn an_idle_session_has_nothing_to_abort() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let aborted = session.call("session.abort", json!({})).await;
    assert_eq!(aborted, json!({"success": true}));
    session.ask("hello").await;
    assert_eq!(session.count("abort"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_send_and_an_abort_that_follow_each_other_keep_their_order() {
    let gate = Gate::new();
    let script = Script::play([]).await;
    script.hold_models(&gate);
    let daemon = Daemon::builder().copilot(script).start().await;
    let mut session = daemon.client().create(json!({})).await;
    let sent = session.start("session.send", json!({"prompt": "hello"}));
    let aborted = session.start("session.abort", json!({}));
    sent.await.unwrap();
    aborted.await.unwrap();
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true, "the abort found the message");
    daemon.finish().await;
}

#[tokio::test]
async fn suspending_stops_work_and_keeps_the_session() {
    let script = Script::answering(|request| {
        let text = request.last_user_text();
        match text.split_once("run: ") {
            Some((_, command)) => {
                Turn::any().calls([call("c", "bash", json!({"command": command}))])
            }
            None => Turn::any().says("fine"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let lifeline = Lifeline::new(daemon.work());
    let mut session = daemon.client().create(json!({})).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let command = lifeline.started().await;
    session.call("session.suspend", json!({})).await;
    command.ended().await;
    assert_eq!(session.count("tool.execution_complete"), 1);
    session.next("session.idle").await;
    session.ask("next").await;
    daemon.finish().await;
}
