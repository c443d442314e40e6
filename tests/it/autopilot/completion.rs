//! What the model says about its task, and whether that counts.

use super::*;

#[tokio::test]
async fn a_blocked_agent_says_what_it_needs_and_stops() {
    let daemon = daemon([Turn::user("deploy").calls([call(
        "c",
        "task_complete",
        json!({"summary": "The build is ready.", "blocked": "the password of the server"}),
    )])])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    let id = session.send("deploy").await;
    session.next("session.idle").await;
    assert_eq!(
        data(&session, "session.task_complete"),
        [
            json!({"summary": "The build is ready.", "success": false, "outcome": "blocked",
                "reason": "the password of the server"})
        ]
    );
    assert_eq!(
        data(&session, "session.autopilot_stopped"),
        [json!({"reason": "blocked", "requestId": id})]
    );
    assert_eq!(nudges(&session).len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_bad_summary_is_refused_and_the_model_goes_on() {
    let long = "x".repeat(17 * 1024);
    let daemon = daemon([
        Turn::user("go").calls([complete("empty", "  ")]),
        Turn::results(["`summary` is empty"]).calls([call("none", "task_complete", json!({}))]),
        Turn::results(["summary"]).calls([look("work")]),
        Turn::any().calls([call("number", "task_complete", json!({"summary": 7}))]),
        Turn::results(["summary"]).calls([complete("long", &long)]),
        Turn::results(["more than the limit"]).calls([complete("good", "done")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("go").await;
    let said = data(&session, "session.task_complete");
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["outcome"], "completed");
    assert_eq!(session.count("session.autopilot_stopped"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_model_that_cannot_complete_its_task_is_stopped() {
    let script = Script::answering(|request| {
        let id = format!("c{}", request.messages().len());
        Turn::any().calls([call(
            &id,
            "task_complete",
            json!({"summary": "x", "blocked": ""}),
        )])
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("go").await;
    assert_eq!(daemon.script().requests().len(), 3);
    assert_eq!(session.count("session.task_complete"), 0);
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped[0]["reason"], "cap_reached");
    let words = stopped[0]["message"].as_str().unwrap();
    assert!(words.contains("task_complete 3 times in a row"), "{words}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_completion_that_says_that_it_is_none_is_refused() {
    let says = |arguments: Value| call("c", "task_complete", arguments);
    for wrong in [
        json!({"summary": "x", "success": false}),
        json!({"summary": "x", "outcome": "blocked"}),
        json!({"summary": "x", "outcome": "failed"}),
        json!({"summary": "x", "Blocked": "a key"}),
    ] {
        let daemon = daemon([
            Turn::user("go").calls([says(wrong.clone())]),
            Turn::any().calls([says(json!({"summary": "done", "success": true}))]),
        ])
        .await;
        let mut session = flying(&daemon, json!({})).await;
        session.ask("go").await;
        let said = data(&session, "session.task_complete");
        assert_eq!(said.len(), 1, "{wrong}: {said:?}");
        assert_eq!(said[0]["summary"], "done", "{wrong}");
        daemon.finish().await;
    }
    let daemon = daemon([Turn::user("go").calls([says(
        json!({"summary": "x", "blocked": "a key", "success": false, "outcome": "blocked"}),
    )])])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("go").await;
    let stopped = data(&session, "session.autopilot_stopped");
    assert_eq!(stopped[0]["reason"], "blocked");
    daemon.finish().await;
}

#[tokio::test]
async fn beside_other_calls_it_counts_only_if_all_of_them_succeed() {
    let missing = call("v", "view", json!({"path": "missing.txt"}));
    let daemon = daemon([
        Turn::user("go").calls([complete("early", "done"), missing]),
        Turn::user("another tool call of the same message failed")
            .calls([look("a"), complete("late", "really done")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("go").await;
    let said = data(&session, "session.task_complete");
    assert_eq!(
        (&said[0]["success"], &said[0]["outcome"]),
        (&json!(false), &json!("continue"))
    );
    assert_eq!(
        (&said[1]["success"], &said[1]["summary"]),
        (&json!(true), &json!("really done"))
    );
    // The other call of the last message has run, and the loop has ended without another turn.
    assert_eq!(session.count("tool.execution_complete"), 4);
    assert_eq!(daemon.script().requests().len(), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agent_does_not_complete_the_task() {
    let task = call(
        "t",
        "task",
        json!({"prompt": "look", "description": "d", "mode": "sync", "agent_type": "general-purpose"}),
    );
    let main = vec![
        Turn::user("go").calls([task]),
        Turn::results(["seen"]).calls([complete("c", "done")]),
    ];
    let agent = vec![
        Turn::user("look").calls([complete("own", "mine")]),
        Turn::results(["There is no task to mark as complete"]).says("seen"),
    ];
    let script = Script::voices([("go", main), ("look", agent)]).await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = flying(&daemon, json!({})).await;
    session.ask("go").await;
    let said = data(&session, "session.task_complete");
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["summary"], "done");
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_came_meanwhile_goes_on_with_the_task() {
    let gate = loopd_tests::Gate::new();
    let daemon = daemon([
        Turn::user("go")
            .calls([complete("c1", "first")])
            .held_by(&gate),
        Turn::user("and this").says("fine"),
        nudged().calls([complete("c2", "both")]),
    ])
    .await;
    let mut session = flying(&daemon, json!({})).await;
    session.send("go").await;
    gate.reached().await;
    session
        .call(
            "session.send",
            json!({"prompt": "and this", "mode": "immediate"}),
        )
        .await;
    gate.open();
    session.next("session.idle").await;
    let said = data(&session, "session.task_complete");
    assert_eq!(
        (&said[0]["summary"], &said[1]["summary"]),
        (&json!("first"), &json!("both"))
    );
    assert_eq!(session.count("session.autopilot_stopped"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_list_of_tools_need_not_name_it_and_can_exclude_it() {
    let script = || {
        [
            Turn::user("go").says("well"),
            nudged().calls([complete("c", "done")]),
        ]
    };
    let named = daemon(script()).await;
    let mut session = flying(&named, json!({"availableTools": ["view"]})).await;
    session.ask("go").await;
    assert_eq!(
        named.script().last_request().tools(),
        ["view", "task_complete"]
    );
    named.finish().await;

    let excluded = daemon([Turn::user("go").says("well")]).await;
    let mut session = flying(&excluded, json!({"excludedTools": ["task_complete"]})).await;
    session.ask("go").await;
    assert!(
        !excluded
            .script()
            .last_request()
            .tools()
            .contains(&"task_complete")
    );
    assert_eq!(nudges(&session).len(), 0, "the model could not answer it");
    let warned = data(&session, "session.warning");
    assert_eq!(warned[0]["warningType"], "autopilot_without_task_complete");
    excluded.finish().await;
}

#[tokio::test]
async fn an_app_that_continues_itself_has_the_tool_and_gets_the_event() {
    let daemon = daemon([
        Turn::user("go").says("well"),
        Turn::user("go on").calls([complete("c", "done")]),
    ])
    .await;
    let options = json!({"autopilot": {"continuationEnabled": false}});
    let mut session = flying(&daemon, options).await;
    session.ask("go").await;
    assert_eq!(session.count("session.autopilot_stopped"), 0);
    let hidden = json!({"prompt": "go on", "displayPrompt": "", "requiredTool": "task_complete"});
    session.call("session.sendAndWait", hidden).await;
    assert_eq!(session.count("session.task_complete"), 1);
    assert_eq!(nudges(&session).len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_that_requires_a_tool_fails_without_it() {
    let daemon = daemon([Turn::user("without").says("fine")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let wants = json!({"prompt": "go on", "requiredTool": "task_complete"});
    let failed = session.refused("session.sendAndWait", wants).await;
    assert!(failed.message.contains("task_complete"), "{failed}");
    let error = &data(&session, "session.error")[0];
    assert_eq!(error["errorCode"], "required_tool_unavailable");
    session.next("session.idle").await;
    session.ask("without").await;
    daemon.finish().await;
}
