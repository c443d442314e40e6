//! Calls that were permitted and wait for their shell: they are judged again when their turn comes.

use loopd_tests::Latch;

use super::*;

/// A session in which one command waits, and a second one for the same shell waits for its end.
async fn waiting(latch: &Latch, told: &str) -> (Daemon, Session) {
    let in_shell = |id: &str, command: &str| {
        let arguments = json!({"command": command, "shellId": "one"});
        call(id, "bash", arguments)
    };
    let calls = [
        in_shell("a", &format!("echo begun; {}", latch.wait())),
        in_shell("b", "touch late.txt"),
    ];
    let daemon = daemon(vec![
        Turn::user("go").calls(calls),
        Turn::results(["begun", told]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    let begun = |event: &Value| {
        event["type"] == "tool.execution_partial_result" && event.to_string().contains("begun")
    };
    session.next_where("the first command", begun).await;
    (daemon, session)
}

#[tokio::test]
async fn a_command_whose_turn_comes_in_plan_mode_does_not_begin() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let (daemon, mut session) = waiting(&latch, "plan mode began while it waited").await;
    set(&session, "plan").await;
    latch.release("x").await;
    session.next("session.idle").await;
    assert!(!daemon.file("late.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_a_new_rule_denies_does_not_begin() {
    let folder = tempfile::TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let (daemon, mut session) = waiting(&latch, "touch").await;
    let rule = json!([{"kind": "shell", "argument": "touch:*"}]);
    let deny = json!({"scope": "session", "loopdDeny": rule});
    session.call("session.permissions.modifyRules", deny).await;
    latch.release("x").await;
    session.next("session.idle").await;
    assert!(!daemon.file("late.txt").exists());
    daemon.finish().await;
}
