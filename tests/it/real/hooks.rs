//! Hooks under a daemon that is killed: nothing runs unguarded afterwards.

use std::path::Path;

use loopd_tests::binary::Loopd;
use loopd_tests::{Client, Lifeline, Script, Turn, call};
use serde_json::{Value, json};
use tempfile::TempDir;

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider, "requestPermission": true,
           "enableFileHooks": true})
}

fn turns() -> [Turn; 3] {
    let touch = |id: &str| call(id, "bash", json!({"command": "touch made"}));
    [
        Turn::user("go").calls([touch("c")]),
        Turn::user("again").calls([touch("d")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
    ]
}

fn write_hook(home: &Path, script: &str) {
    let folder = home.join("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let hook = json!({"bash": script, "timeoutSec": 600});
    let hooks = json!({"version": 1, "hooks": {"preToolUse": [hook]}});
    std::fs::write(folder.join("guard.json"), hooks.to_string()).unwrap();
}

#[tokio::test]
async fn a_call_whose_guard_ran_when_the_daemon_was_killed_never_runs() {
    for pending in [false, true] {
        let script = Script::answering(|request| {
            let touch = |id: &str| call(id, "bash", json!({"command": "touch made"}));
            match (request.last_results().len(), request.last_user_text()) {
                (0, text) if text.contains("go") => Turn::any().calls([touch("c")]),
                (0, text) if text.contains("again") => Turn::any().calls([touch("d")]),
                _ => Turn::any().says("I see"),
            }
        });
        let mut script = script.await;
        let home = TempDir::new().unwrap();
        let work = TempDir::new().unwrap();
        let lifeline = Lifeline::new(work.path());
        write_hook(home.path(), &lifeline.command());
        let (loopd, client) = Loopd::permissive(home.path(), using(&script));
        let folder = json!({"workingDirectory": work.path()});
        let session = client.create(folder).await;
        session.send("go").await;
        let alive = lifeline.started().await;
        loopd.kill_hard().await;
        alive.ended().await;

        write_hook(home.path(), "exit 2");
        let (loopd, client) = Loopd::permissive(home.path(), using(&script));
        let wants = json!({"continuePendingWork": pending});
        let mut session = client.resume(&session.id, wants).await;
        if pending {
            session.next("session.idle").await;
        }
        session.ask("again").await;
        let events = session.messages().await;
        let ends = events
            .iter()
            .filter(|it| it["type"] == "tool.execution_complete");
        let ends: Vec<(&Value, &Value)> = ends
            .map(|it| (&it["data"]["toolCallId"], &it["data"]["error"]["code"]))
            .collect();
        let (c, d) = (json!("c"), json!("d"));
        let (interrupted, denied) = (json!("interrupted"), json!("denied"));
        assert_eq!(ends, [(&c, &interrupted), (&d, &denied)]);
        assert!(!work.path().join("made").exists());
        loopd.kill_hard().await;
        script.finish();
    }
}

/// Takes hooks until one of this kind comes, and answers the others.
async fn asked(client: &Client, kind: &str) -> loopd_tests::ServerRequest {
    loop {
        let request = client.request("hooks.invoke").await;
        if request.params["hookType"] == kind {
            return request;
        }
        request.answer(json!({}));
    }
}

#[tokio::test]
async fn a_session_that_a_client_guarded_is_guarded_after_a_kill() {
    let mut script = Script::play(turns()).await;
    let home = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    let offer = json!({"workingDirectory": work.path(), "hooks": true});
    let session = client.create(offer).await;
    session.send("go").await;
    let _unanswered = asked(&client, "preToolUse").await;
    loopd.kill_hard().await;

    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    let mut session = client.resume(&session.id, json!({})).await;
    session.send("again").await;
    let waits = |event: &Value| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "guard_absent"
    };
    session.next_where("a call that waits", waits).await;
    assert!(!work.path().join("made").exists());
    // The same app comes back with its hooks.
    let again = json!({"hooks": true, "continuePendingWork": true});
    let mut session = client.resume(&session.id, again).await;
    let request = asked(&client, "preToolUse").await;
    assert_eq!(request.params["input"]["toolCallId"], "d");
    request.answer(json!({"output": {"permissionDecision": "deny"}}));
    asked(&client, "agentStop").await.answer(json!({}));
    session.next("session.idle").await;
    assert!(!work.path().join("made").exists());
    loopd.kill_hard().await;
    script.finish();
}
