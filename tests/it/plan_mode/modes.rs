//! How a session enters and leaves a mode.

use super::*;

async fn mode(session: &Session) -> Value {
    session.call("session.mode.get", json!({})).await
}

async fn send(session: &Session, prompt: &str, mode: &str) {
    let message = json!({"prompt": prompt, "agentMode": mode});
    session.call("session.send", message).await;
}

#[tokio::test]
async fn a_message_switches_the_mode_when_it_begins() {
    let create = |id: &str| call(id, "create", json!({"path": "new.txt", "file_text": "x"}));
    let daemon = daemon(vec![
        Turn::user("plan it").calls([create("a")]),
        Turn::results(["plan mode"]).says("planned"),
        Turn::user("do it").calls([create("b")]),
        Turn::results(["Created file"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    send(&session, "plan it", "plan").await;
    let changed = session.next("session.mode_changed").await;
    assert_eq!(
        changed["data"],
        json!({"previousMode": "interactive", "newMode": "plan"})
    );
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "plan");
    assert!(!daemon.file("new.txt").exists());
    send(&session, "do it", "interactive").await;
    session.next("session.idle").await;
    assert_eq!(mode(&session).await, "interactive");
    assert!(daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_switch_in_the_middle_of_a_turn_counts_for_the_next_call() {
    let gate = loopd_tests::Gate::new();
    let create = |id: &str, path: &str| call(id, "create", json!({"path": path, "file_text": "x"}));
    let daemon = daemon(vec![
        Turn::user("go").calls([create("a", "first.txt")]),
        Turn::any()
            .calls([create("b", "second.txt"), bash("c", "echo x > third.txt")])
            .held_by(&gate),
        Turn::any().says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    set(&session, "plan").await;
    gate.open();
    session.next("session.idle").await;
    assert!(daemon.file("first.txt").exists());
    assert!(!daemon.file("second.txt").exists() && !daemon.file("third.txt").exists());
    assert!(result_of(&session, "b").contains("plan mode"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_person_runs_commands_as_before() {
    let daemon = daemon(Vec::new()).await;
    let session = planning(&daemon).await;
    let command = json!({"command": "echo x > mine.txt"});
    session.call("session.shell.exec", command).await;
    session
        .client()
        .note("shell.exit", |note| note["exitCode"] == 0)
        .await;
    assert!(daemon.file("mine.txt").exists());
    daemon.finish().await;
}
