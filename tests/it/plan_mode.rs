//! Plan mode: nothing is written but the plan, by no tool, command or agent, until it ends.

mod agents;
mod answers;
mod guards;
mod leaving;
mod modes;
mod queued;
mod scratch;
mod shells;
mod waiting_calls;

use std::path::Path;
use std::sync::Arc;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A daemon whose launch allows everything: plan mode holds all the same.
async fn daemon(turns: Vec<Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

/// The options of a session whose agent is not told to go on when it stops.
fn quiet() -> Value {
    json!({"autopilot": {"continuationEnabled": false}})
}

async fn set(session: &Session, mode: &str) {
    session
        .call("session.mode.set", json!({"mode": mode}))
        .await;
}

async fn planning(daemon: &Daemon) -> Session {
    let session = daemon.client().create(json!({})).await;
    set(&session, "plan").await;
    session
}

fn bash(id: &str, command: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": command}))
}

/// The text that a call came to.
fn result_of(session: &Session, id: &str) -> String {
    let events = session.events();
    let complete = events.iter().find(|event| {
        event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id
    });
    text(complete.unwrap_or_else(|| panic!("{id} has no result")))
}

fn text(complete: &Value) -> String {
    let data = &complete["data"];
    let text = data["result"]["content"].as_str();
    text.or(data["error"]["message"].as_str())
        .unwrap()
        .to_owned()
}

/// The files below a folder with their contents.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let contents = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                found.push((path.display().to_string(), contents));
            }
        }
    }
    found.sort();
    found
}

/// Makes a small project in the working directory.
fn project(daemon: &Daemon) {
    std::fs::write(daemon.file("a.txt"), "one\n").unwrap();
    std::fs::write(daemon.file("script.sh"), "echo x > made-by-script.txt\n").unwrap();
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(daemon.work()).args(args);
        assert!(git.output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q", "."]);
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b.c",
        "commit",
        "-qm",
        "x",
    ]);
}

#[tokio::test]
async fn nothing_is_written_although_everything_is_allowed() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch";
    let daemon = daemon(vec![
        Turn::user("go").calls([
            call(
                "create",
                "create",
                json!({"path": "new.txt", "file_text": "x"}),
            ),
            call(
                "edit",
                "edit",
                json!({"path": "a.txt", "old_str": "one", "new_str": "two"}),
            ),
            call("patch", "apply_patch", json!({"input": patch})),
            bash("echo", "echo x > new.txt"),
            bash("sed", "sed -i s/one/two/ a.txt"),
            bash("python", "python3 -c \"open('new.txt', 'w').write('x')\""),
            bash(
                "git",
                "git -c user.name=A -c user.email=a@b.c commit --allow-empty -m y",
            ),
            bash("script", "sh script.sh"),
            bash("chmod", "chmod 600 a.txt"),
            bash(
                "look",
                "cat a.txt && git status --short && echo kept > \"$TMPDIR/x\"",
            ),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    project(&daemon);
    let before = files(daemon.work());
    let mut session = planning(&daemon).await;
    session.ask("go").await;
    assert_eq!(files(daemon.work()), before);
    for id in ["create", "edit", "patch"] {
        let told = result_of(&session, id);
        assert!(told.contains("plan mode"), "{id}: {told}");
        assert!(told.contains("exit_plan_mode"), "{id}: {told}");
    }
    for id in ["echo", "sed", "python", "git", "script", "chmod"] {
        let told = result_of(&session, id);
        let denied = told.contains("ermission denied") || told.contains("not permitted");
        assert!(denied && !told.contains("exit code 0"), "{id}: {told}");
    }
    let told = result_of(&session, "look");
    assert!(
        told.contains("one") && told.contains("exit code 0"),
        "{told}"
    );
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn tools_that_write_are_offered_outside_of_plan_mode_only() {
    let daemon = daemon(vec![
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let mut session = daemon.client().create(quiet()).await;
    let writers = ["create", "edit", "apply_patch"];
    for (prompt, mode, offered) in [
        ("one", "interactive", true),
        ("two", "plan", false),
        ("three", "autopilot", true),
    ] {
        set(&session, mode).await;
        session.ask(prompt).await;
        let request = daemon.script().last_request();
        let tools = request.tools();
        for writer in writers {
            assert_eq!(tools.contains(&writer), offered, "{mode}: {tools:?}");
        }
        assert!(
            tools.contains(&"bash") && tools.contains(&"view"),
            "{mode}: {tools:?}"
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn the_plan_is_the_one_file_that_may_be_written() {
    let path = Arc::new(std::sync::Mutex::new(String::new()));
    let known = path.clone();
    let script = Script::answering(move |request| {
        let plan = known.lock().unwrap().clone();
        let beside = plan.replace("plan.md", "other.md");
        if request.last_results().is_empty() {
            Turn::any().calls([
                call(
                    "plan",
                    "create",
                    json!({"path": plan, "file_text": "1. look"}),
                ),
                call("other", "create", json!({"path": beside, "file_text": "x"})),
            ])
        } else {
            Turn::any().says("done")
        }
    });
    let daemon = Daemon::builder().script(script.await).start().await;
    let mut session = planning(&daemon).await;
    let plan = session.call("session.plan.read", json!({})).await;
    *path.lock().unwrap() = plan["path"].as_str().unwrap().to_owned();
    session
        .call("session.plan.update", json!({"content": "x"}))
        .await;
    session.call("session.plan.delete", json!({})).await;
    session.ask("go").await;
    assert!(result_of(&session, "other").contains("plan mode"));
    let plan = session.call("session.plan.read", json!({})).await;
    assert_eq!(
        plan["content"],
        "1. look",
        "{}",
        result_of(&session, "plan")
    );
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_write_that_waits_for_permission_when_plan_mode_begins_is_refused() {
    let script = Script::play(vec![
        Turn::user("go").calls([call(
            "create",
            "create",
            json!({"path": "new.txt", "file_text": "x"}),
        )]),
        Turn::results(["plan mode"]).says("ok"),
    ]);
    let daemon = Daemon::with(script.await).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    set(&session, "plan").await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn tools_of_clients_ask_unless_they_say_that_they_only_read() {
    let script = Script::play(vec![Turn::user("go").calls([
        call("free", "deploy", json!({})),
        call("looks", "look_up", json!({})),
        call("noted", "search", json!({})),
    ])]);
    let daemon = Daemon::builder().script(script.await).yolo().start().await;
    let tools = json!([
        {"name": "deploy", "skipPermission": true},
        {"name": "look_up", "skipPermission": true, "readOnly": true},
        {"name": "search", "metadata": {"loopd.readOnly": true}},
    ]);
    let mut session = daemon
        .client()
        .create(json!({"tools": tools, "requestPermission": true}))
        .await;
    set(&session, "plan").await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["toolName"], "deploy", "{asked}");
    for _ in 0..2 {
        let (request, _) = session.tool_call().await;
        session.give(&request, json!({"result": "found"})).await;
    }
    assert!(session.decide(&request, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn plan_mode_outlives_the_daemon() {
    let mut daemon = daemon(vec![
        Turn::user("go").calls([
            call(
                "create",
                "create",
                json!({"path": "new.txt", "file_text": "x"}),
            ),
            bash("echo", "echo x > new.txt"),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    let session = planning(&daemon).await;
    let id = session.id.clone();
    daemon.restart().await;
    let mut session = daemon.client().resume(&id, json!({})).await;
    session.ask("go").await;
    assert!(result_of(&session, "create").contains("plan mode"));
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}
