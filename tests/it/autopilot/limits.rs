//! When the autopilot gives up.

use super::*;

#[tokio::test]
async fn it_stops_when_the_model_was_told_to_go_on_as_often_as_it_may_be() {
    // Each time the model calls a tool, so that it does not only talk.
    let step = |time: usize| {
        let id = format!("a{time}");
        [
            nudged().calls([look(&id)]),
            Turn::results([""]).says("not yet"),
        ]
    };
    let mut turns = vec![Turn::user("go").says("well")];
    turns.extend((0..5).flat_map(step));
    turns.push(Turn::user("more").calls([complete("c", "done")]));
    let daemon = daemon(turns).await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("go").await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"], json!({}));
    assert_eq!(nudges(&session).len(), 5);
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped[0]["reason"], "cap_reached");
    assert_eq!(stopped[0]["requestId"], id);
    let words = stopped[0]["message"].as_str().unwrap();
    assert!(
        words.contains("5 times") && words.contains("maxContinues"),
        "{words}"
    );
    assert_eq!(session.count("session.task_complete"), 0);
    // A message of a person begins anew.
    session.ask("more").await;
    assert_eq!(status(&session).await["continues"], 0);
    daemon.finish().await;
}

#[tokio::test]
async fn the_limit_is_an_option_that_can_be_changed() {
    let daemon = daemon([
        Turn::user("go").says("well"),
        nudged().calls([look("a")]),
        Turn::results([""]).says("not yet"),
        Turn::user("again").says("no"),
    ])
    .await;
    let mut session = flying(&daemon, json!({"autopilot": {"maxContinues": 1}})).await;
    session.ask("go").await;
    assert_eq!(nudges(&session).len(), 1);
    session
        .call(
            "session.options.update",
            json!({"autopilot": {"maxContinues": 0}}),
        )
        .await;
    assert_eq!(status(&session).await["maxContinues"], 0);
    session.ask("again").await;
    assert_eq!(nudges(&session).len(), 1, "zero allows none");
    // What is not named stays.
    session
        .call(
            "session.options.update",
            json!({"autopilot": {"continuationEnabled": false}}),
        )
        .await;
    let now = status(&session).await;
    assert_eq!(
        (&now["maxContinues"], &now["active"]),
        (&json!(0), &json!(false))
    );
    let refused = session
        .refused(
            "session.options.update",
            json!({"autopilot": {"maxContinues": -1}}),
        )
        .await;
    assert!(refused.message.contains("maxContinues"), "{refused}");
    daemon.finish().await;
}

#[tokio::test]
async fn it_stops_after_three_times_in_a_row_without_a_tool_call() {
    let daemon = daemon([
        Turn::user("go").says("I think"),
        nudged().says("I think more"),
        nudged().calls([look("a")]),
        Turn::results([""]).says("I saw"),
        nudged().says("I think"),
        nudged().says("still"),
        nudged().says("and on"),
    ])
    .await;
    let mut session = flying(&daemon, json!({"autopilot": {"maxContinues": 50}})).await;
    session.ask("go").await;
    // The tool call of the second one begins the count anew.
    assert_eq!(nudges(&session).len(), 5);
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped[0]["reason"], "cap_reached");
    assert!(
        stopped[0]["message"]
            .as_str()
            .unwrap()
            .contains("3 times in a row")
    );
    daemon.finish().await;
}

#[tokio::test]
async fn an_error_stops_it() {
    let daemon = daemon([Turn::user("go").says("well"), nudged().fails(401, "no")]).await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("go").await;
    session.next("session.idle").await;
    assert_eq!(
        data(&session, "session.autopilot_stopped"),
        [json!({"reason": "error", "requestId": id})]
    );
    assert_eq!(
        data(&session, "session.error")[0]["originatingMessageId"],
        id
    );
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_stops_it() {
    let gate = loopd_tests::Gate::new();
    let daemon = daemon([
        Turn::user("go").says("well"),
        nudged().says("never").held_by(&gate),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("go").await;
    gate.reached().await;
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    assert_eq!(
        data(&session, "session.autopilot_stopped"),
        [json!({"reason": "aborted", "requestId": id})]
    );
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_limit_of_the_session_stops_it_until_more_is_granted() {
    let daemon = daemon([
        Turn::user("go").calls([look("a")]).uses(1_000, 500),
        Turn::results([""]).says("half done").uses(1_000, 500),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let limits = json!({"sessionLimits": {"maxTokens": 1_200}});
    let mut session = flying(&daemon, limits).await;
    let id = session.send("go").await;
    session.next("session.idle").await;
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    assert_eq!(stopped[0]["reason"], "error");
    assert_eq!(stopped[0]["requestId"], id);
    let words = stopped[0]["message"].as_str().unwrap();
    assert!(words.contains("a limit of the session"), "{words}");
    assert_eq!(
        last_kinds(&session, 4),
        [
            "session.error",
            "session.autopilot_stopped",
            "assistant.idle",
            "session.idle"
        ]
    );
    assert_eq!(status(&session).await.get("requestId"), None);
    // The run goes on, and so does the autopilot: it is the same task.
    let more = json!({"sessionLimits": {"maxTokens": 50_000}});
    session.call("session.options.update", more).await;
    session.next("session.idle").await;
    assert_eq!(nudges(&session).len(), 1);
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(
        stopped[1],
        json!({"reason": "task_complete", "requestId": id})
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_new_message_after_a_limit_is_a_task_of_its_own() {
    let daemon = daemon([
        Turn::user("go").calls([look("a")]).uses(1_000, 500),
        Turn::user("other").says("well"),
        nudged().calls([complete("c", "done")]),
    ])
    .await;
    let limits = json!({"sessionLimits": {"maxTokens": 1_200}});
    let mut session = flying(&daemon, limits).await;
    session.ask("go").await;
    session
        .call("session.mode.set", json!({"mode": "interactive"}))
        .await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    let id = session.send("other").await;
    session.next("session.idle").await;
    assert_eq!(session.count("session.error"), 2, "nothing is left");
    let more = json!({"sessionLimits": {"maxTokens": 50_000}});
    session.call("session.options.update", more).await;
    session.next("session.idle").await;
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped.last().unwrap()["requestId"], id);
    daemon.finish().await;
}
