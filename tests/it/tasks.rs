//! Ends of background commands: told to the model once, and only if it does not know already.

use loopd_tests::{Daemon, Gate, Latch, Script, Session, Turn, call};
use serde_json::json;
use tempfile::TempDir;

async fn daemon(turns: Vec<Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

/// A command that waits in the background, as the model asks for it.
fn background(latch: &Latch, more: &str) -> loopd_tests::script::Call {
    let command = format!("{}; {more}", latch.wait());
    let arguments = json!({"command": command, "mode": "async", "shellId": "s",
        "description": "Build <it>"});
    call("start", "bash", arguments)
}

fn notified(session: &Session) -> usize {
    session.count("system.notification")
}

#[tokio::test]
async fn an_idle_session_wakes_and_tells_the_model() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "exit 3")]),
        Turn::results(["background as shellId s"]).says("started"),
        Turn::user("<exit_code>3</exit_code>").says("it failed"),
        Turn::user("next").says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    latch.release("x").await;
    let told = session.next("system.notification").await;
    assert_eq!(
        told["data"]["kind"],
        json!({"type": "shell_completed", "shellId": "s", "exitCode": 3, "description": "Build <it>"})
    );
    let content = told["data"]["content"].as_str().unwrap();
    assert!(content.starts_with("<system_notification>\n<task_id>s</task_id>\n<tool_use_id>start</tool_use_id>\n<status>failed</status>\n<exit_code>3</exit_code>\n"), "{content}");
    assert!(content.contains("Build &lt;it&gt;"), "{content}");
    assert!(
        content.contains("read_bash with shellId \"s\""),
        "{content}"
    );
    session.next("session.idle").await;
    session.ask("next").await;
    assert_eq!(notified(&session), 1);
    assert!(session.count("session.background_tasks_changed") >= 2);
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_read_to_its_end_is_not_told_again() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let read = call("read", "read_bash", json!({"shellId": "s", "delay": 60}));
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "echo $line")]),
        Turn::results(["background as shellId s"]).calls([read]),
        Turn::results(["all of it\n<shellId: s completed with exit code 0>"]).says("read"),
        Turn::user("next").says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session
        .next_where("the read", |event| {
            event["type"] == "tool.execution_start" && event["data"]["toolCallId"] == "read"
        })
        .await;
    latch.release("all of it").await;
    session.next("session.idle").await;
    session.ask("next").await;
    assert_eq!(notified(&session), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_person_says_comes_before_a_notification() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let gate = Gate::new();
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"])
            .says("started")
            .held_by(&gate),
        Turn::user("person").says("yes"),
        Turn::user("<status>completed</status>").says("noted"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    latch.release("x").await;
    daemon
        .until(&session.id, "the command to end", |state| {
            state.tasks.get("s").is_some_and(|task| !task.is_running())
        })
        .await;
    session.send("person").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(
        session.count("session.idle"),
        1,
        "all of it is one stretch of work"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_loop_that_runs_hears_of_an_end_before_its_next_model_call() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let gate = Gate::new();
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"])
            .calls([call("more", "bash", json!({"command": "echo more"}))])
            .held_by(&gate),
        Turn::user("<status>completed</status>").says("both"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    gate.reached().await;
    latch.release("x").await;
    daemon
        .until(&session.id, "the command to end", |state| {
            state.tasks.get("s").is_some_and(|task| !task.is_running())
        })
        .await;
    gate.open();
    session.next("session.idle").await;
    let request = daemon.script().last_request();
    let roles: Vec<&str> = request
        .messages()
        .iter()
        .rev()
        .take(2)
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "tool"]);
    assert_eq!(notified(&session), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn without_anybody_attached_the_notification_waits_for_somebody() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"]).says("started"),
        Turn::user("hello").says("hi"),
        Turn::user("<status>completed</status>").says("noted"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    client.vanish().await;
    latch.release("x").await;
    let state = daemon
        .until(&session.id, "the command to end", |state| {
            state.tasks.get("s").is_some_and(|task| !task.is_running())
        })
        .await;
    assert!(!state.is_busy(), "nobody is there to answer to");
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.ask("hello").await;
    assert_eq!(notified(&session), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_died_with_the_daemon_is_told_as_interrupted_and_only_once() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let read = call("read", "read_bash", json!({"shellId": "s"}));
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"]).says("started"),
        Turn::user("hello").says("hi"),
        Turn::user("because the daemon stopped").calls([read]),
        Turn::results(["ended with an earlier run"]).says("noted"),
        Turn::user("again").says("fine"),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    client.vanish().await;
    daemon.live(&session.id).stop().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.ask("hello").await;
    daemon.live(&session.id).stop().await;
    let mut session = daemon.client().resume(&session.id, json!({})).await;
    session.ask("again").await;
    let all = session.messages().await;
    let told = all
        .iter()
        .filter(|event| event["type"] == "system.notification");
    assert_eq!(told.count(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn pending_work_is_waited_for_with_the_turn_that_follows_it() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"]).says("started"),
        Turn::user("<status>completed</status>").says("noted"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let waiting = session.start("session.tasks.waitForPending", json!({}));
    latch.release("x").await;
    assert_eq!(waiting.await.unwrap(), json!({}));
    assert_eq!(daemon.script().requests().len(), 3);
    let refreshed = session.call("session.tasks.refresh", json!({})).await;
    assert_eq!(refreshed, json!({}));
    daemon.finish().await;
}

#[tokio::test]
async fn shells_take_no_messages_and_an_agent_that_is_not_there_is_said_to_be_so() {
    let folder = TempDir::new().unwrap();
    let latch = Latch::new(folder.path(), "latch");
    let daemon = daemon(vec![
        Turn::user("go").calls([background(&latch, "true")]),
        Turn::results(["background as shellId s"]).says("started"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    let sent = session
        .call(
            "session.tasks.sendMessage",
            json!({"id": "s", "message": "hi"}),
        )
        .await;
    assert_eq!(sent["sent"], false);
    assert!(sent["error"].as_str().unwrap().contains("shell command"));
    let sent = session
        .call(
            "session.tasks.sendMessage",
            json!({"id": "x", "message": "hi"}),
        )
        .await;
    assert!(sent["error"].as_str().unwrap().contains("no agent \"x\""));
    let params = json!({"agentType": "nobody", "prompt": "look", "name": "n"});
    let refused = session.refused("session.tasks.startAgent", params).await;
    assert!(
        refused.message.contains("no agent `nobody`") && refused.message.contains("explore"),
        "{}",
        refused.message
    );
    let cancelled = session
        .call("session.tasks.cancel", json!({"id": "s"}))
        .await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    daemon.finish().await;
}
