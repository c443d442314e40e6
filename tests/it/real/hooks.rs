//! Hooks under a daemon that is killed: nothing runs unguarded afterwards.

use std::path::Path;

use loopd_tests::binary::Loopd;
use loopd_tests::script::{Call, Recorded};
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
    write_hook_for(home, script, ".*");
}

fn write_hook_for(home: &Path, script: &str, matcher: &str) {
    let folder = home.join("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let hook = json!({"bash": script, "timeoutSec": 600, "matcher": matcher});
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

fn task(id: &str, prompt: &str, name: &str, mode: &str) -> Call {
    let arguments = json!({"description": "a part of it", "prompt": prompt, "name": name,
                           "mode": mode, "agent_type": "general-purpose"});
    call(id, "task", arguments)
}

/// An agent in the background that has an agent run a command, and another one when it is told to go on.
fn tree(request: &Recorded) -> Turn {
    let (first, last) = (request.first_user_text(), request.last_user_text());
    let has_results = !request.last_results().is_empty();
    let touch = |id: &str| call(id, "bash", json!({"command": "touch made"}));
    match () {
        () if has_results => Turn::any().says("I see"),
        () if last.contains("level two") => Turn::any().calls([touch("c")]),
        () if last.contains("level three") => Turn::any().calls([touch("d")]),
        () if last.contains("go on") => {
            Turn::any().calls([task("v", "level three", "three", "sync")])
        }
        () if last.contains("level one") => {
            Turn::any().calls([task("u", "level two", "two", "sync")])
        }
        () if last.contains("begin") && first.contains("begin") => {
            Turn::any().calls([task("t", "level one", "one", "background")])
        }
        () => Turn::any().says("I see"),
    }
}

#[tokio::test]
async fn a_guard_holds_in_a_grandchild_of_a_background_agent_also_after_a_kill() {
    let mut script = Script::answering(tree).await;
    let home = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let lifeline = Lifeline::new(work.path());
    // The daemon is killed while the guard of the grandchild runs.
    write_hook_for(home.path(), &lifeline.command(), "bash");
    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    let session = client
        .create(json!({"workingDirectory": work.path()}))
        .await;
    session.send("begin").await;
    let alive = lifeline.started().await;
    loopd.kill_hard().await;
    alive.ended().await;
    assert!(!work.path().join("made").exists());

    write_hook_for(
        home.path(),
        "cat >> seen; echo 'not this' >&2; exit 2",
        "bash",
    );
    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    let mut session = client.resume(&session.id, json!({})).await;
    let message = json!({"id": "one", "message": "go on"});
    let sent = session.call("session.tasks.sendMessage", message).await;
    assert_eq!(sent["sent"], true, "{sent}");
    let is_end = |event: &Value| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "d"
    };
    let end = session
        .next_where("the call of the grandchild", is_end)
        .await;
    assert_eq!(end["data"]["error"]["code"], "denied", "{end}");
    assert!(!work.path().join("made").exists());
    let seen = std::fs::read_to_string(work.path().join("seen")).unwrap();
    let seen: Value = serde_json::from_str(seen.trim()).unwrap();
    assert_eq!(seen["agentId"], "one.three");
    assert_eq!(seen["toolCallId"], "d");
    loopd.kill_hard().await;
    script.finish();
}

/// Opens a session with a hook that notes its end, and lets it answer once.
async fn with_end_hook(home: &Path, work: &Path, command: &str) -> (Loopd, Client, Script) {
    let script = Script::play([Turn::user("go").says("done")]).await;
    let folder = home.join("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let hooks = json!({"version": 1, "hooks": {"sessionEnd": [{"bash": command}]}});
    std::fs::write(folder.join("end.json"), hooks.to_string()).unwrap();
    let (loopd, client) = Loopd::relay(home, using(&script));
    let mut session = client.create(json!({"workingDirectory": work})).await;
    session.ask("go").await;
    (loopd, client, script)
}

#[tokio::test]
async fn hooks_are_told_that_sessions_end_when_the_daemon_stops() {
    for asks in [true, false] {
        let (home, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let ended = with_end_hook(home.path(), work.path(), "cat > ended");
        let (loopd, client, mut script) = ended.await;
        if asks {
            client.call("loopd.daemonStop", json!({})).await;
        } else {
            for pid in loopd_tests::binary::daemons(home.path()) {
                let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
            }
        }
        loopd.exited().await;
        let told = std::fs::read_to_string(work.path().join("ended")).unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["reason"], "user_exit", "{asks}");
        script.finish();
    }
}

#[tokio::test]
async fn a_hook_at_the_end_of_a_session_does_not_hold_up_the_end_of_the_daemon() {
    let (home, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let lifeline = Lifeline::new(work.path());
    let command = lifeline.command();
    let ended = with_end_hook(home.path(), work.path(), &command);
    let (loopd, client, mut script) = ended.await;
    client.call("loopd.daemonStop", json!({})).await;
    let alive = lifeline.started().await;
    loopd.exited().await;
    alive.ended().await;
    script.finish();
}

/// The scratch folders of plan mode below a home.
#[cfg(target_os = "linux")]
fn scratch_folders(home: &Path) -> Vec<std::path::PathBuf> {
    let sessions = std::fs::read_dir(home.join("session-state")).into_iter();
    let temps = sessions
        .flatten()
        .flatten()
        .map(|it| it.path().join("temp"));
    let entries = temps.flat_map(|temp| std::fs::read_dir(temp).into_iter().flatten().flatten());
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|it| {
            it.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("sandbox-")
        })
        .collect()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_next_daemon_removes_the_scratch_folder_that_a_killed_one_left() {
    let write = "mkdir \"$TMPDIR/a\"; echo x > \"$TMPDIR/a/b\"; ln -s \"$PWD\" \"$TMPDIR/link\"";
    let turns = [
        Turn::user("go").calls([call("c", "bash", json!({"command": write}))]),
        Turn::any().says("done"),
    ];
    let mut script = Script::play(turns).await;
    let (home, work) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::fs::write(work.path().join("mine"), "").unwrap();
    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    let mut session = client
        .create(json!({"workingDirectory": work.path()}))
        .await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    session.ask("go").await;
    assert_eq!(scratch_folders(home.path()).len(), 1);
    loopd.kill_hard().await;
    assert_eq!(scratch_folders(home.path()).len(), 1);

    let (loopd, client) = Loopd::permissive(home.path(), using(&script));
    client.call("session.list", json!({})).await;
    assert!(scratch_folders(home.path()).is_empty());
    assert!(work.path().join("mine").exists(), "no link is followed");
    loopd.kill_hard().await;
    script.finish();
}
