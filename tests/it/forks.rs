//! Copies of sessions that clients make while the source is at work.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

#[tokio::test]
async fn a_call_that_runs_in_the_source_is_closed_in_the_copy_and_the_copy_says_so() {
    let command = "echo begun > begun; cat pipe";
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", json!({"command": command}))]),
        Turn::results(["done"]).says("ok"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let pipe = daemon.file("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session.next("tool.execution_start").await;
    let params = json!({"sessionId": session.id});
    let forked = session.client().call("sessions.fork", params).await;
    let id = forked["sessionId"].as_str().unwrap();
    let fork = session.client().resume(id, json!({})).await;
    let stored = fork.messages().await;
    let closed = stored
        .iter()
        .find(|event| event["type"] == "tool.execution_complete")
        .unwrap();
    let text = closed["data"].to_string();
    assert!(
        text.contains("was running in the session that this one was copied from"),
        "{text}"
    );
    assert!(!text.contains("daemon stopped"), "{text}");
    // The source goes on.
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "done\n"))
        .await
        .unwrap()
        .unwrap();
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_copy_that_ends_before_its_first_event_keeps_what_narrows_rights() {
    let script = Script::play([
        Turn::user("go").calls([
            call("a", "bash", json!({"command": "touch made"})),
            call("b", "create", json!({"path": "new.txt", "file_text": "x"})),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let offer = json!({"hooks": true, "continuePendingWork": true});
    let session = daemon.client().create(offer).await;
    let rule = json!([{"kind": "shell", "argument": "touch:*"}]);
    let deny = json!({"scope": "session", "loopdDeny": rule});
    session.call("session.permissions.modifyRules", deny).await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    let first = session.messages().await[0]["id"].clone();
    let params = json!({"sessionId": session.id, "toEventId": first});
    let forked = session.client().call("sessions.fork", params).await;
    let id = forked["sessionId"].as_str().unwrap();

    let other = daemon.client();
    let mut fork = other.resume(id, json!({"continuePendingWork": true})).await;
    assert_eq!(fork.call("session.mode.get", json!({})).await, "plan");
    let state = daemon.state(id).await;
    assert_eq!(state.guards.count(), 1);
    assert_eq!(state.permissions.denied.len(), 1);
    fork.send("go").await;
    let waits = |event: &serde_json::Value| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "guard_absent"
    };
    fork.next_where("a call that waits for its guard", waits)
        .await;
    fork.call("loopd.hooks.lift", json!({})).await;
    fork.next("session.idle").await;
    assert!(!daemon.file("made").exists() && !daemon.file("new.txt").exists());
    daemon.finish().await;
}
