//! Switched on, off and paused in the middle of a turn: the tool, the message that tells the model to
//! go on, and the reason to stop never come apart.

use loopd_tests::Gate;

use super::*;

#[tokio::test]
async fn switched_off_half_way_it_takes_the_tool_along_and_says_nothing_more() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well"),
        nudged().calls([complete("c", "done")]).held_by(&gate),
        Turn::results(["There is no task to mark as complete"]).says("this is what I did"),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.send("go").await;
    gate.reached().await;
    set(&session, "interactive").await;
    gate.open();
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"], json!({"mode": "interactive"}));
    let offers: Vec<bool> = daemon
        .script()
        .requests()
        .iter()
        .map(|request| request.tools().contains(&"task_complete"))
        .collect();
    assert_eq!(offers, [true, true, false]);
    assert_eq!(nudges(&session).len(), 1);
    assert_eq!(session.count("session.task_complete"), 0);
    assert_eq!(session.count("session.autopilot_stopped"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn switched_on_half_way_it_brings_the_tool_and_goes_on() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").calls([look("a")]).held_by(&gate),
        Turn::results([""]).says("well"),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    set(&session, "autopilot").await;
    gate.open();
    session.next("session.idle").await;
    let offers: Vec<bool> = daemon
        .script()
        .requests()
        .iter()
        .map(|request| request.tools().contains(&"task_complete"))
        .collect();
    assert_eq!(offers, [false, true, true]);
    assert_eq!(session.count("session.autopilot_stopped"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn switched_on_while_nothing_runs_it_waits_for_a_message() {
    let daemon = daemon([Turn::user("go").says("well")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    set(&session, "autopilot").await;
    let now = status(&session).await;
    assert_eq!(now.get("requestId"), None);
    assert_eq!(now["offersTaskComplete"], true);
    assert_eq!(nudges(&session).len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_paused_autopilot_waits_until_it_is_continued() {
    let gate = Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well").held_by(&gate),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    let mut other = daemon.client().resume(&session.id, json!({})).await;
    let id = session.send("go").await;
    gate.reached().await;
    let paused = session
        .call("loopd.autopilot.pause", json!({"paused": true}))
        .await;
    let told = other.next("loopd.autopilot_changed").await;
    assert_eq!(told["data"], json!({"paused": true}), "others see it");
    assert_eq!(
        (&paused["changed"], &paused["active"]),
        (&json!(true), &json!(false))
    );
    let again = session
        .call("loopd.autopilot.pause", json!({"paused": true}))
        .await;
    assert_eq!(again["changed"], false);
    gate.open();
    session.next("session.idle").await;
    assert_eq!(nudges(&session).len(), 0);
    assert_eq!(
        session.count("session.autopilot_stopped"),
        0,
        "it has not given up"
    );
    let now = status(&session).await;
    assert_eq!(
        (&now["paused"], &now["requestId"]),
        (&json!(true), &json!(id))
    );
    session
        .call("loopd.autopilot.pause", json!({"paused": false}))
        .await;
    let told = other.next("loopd.autopilot_changed").await;
    assert_eq!(told["data"], json!({"paused": false}));
    session.next("session.idle").await;
    assert_eq!(
        other.count("loopd.autopilot_changed"),
        2,
        "none for no change"
    );
    assert_eq!(nudges(&session).len(), 1);
    assert_eq!(
        data(&session, "session.autopilot_stopped")[0]["requestId"],
        id
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_pause_survives_a_restart_and_ends_with_the_mode() {
    let mut daemon = daemon([Turn::user("go").says("well")]).await;
    let mut session = flying(&daemon, json!({})).await;
    session
        .call("loopd.autopilot.pause", json!({"paused": true}))
        .await;
    session.ask("go").await;
    daemon.restart().await;
    let session = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(status(&session).await["paused"], true);
    set(&session, "interactive").await;
    set(&session, "autopilot").await;
    assert_eq!(status(&session).await["paused"], false);
    set(&session, "interactive").await;
    let paused = session
        .call("loopd.autopilot.pause", json!({"paused": true}))
        .await;
    assert_eq!(
        (&paused["changed"], &paused["paused"]),
        (&json!(false), &json!(false))
    );
    daemon.finish().await;
}
