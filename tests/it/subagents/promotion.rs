//! An agent that is waited for and goes on by itself from then on.

use loopd_tests::{Gate, Session, Turn};
use serde_json::{Value, json};

use super::{daemon, execution_complete, kinds_told, last_said, task, task_of, worker};

/// A main agent that waits for one that is held back, until somebody promotes it.
async fn waiting(gate: &Gate) -> (loopd_tests::Daemon, Session) {
    let call = task("t1", json!({"prompt": "dig deep", "name": "digger"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([call]),
                Turn::results(["it goes on as agent_id: digger"]).says("it digs"),
                Turn::user("Agent \"digger\" (general-purpose) has finished").says("it has dug"),
            ],
        ),
        (
            "dig deep",
            vec![Turn::user("dig deep").says("gold").held_by(gate)],
        ),
    ])
    .await;
    let session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    (daemon, session)
}

/// What has to be true once the agent has answered, however it was promoted.
async fn answered_once(session: &mut Session) {
    session.next("session.idle").await;
    assert_eq!(session.count("session.idle"), 1, "{}", session.transcript());
    assert_eq!(kinds_told(session), [("agent_idle", "digger".to_owned())]);
    assert_eq!(last_said(session), "it has dug");
    let digger = task_of(session, "digger").await;
    assert_eq!(
        (&digger["status"], &digger["executionMode"]),
        (&json!("idle"), &json!("background"))
    );
    assert_eq!(digger["latestResponse"], "gold");
    assert_eq!(session.count("subagent.completed"), 1);
}

#[tokio::test]
async fn by_its_id_the_call_returns_early_and_the_answer_is_told_once() {
    let gate = Gate::new();
    let (daemon, mut session) = waiting(&gate).await;
    let current = session
        .call("session.tasks.getCurrentPromotable", json!({}))
        .await;
    assert_eq!(current["task"]["id"], "digger");
    assert_eq!(current["task"]["executionMode"], "sync");
    assert_eq!(current["task"]["canPromoteToBackground"], true);
    let wrong = session
        .call(
            "session.tasks.promoteToBackground",
            json!({"id": "somebody"}),
        )
        .await;
    assert_eq!(wrong, json!({"promoted": false}));
    let digger = json!({"id": "digger"});
    let promoted = session
        .call("session.tasks.promoteToBackground", digger.clone())
        .await;
    assert_eq!(promoted, json!({"promoted": true}));
    let early = execution_complete(&mut session, "t1").await;
    assert_eq!(early["success"], true);
    let facts = &early["toolTelemetry"]["properties"];
    assert_eq!(
        (&facts["status"], &facts["agentId"]),
        (&json!("async_launched"), &json!("digger"))
    );
    let again = session
        .call("session.tasks.promoteToBackground", digger)
        .await;
    assert_eq!(again, json!({"promoted": false}), "it is there already");
    let current = session
        .call("session.tasks.getCurrentPromotable", json!({}))
        .await;
    assert_eq!(current, json!({}));
    assert_eq!(task_of(&session, "digger").await["status"], "running");
    session
        .next_where("what the main agent says meanwhile", |event| {
            event["data"]["content"] == "it digs"
        })
        .await;
    assert_eq!(session.count("session.idle"), 0, "an agent is at work");
    gate.open();
    answered_once(&mut session).await;
    daemon.finish().await;
}

#[tokio::test]
async fn as_the_current_one_it_is_named_in_the_answer() {
    let gate = Gate::new();
    let (daemon, mut session) = waiting(&gate).await;
    let promoted = session
        .call("session.tasks.promoteCurrentToBackground", json!({}))
        .await;
    assert_eq!(promoted["task"]["id"], "digger");
    assert_eq!(promoted["task"]["executionMode"], "background");
    assert_eq!(promoted["task"]["canPromoteToBackground"], false);
    let none = session
        .call("session.tasks.promoteCurrentToBackground", json!({}))
        .await;
    assert_eq!(none, json!({}));
    gate.open();
    answered_once(&mut session).await;
    daemon.finish().await;
}

#[tokio::test]
async fn one_of_two_goes_on_and_the_other_is_still_waited_for() {
    let (one, two) = (Gate::new(), Gate::new());
    let calls = [
        task("t1", json!({"prompt": "dig deep", "name": "digger"})),
        task("t2", json!({"prompt": "look far", "name": "looker"})),
    ];
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls(calls),
                Turn::results(["it goes on as agent_id: digger", "a ship"]).says("one is there"),
                Turn::user("\"digger\"").says("both are there"),
            ],
        ),
        worker("dig deep", "gold", &one),
        worker("look far", "a ship", &two),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("begin").await;
    one.reached().await;
    two.reached().await;
    session
        .call("session.tasks.promoteToBackground", json!({"id": "digger"}))
        .await;
    execution_complete(&mut session, "t1").await;
    let current = session
        .call("session.tasks.getCurrentPromotable", json!({}))
        .await;
    assert_eq!(current["task"]["id"], "looker");
    two.open();
    session
        .next_where("the first answer", |event| {
            event["data"]["content"] == "one is there"
        })
        .await;
    one.open();
    session.next("session.idle").await;
    assert_eq!(kinds_told(&session), [("agent_idle", "digger".to_owned())]);
    assert_eq!(task_of(&session, "looker").await["status"], "completed");
    let tree: Value = session.call("loopd.taskTree", json!({})).await;
    let ids: Vec<&str> = tree["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["task"]["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["digger", "looker"]);
    daemon.finish().await;
}
