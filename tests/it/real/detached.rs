//! Detached commands outlive a daemon that is killed, and are found again by the next one.

use loopd_tests::binary::Loopd;
use loopd_tests::script::Recorded;
use loopd_tests::{Client, Latch, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A model that detaches a command when asked to, and reads it when it is notified.
async fn model(command: String) -> Script {
    Script::answering(move |request: &Recorded| {
        let results = request.last_results();
        let user = request.last_user_text();
        if !results.is_empty() {
            Turn::any().says("fine")
        } else if user.contains("<system_notification>") {
            let arguments = json!({"shellId": "d", "delay": 0});
            Turn::any().calls([call("read", "read_bash", arguments)])
        } else if user.contains("go") {
            let arguments =
                json!({"command": command, "mode": "async", "detach": true, "shellId": "d"});
            Turn::any().calls([call("start", "bash", arguments)])
        } else {
            Turn::any().says("hello")
        }
    })
    .await
}

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider})
}

async fn begin(home: &TempDir, script: &Script) -> (Loopd, Session) {
    let (loopd, client) = Loopd::private(home.path(), using(script));
    client.call("connect", json!({})).await;
    let mut session = client.create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    (loopd, session)
}

async fn resume(home: &TempDir, script: &Script, id: &str) -> (Loopd, Client, Session) {
    let (loopd, client) = Loopd::private(home.path(), using(script));
    client.call("connect", json!({})).await;
    let session = client
        .resume(id, json!({"continuePendingWork": true}))
        .await;
    (loopd, client, session)
}

/// The notification, and what the model then read.
async fn told(session: &mut Session, script: &Script) -> (Value, String) {
    let told = session.next("system.notification").await;
    session.next("session.idle").await;
    let read = script.last_request().last_results().pop().unwrap();
    (told["data"].clone(), read)
}

#[tokio::test]
async fn a_detached_command_goes_on_without_the_daemon_and_loses_no_line() {
    let home = TempDir::new().unwrap();
    let latch = Latch::new(home.path(), "latch");
    let command = format!(
        "for i in {{1..2000}}; do echo line $i; done; {}; echo $line; exit 5",
        latch.wait()
    );
    let mut script = model(command).await;
    let (loopd, session) = begin(&home, &script).await;
    loopd.kill_hard().await;
    let (loopd, _client, mut session) = resume(&home, &script, &session.id).await;
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"][0]["status"], "running");
    assert_eq!(tasks["tasks"][0]["attachmentMode"], "detached");
    let progress = session
        .call("session.tasks.getProgress", json!({"id": "d"}))
        .await;
    let recent = progress["progress"]["recentOutput"].as_str().unwrap();
    assert!(recent.ends_with("line 1999\nline 2000\n"), "{recent}");
    latch.release("end").await;
    let (told, read) = told(&mut session, &script).await;
    assert_eq!(told["kind"]["type"], "shell_detached_completed");
    assert_eq!(told["kind"]["shellId"], "d");
    let content = told["content"].as_str().unwrap();
    assert!(content.contains("<exit_code>5</exit_code>"), "{content}");
    let mut expected: Vec<String> = (1..=2000).map(|i| format!("line {i}")).collect();
    expected.push("end".to_owned());
    expected.push("<shellId: d completed with exit code 5>".to_owned());
    assert_eq!(read.lines().collect::<Vec<_>>(), expected);
    loopd.terminate();
    assert!(loopd.exited().await.success());
    script.finish();
}

#[tokio::test]
async fn a_command_that_ended_without_a_daemon_is_told_once_by_the_next() {
    let home = TempDir::new().unwrap();
    let lifeline = Lifeline::new(home.path());
    let latch = Latch::new(home.path(), "latch");
    let alive = lifeline.command();
    let (hold, _) = alive.split_once("; sleep").unwrap();
    let command = format!("{hold}; {}; echo over; exit 9", latch.wait());
    let mut script = model(command).await;
    let (loopd, session) = begin(&home, &script).await;
    let command = lifeline.started().await;
    loopd.kill_hard().await;
    latch.release("go").await;
    command.ended().await;
    let (loopd, _client, mut session) = resume(&home, &script, &session.id).await;
    let (told, read) = told(&mut session, &script).await;
    let content = told["content"].as_str().unwrap();
    assert!(content.contains("<exit_code>9</exit_code>"), "{content}");
    assert_eq!(read, "over\n<shellId: d completed with exit code 9>");
    loopd.kill_hard().await;
    let (loopd, _client, mut session) = resume(&home, &script, &session.id).await;
    session.ask("anything new?").await;
    let all = session.messages().await;
    let told = all
        .iter()
        .filter(|event| event["type"] == "system.notification");
    assert_eq!(told.count(), 1);
    loopd.terminate();
    assert!(loopd.exited().await.success());
    script.finish();
}
