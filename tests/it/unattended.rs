//! What waits for a person who does not come back does not keep the daemon for ever.

use std::time::Duration;

use loopd_tests::{Daemon, Script, Turn, call, within};
use serde_json::json;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Waits until nobody is connected and nothing works or waits.
async fn no_reason_to_stay(daemon: &Daemon) {
    let keep_alive = &daemon.app.services.keep_alive;
    within(
        "the daemon to be idle",
        keep_alive.idle_for(Duration::ZERO, AN_HOUR),
    )
    .await;
}

/// Waits until nobody is connected and nothing works.
async fn no_work(daemon: &Daemon) {
    let keep_alive = &daemon.app.services.keep_alive;
    let idle = keep_alive.idle_for(Duration::ZERO, Duration::ZERO);
    within("the work to end", idle).await;
}

#[tokio::test]
async fn an_idle_shell_is_closed_when_nobody_comes_back_and_the_log_says_why() {
    let script = Script::play([
        Turn::user("go").calls([call(
            "c",
            "bash",
            json!({"command": "cd /; a=1", "shellId": "build"}),
        )]),
        Turn::any().says("done"),
        Turn::user("again").calls([call(
            "r",
            "read_bash",
            json!({"shellId": "build", "delay": 1}),
        )]),
        Turn::any().says("done"),
    ])
    .await;
    let builder = Daemon::builder().script(script).yolo();
    let daemon = builder.env("LOOPD_UNATTENDED_TIMEOUT", "0").start().await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    assert_eq!(daemon.app.services.keep_alive.reasons().waiting, 1);
    client.vanish().await;
    no_reason_to_stay(&daemon).await;
    let mut resumed = daemon.client().resume(&session.id, json!({})).await;
    let messages = resumed.messages().await;
    let closed = messages
        .iter()
        .find(|event| event["type"] == "session.info");
    let text = closed.expect("the end is recorded")["data"]["message"].to_string();
    assert!(text.contains("The shell build was closed"), "{text}");
    assert!(text.contains("nobody was attached"), "{text}");
    resumed.ask("again").await;
    let results = daemon.script().requests().last().unwrap().last_results();
    assert!(results[0].contains("no user was there"), "{results:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_shell_whose_command_has_ended_is_no_work() {
    let command = "until [ -e end ]; do sleep 0.01; done";
    let command = json!({"command": command, "mode": "async", "shellId": "build"});
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", command)]),
        Turn::any().says("done"),
    ])
    .await;
    let builder = Daemon::builder().script(script).yolo();
    let daemon = builder
        .env("LOOPD_UNATTENDED_TIMEOUT", "3600")
        .start()
        .await;
    let client = daemon.client();
    client.create(json!({})).await.ask("go").await;
    client.vanish().await;
    assert_ne!(daemon.app.services.keep_alive.reasons().work, 0);
    std::fs::write(daemon.file("end"), "").unwrap();
    no_work(&daemon).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_shell_opened_ahead_for_a_call_that_is_only_asked_is_no_work() {
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", json!({"command": "echo hi"}))]),
        Turn::any().says("done"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let client = daemon.client();
    let mut session = client.create(offer.clone()).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    client.vanish().await;
    no_work(&daemon).await;
    assert!(daemon.app.services.keep_alive.reasons().waiting > 0);
    // The question is offered again.
    let mut resumed = daemon.client().resume(&session.id, offer).await;
    assert_eq!(resumed.permission().await.0, request);
    resumed
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    resumed.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agent_that_waits_for_an_answer_is_no_work() {
    let script = Script::answering(|request| {
        let is_agent = request.last_user_text().contains("find it");
        let start = json!({"description": "a part", "prompt": "find it", "name": "finder",
                           "agent_type": "general-purpose"});
        match (is_agent, request.last_results().len()) {
            (true, 0) => Turn::any().calls([call("c", "bash", json!({"command": "echo hi"}))]),
            (true, _) => Turn::any().says("found"),
            (false, 0) => Turn::any().calls([call("t", "task", start)]),
            (false, _) => Turn::any().says("done"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let client = daemon.client();
    let mut session = client.create(offer.clone()).await;
    session.send("begin").await;
    let (request, _) = session.permission().await;
    client.vanish().await;
    no_work(&daemon).await;
    assert!(daemon.app.services.keep_alive.reasons().waiting > 0);
    let mut resumed = daemon.client().resume(&session.id, offer).await;
    assert_eq!(resumed.permission().await.0, request);
    resumed
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    resumed.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_open_question_keeps_the_daemon_until_it_is_answered_or_nobody_comes() {
    let question = call("q", "ask_user", json!({"question": "Which one?"}));
    let script = Script::play([
        Turn::user("go").calls([question]),
        Turn::results(["left"]).says("ok"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let offer = json!({"requestUserInput": true, "continuePendingWork": true});
    let client = daemon.client();
    let session = client.create(offer.clone()).await;
    session.send("go").await;
    drop(client.request("userInput.request").await);
    client.vanish().await;
    no_work(&daemon).await;
    assert_eq!(daemon.app.services.keep_alive.reasons().waiting, 1);
    let mut resumed = daemon.client().resume(&session.id, offer).await;
    let request = resumed.client().request("userInput.request").await;
    request.answer(json!({"answer": "left", "wasFreeform": true}));
    resumed.next("session.idle").await;
    assert_eq!(daemon.app.services.keep_alive.reasons().waiting, 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_waits_for_input_is_stopped_and_the_model_is_told_why() {
    let command =
        json!({"command": "read -p 'continue? ' x", "shellId": "build", "initial_wait": 1});
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", command)]),
        Turn::any().says("it asks"),
        Turn::user("again").says("so it was stopped"),
    ])
    .await;
    let builder = Daemon::builder().script(script).yolo();
    let daemon = builder.env("LOOPD_UNATTENDED_TIMEOUT", "0").start().await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    client.vanish().await;
    no_reason_to_stay(&daemon).await;
    let mut resumed = daemon.client().resume(&session.id, json!({})).await;
    let messages = resumed.messages().await;
    let closed = messages
        .iter()
        .find(|event| event["type"] == "session.info");
    let text = closed.expect("the end is recorded")["data"]["message"].to_string();
    assert!(text.contains("waited for input"), "{text}");
    assert!(!text.contains("no command ran"), "{text}");
    resumed.ask("again").await;
    let request = daemon.script().last_request();
    let all = serde_json::to_string(request.messages()).unwrap();
    assert!(
        all.contains("it waited for input and no user was there"),
        "{all}"
    );
    daemon.finish().await;
}
