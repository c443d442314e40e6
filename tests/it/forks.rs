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
