//! The three signals that something is done, and what none of them says. README has the table.

use loopd_tests::Gate;

use super::*;

fn agent() -> Call {
    call(
        "t",
        "task",
        json!({"prompt": "look", "description": "d", "mode": "background", "agent_type": "general-purpose"}),
    )
}

/// A daemon whose main agent starts another one and then says this; the other one answers when the
/// gate opens.
async fn with_an_agent(gate: &Gate, main: impl IntoIterator<Item = Turn>) -> Daemon {
    let mut turns = vec![Turn::user("go").calls([agent()])];
    turns.extend(main);
    let look = vec![Turn::user("look").says("seen").held_by(gate)];
    let script = Script::voices([("go", turns), ("look", look)]).await;
    Daemon::builder().script(script).yolo().start().await
}

#[tokio::test]
async fn task_complete_says_that_the_model_considers_the_task_done_and_not_that_nothing_runs() {
    let gate = Gate::new();
    let daemon = with_an_agent(
        &gate,
        [
            Turn::results([""]).calls([complete("c", "done")]),
            Turn::user("<system_notification>").says("thanks"),
        ],
    )
    .await;
    let mut session = flying(&daemon, json!({})).await;
    let wait = json!({"prompt": "go", "loopdUntil": "task"});
    let done = session.call("session.sendAndWait", wait).await;
    let stopped = session.next("session.autopilot_stopped").await;
    assert_eq!(done["completionEventId"], stopped["id"]);
    assert_eq!(session.count("session.idle"), 0, "the other agent works");
    assert_eq!(
        status(&session).await["lastStop"]["reason"],
        "task_complete"
    );
    gate.open();
    session.next("session.idle").await;
    assert_eq!(nudges(&session).len(), 0, "the task was complete");
    daemon.finish().await;
}

#[tokio::test]
async fn idle_says_that_all_work_has_ended_and_not_that_the_task_is_done() {
    let daemon = daemon([Turn::user("go").says("I did nothing yet")]).await;
    let session = flying(&daemon, json!({"autopilot": {"maxContinues": 0}})).await;
    let wait = json!({"prompt": "go"});
    let done = session.call("session.sendAndWait", wait).await;
    assert_eq!(done["aborted"], false);
    assert_eq!(session.count("session.idle"), 1);
    assert_eq!(session.count("session.task_complete"), 0);
    assert_eq!(
        data(&session, "session.autopilot_stopped")[0]["reason"],
        "cap_reached"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_completed_background_task_says_nothing_about_the_task_of_the_user() {
    let gate = Gate::new();
    let daemon = with_an_agent(
        &gate,
        [
            Turn::results([""]).says("started"),
            Turn::user("<system_notification>").says("I have read it"),
            nudged().calls([complete("c", "done")]),
        ],
    )
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.send("go").await;
    gate.reached().await;
    gate.open();
    session.next("system.notification").await;
    assert_eq!(session.count("session.task_complete"), 0);
    session.next("session.idle").await;
    assert_eq!(session.count("session.task_complete"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_wait_for_the_answer_lasts_until_the_model_is_not_told_to_go_on() {
    let daemon = daemon([
        Turn::user("go").says("well"),
        nudged().says_and_calls("all is built", [complete("c", "built")]),
    ])
    .await;
    let session = flying(&daemon, json!({})).await;
    let wait = json!({"prompt": "go", "loopdUntil": "answer"});
    let done = session.call("session.sendAndWait", wait).await;
    assert_eq!(done["response"]["data"]["content"], "all is built");
    assert_eq!(
        done["response"]["data"]["originatingMessageId"],
        done["messageId"]
    );
    daemon.finish().await;
}

#[tokio::test]
async fn in_other_modes_a_wait_for_the_task_ends_when_the_session_is_idle() {
    let daemon = daemon([Turn::user("go").says("hello")]).await;
    let session = daemon.client().create(json!({})).await;
    let wait = json!({"prompt": "go", "loopdUntil": "task"});
    let done = session.call("session.sendAndWait", wait).await;
    let idle = session
        .events()
        .into_iter()
        .find(|event| event["type"] == "session.idle");
    assert_eq!(done["completionEventId"], idle.unwrap()["id"]);
    daemon.finish().await;
}
