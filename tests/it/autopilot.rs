//! The autopilot over the wire: the model is told to go on until it marks its task as complete, says
//! that it is blocked, or a limit is reached.

mod attached;
mod completion;
mod done_signals;
mod killed;
mod limits;
mod switching;

use loopd_tests::script::Call;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// How the message begins that tells the model to go on.
const GO_ON: &str = "The task is not marked as complete, and nobody is there";

/// A request that ends with the message which tells the model to go on.
fn nudged() -> Turn {
    Turn::user(GO_ON)
}

fn complete(id: &str, summary: &str) -> Call {
    call(id, "task_complete", json!({ "summary": summary }))
}

fn look(id: &str) -> Call {
    call(id, "glob", json!({"pattern": "*"}))
}

async fn daemon(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

/// A session in autopilot mode.
async fn flying(daemon: &Daemon, options: Value) -> Session {
    let session = daemon.client().create(options).await;
    set(&session, "autopilot").await;
    session
}

async fn set(session: &Session, mode: &str) {
    session
        .call("session.mode.set", json!({"mode": mode}))
        .await;
}

async fn status(session: &Session) -> Value {
    session.call("loopd.autopilot.status", json!({})).await
}

/// The data of the events of a kind, in order.
fn data(session: &Session, kind: &str) -> Vec<Value> {
    let events = session.events().into_iter();
    let events = events.filter(|event| event["type"] == kind);
    events.map(|event| event["data"].clone()).collect()
}

/// The messages that told the model to go on.
fn nudges(session: &Session) -> Vec<Value> {
    let mut messages = data(session, "user.message");
    messages.retain(|message| message["isAutopilotContinuation"] == true);
    messages
}

/// The kinds of the last events, without those that only the loop is concerned with.
fn last_kinds(session: &Session, count: usize) -> Vec<String> {
    let events = session.events();
    let kinds = events
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned());
    let kinds: Vec<String> = kinds
        .filter(|kind| kind != "pending_messages.modified" && kind != "assistant.usage")
        .collect();
    kinds[kinds.len().saturating_sub(count)..].to_vec()
}

#[tokio::test]
async fn a_task_is_completed_after_the_model_was_told_twice_to_go_on() {
    let daemon = daemon([
        Turn::user("build it").says("I will"),
        nudged().calls([look("a")]),
        Turn::results([""]).says("it is half done"),
        nudged().says_and_calls("now", [complete("c", "built and tested")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("build it").await;
    let idle = session.next("session.idle").await;
    // Official clients wait on when an idle session names the autopilot mode.
    assert_eq!(idle["data"], json!({}));
    assert_eq!(
        session.count("session.idle"),
        1,
        "nothing was idle in between"
    );
    assert_eq!(session.count("assistant.idle"), 1);
    for request in daemon.script().requests() {
        assert!(
            request.tools().contains(&"task_complete"),
            "{:?}",
            request.tools()
        );
    }
    let told = nudges(&session);
    assert_eq!(told.len(), 2);
    for message in &told {
        assert_eq!(message["content"], "", "people do not see it");
        assert!(
            message["transformedContent"]
                .as_str()
                .unwrap()
                .starts_with(GO_ON)
        );
        assert_ne!(message["messageId"], id);
    }
    assert_ne!(told[0]["messageId"], told[1]["messageId"]);
    for message in data(&session, "assistant.message") {
        assert_eq!(message["originatingMessageId"], id);
    }
    assert_eq!(
        data(&session, "session.task_complete"),
        [json!({"summary": "built and tested", "success": true, "outcome": "completed"})]
    );
    assert_eq!(
        data(&session, "session.autopilot_stopped"),
        [json!({"reason": "task_complete", "requestId": id})]
    );
    assert_eq!(
        last_kinds(&session, 6),
        [
            "tool.execution_complete",
            "session.task_complete",
            "assistant.turn_end",
            "session.autopilot_stopped",
            "assistant.idle",
            "session.idle"
        ]
    );
    let now = status(&session).await;
    assert_eq!(
        (&now["continues"], &now["active"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(now["lastStop"]["reason"], "task_complete");
    assert_eq!(now["completion"]["summary"], "built and tested");
    assert_eq!(now.get("requestId"), None, "there is nothing to go on with");
    daemon.finish().await;
}

#[tokio::test]
async fn each_message_is_a_task_of_its_own() {
    let daemon = daemon([
        Turn::user("one").calls([complete("c1", "first")]),
        Turn::user("two").says("hm"),
        nudged().calls([complete("c2", "second")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let reasons = data(&session, "session.autopilot_stopped");
    assert_eq!(reasons.len(), 2);
    assert_ne!(reasons[0]["requestId"], reasons[1]["requestId"]);
    assert_eq!(status(&session).await["continues"], 1);
    daemon.finish().await;
}

#[tokio::test]
async fn in_other_modes_there_is_no_tool_and_nobody_is_told_to_go_on() {
    for mode in ["interactive", "plan"] {
        let daemon = daemon([
            Turn::user("go").calls([complete("c", "done")]),
            Turn::results(["There is no task to mark as complete"]).says("done"),
        ])
        .await;
        let mut session = daemon.client().create(json!({})).await;
        set(&session, mode).await;
        session.ask("go").await;
        for request in daemon.script().requests() {
            assert!(!request.tools().contains(&"task_complete"), "{mode}");
        }
        assert_eq!(session.count("session.task_complete"), 0, "{mode}");
        assert_eq!(session.count("session.autopilot_stopped"), 0, "{mode}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn background_agents_work_before_the_model_is_told_to_go_on() {
    let task = call(
        "t",
        "task",
        json!({"prompt": "look", "description": "d", "mode": "background", "agent_type": "general-purpose"}),
    );
    let gate = loopd_tests::Gate::new();
    let main = vec![
        Turn::user("go").calls([task]),
        Turn::results([""]).says("started"),
        Turn::user("<system_notification>").says("I see"),
        nudged().calls([complete("c", "done")]),
    ];
    let agent = vec![Turn::user("look").says("seen").held_by(&gate)];
    let script = Script::voices([("go", main), ("look", agent)]).await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("go").await;
    gate.reached().await;
    session.next("assistant.idle").await;
    assert_eq!(nudges(&session).len(), 0, "the agent will be heard of");
    gate.open();
    session.next("session.idle").await;
    assert_eq!(nudges(&session).len(), 1);
    assert_eq!(
        data(&session, "session.autopilot_stopped")[0]["requestId"],
        id
    );
    for request in daemon.script().requests() {
        let is_agent = request.first_user_text().contains("look");
        assert_eq!(request.tools().contains(&"task_complete"), !is_agent);
    }
    daemon.finish().await;
}
