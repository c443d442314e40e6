//! Sub-agents use what the session at the top may use, all of them together.

use std::sync::{Arc, Mutex};

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

use super::{UPDATE, limit_errors, used, warnings};

/// A call that starts an agent.
fn agent(number: usize, mode: &str) -> loopd_tests::script::Call {
    let name = format!("part-{number}");
    call(
        &name,
        "task",
        json!({"description": "a part", "prompt": format!("do {name}."), "name": name, "mode": mode}),
    )
}

#[tokio::test]
async fn eight_agents_at_once_stay_within_the_limit() {
    const LIMIT: u64 = 60_000;
    // What each call may have used at most: its input, and the longest output that it was told.
    let granted: Arc<Mutex<Vec<u64>>> = Arc::default();
    let counted = granted.clone();
    let script = Script::answering(move |request| {
        let first = request.first_user_text();
        let number = request.messages().len();
        if first.contains("do part-") {
            // Each call uses all that it may use.
            let most = request.body["max_tokens"].as_u64().unwrap();
            let input = 1_000 + 100 * number as u64;
            counted.lock().unwrap().push(input + most);
            let id = format!("c{number}");
            return Turn::any()
                .calls([call(&id, "bash", json!({"command": "true"}))])
                .uses(input, most.min(2_000));
        }
        counted.lock().unwrap().push(0);
        match number {
            2 => Turn::any().calls((1..=8).map(|part| agent(part, "background"))),
            _ => Turn::any().says("go on"),
        }
    })
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "8")
        .yolo()
        .start()
        .await;
    let client = daemon.client();
    let limits = json!({"maxTokens": LIMIT});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.send("begin").await;
    session
        .next_where("the limit", |event| {
            event["type"] == "session.error" && event["agentId"].is_null()
        })
        .await;
    session.next("session.idle").await;
    let used = used(&session).await["tokens"].as_u64().unwrap();
    assert!(used >= LIMIT, "{used}");
    // The last call is alone, and may exceed the limit by what it was reserved for.
    let granted = granted.lock().unwrap().clone();
    let last = granted.iter().rev().find(|call| **call > 0).unwrap();
    assert!(used <= LIMIT + last, "{used} {last}");
    assert!(*last < 5_000, "its output was limited to little: {last}");
    assert_eq!(warnings(&session, "session_limits").len(), 1);
    assert_eq!(
        limit_errors(&session).last().unwrap().0,
        "session_limits_tokens"
    );
    // What the log of the session at the top says is what the model has told.
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    assert_eq!(metrics["used"]["turns"], granted.len());
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_does_not_fit_waits_for_the_others() {
    let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
    let held = gates.clone();
    let script = Script::answering(move |request| {
        let first = request.first_user_text();
        for (number, gate) in held.iter().enumerate() {
            if first.contains(&format!("do part-{number}.")) {
                return Turn::any().says("done").uses(9_000, 100).held_by(gate);
            }
        }
        match request.messages().len() {
            2 => Turn::any().calls((0..3).map(|part| agent(part, "background"))),
            _ => Turn::any().says("go on"),
        }
    })
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("LOOPD_AGENTS_MAX_CONCURRENT", "8")
        .yolo()
        .start()
        .await;
    let client = daemon.client();
    let limits = json!({"maxTurns": 3});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.send("begin").await;
    // One turn is used, and two may be in flight: those of two agents, or of one and the top.
    session.next("subagent.started").await;
    daemon.script().asked(3).await;
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    assert_eq!(metrics["used"]["turns"], 1);
    assert_eq!(daemon.script().requests().len(), 3);
    gates.iter().for_each(Gate::open);
    session
        .next_where("the limit", |event| event["type"] == "session.error")
        .await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 3);
    assert_eq!(used(&session).await["turns"], 3);
    daemon.finish().await;
}

#[tokio::test]
async fn agents_are_stopped_by_the_clock() {
    let gate = Gate::new();
    let held = gate.clone();
    let script = Script::answering(move |request| {
        if request.first_user_text().contains("do part-1.") {
            return Turn::any().says("never").held_by(&held);
        }
        match request.messages().len() {
            2 => Turn::any().calls([agent(1, "background")]),
            _ => Turn::any().says("I wait"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"timeoutSeconds": 1.0});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.send("begin").await;
    session
        .next_where("the limit", |event| {
            event["data"]["errorCode"] == "session_limits_time"
        })
        .await;
    daemon
        .until(&session.id, "the agent to end", |state| {
            !state.tasks.has_agents_at_work()
        })
        .await;
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn the_limits_of_a_tree_survive_a_restart_and_count_its_agents() {
    let script = Script::answering(|request| {
        if request.first_user_text().contains("do part-1.") {
            return Turn::any().says("done").uses(7_000, 100);
        }
        match request.messages().len() {
            2 => Turn::any().calls([agent(1, "sync")]).uses(1_000, 100),
            _ => Turn::any().says("all done").uses(1_500, 100),
        }
    })
    .await;
    let mut daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"maxTokens": 100_000});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.ask("begin").await;
    assert_eq!(used(&session).await["tokens"], 9_800);
    assert_eq!(used(&session).await["turns"], 3);
    let id = session.id.clone();
    drop(session);
    daemon.restart().await;
    let session = daemon.client().resume(&id, json!({})).await;
    assert_eq!(used(&session).await["tokens"], 9_800);
    let less = json!({"sessionLimits": {"maxTokens": 9_000}});
    session.call(UPDATE, less).await;
    let mut session = session;
    session.ask("more").await;
    assert_eq!(limit_errors(&session).len(), 1);
    let told: Vec<Value> = session.messages().await;
    let spent = told
        .iter()
        .filter(|event| event["type"] == "loopd.agent_spent");
    assert_eq!(spent.count(), 0, "it is our own event");
    daemon.finish().await;
}

#[tokio::test]
async fn a_limit_that_an_agent_reaches_in_the_background_fails_the_message_it_works_for() {
    let script = Script::answering(|request| {
        if request.first_user_text().contains("do part-") {
            let id = format!("c{}", request.messages().len());
            return Turn::any()
                .calls([call(&id, "glob", json!({"pattern": "*"}))])
                .uses(30_000, 100);
        }
        match request.messages().len() {
            2 => Turn::any().calls([agent(1, "background")]),
            _ => Turn::any().says("it works"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let limits = json!({"maxTokens": 60_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    let message = session.send("begin").await;
    let error = session
        .next_where("the limit", |event| {
            event["type"] == "session.error" && event["agentId"].is_null()
        })
        .await;
    assert_eq!(error["data"]["errorCode"], "session_limits_tokens");
    assert_eq!(error["data"]["originatingMessageId"], message, "{error}");
    session.next("session.idle").await;
    // The model reads with the next message what has become of its agent.
    assert_eq!(session.count("system.notification"), 1);
    daemon.finish().await;
}
