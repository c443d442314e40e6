//! Hooks of the user's own files, which need no trust: people are told of each new one, and a guard does not
//! stop guarding because a command changed its file.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::json;

use super::support::{bash, warning, with_files, without_hooks, write_hooks};

#[tokio::test]
async fn a_hook_that_a_tool_wrote_does_not_run_without_a_word() {
    let wrote = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"touch ran"}]}}"#;
    let turns = [
        Turn::user("one").calls([bash("a", "true")]),
        Turn::any().says("done"),
        Turn::user("two").calls([bash("b", "true")]),
        Turn::any().says("done"),
        Turn::user("three").says("done"),
    ];
    let hooks = json!({"preToolUse": [{"bash": "true"}]});
    let (daemon, mut session) = with_files(hooks.clone(), turns).await;
    session.approve_all().await;
    session.send("one").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("test.json, line"), "{told}");
    assert!(told.contains("is new or has changed"), "{told}");
    session.next("session.idle").await;

    std::fs::write(daemon.home().join("hooks/evil.json"), wrote).unwrap();
    session.send("two").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("evil.json, line 1"), "{told}");
    session.next("session.idle").await;
    assert!(daemon.file("ran").exists());

    // What people were told once, in whichever session, they are not told again.
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let mut other = daemon.client().create(offer).await;
    other.ask("three").await;
    assert_eq!(other.count("session.warning"), 0);
    write_hooks(&daemon, &hooks);
    daemon.finish().await;
}

const GUARD: &str = "exit 2";

/// What is wrong with hooks here, as `loop hooks` tells it.
async fn listed(daemon: &Daemon) -> String {
    let listed = daemon.client().call("loopd.hooks.list", json!({})).await;
    listed.to_string()
}

/// Asks for a command that has to be asked about although everything is allowed, and refuses it.
async fn is_asked(session: &mut Session, prompt: &str) {
    session.send(prompt).await;
    let (id, request) = session.permission().await;
    let text = request.to_string();
    assert!(text.contains("touch made"), "{text}");
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
}

#[tokio::test]
async fn a_guard_that_a_command_deletes_has_a_person_asked_until_that_is_accepted() {
    // A call that a person rejects ends the turn.
    let tries = ["two", "three", "four"]
        .map(|prompt| Turn::user(prompt).calls([bash(&format!("call-{prompt}"), "touch made")]));
    let first = [
        Turn::user("one").calls([bash("a", "touch made")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
    ];
    let last = [
        Turn::user("five").calls([bash("z", "touch made")]),
        Turn::any().says("done"),
    ];
    let turns = first.into_iter().chain(tries).chain(last);
    let hooks = json!({"preToolUse": [{"bash": GUARD, "matcher": "bash"}]});
    let (mut daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.ask("one").await;

    std::fs::remove_dir_all(daemon.home().join("hooks")).unwrap();
    session.send("two").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(
        told.contains("your guard preToolUse (bash) was changed"),
        "{told}"
    );
    assert!(told.contains("loop hooks accept"), "{told}");
    let (id, _) = session.permission().await;
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert!(listed(&daemon).await.contains("since loopd last used it"));

    // A restart does not lift it, nor does another session.
    let id = session.id.clone();
    daemon.restart().await;
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let mut session = daemon.client().resume(&id, offer.clone()).await;
    session.approve_all().await;
    is_asked(&mut session, "three").await;
    let mut other = daemon.client().create(offer).await;
    other.approve_all().await;
    is_asked(&mut other, "four").await;
    assert!(!daemon.file("made").exists());

    let accepted = daemon.client().call("loopd.hooks.accept", json!({})).await;
    let given_up = accepted["givenUp"].as_array().unwrap();
    assert_eq!(given_up.len(), 1, "{accepted}");
    assert_eq!(given_up[0]["message"], "preToolUse (bash)");
    other.ask("five").await;
    assert!(daemon.file("made").exists());
    assert!(!listed(&daemon).await.contains("since loopd last used it"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_whose_script_a_command_changes_has_a_person_asked() {
    let turns = [
        Turn::user("one").calls([bash("a", "touch made")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
        Turn::user("two").calls([bash("b", "touch made")]),
    ];
    let script = tempfile::tempdir().unwrap();
    let path = script.path().join("guard.sh");
    std::fs::write(&path, "exit 2").unwrap();
    let command = format!("bash {}", path.display());
    let hooks = json!({"preToolUse": [{"bash": command, "matcher": "bash"}]});
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.ask("one").await;
    std::fs::write(&path, "exit 0").unwrap();
    is_asked(&mut session, "two").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn settings_that_a_command_writes_turn_off_no_guard_until_that_is_accepted() {
    let turns = [
        Turn::user("one").calls([bash("a", "touch made")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
        Turn::user("two").calls([bash("b", "touch made")]),
        Turn::results(["Denied by preToolUse hook"]).says("done"),
        Turn::user("three").calls([bash("c", "touch made")]),
        Turn::any().says("done"),
    ];
    let hooks = json!({"preToolUse": [{"bash": GUARD, "matcher": "bash"}]});
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.ask("one").await;
    let settings = daemon.home().join("settings.json");
    std::fs::write(settings, r#"{"disableAllHooks": true}"#).unwrap();
    session.send("two").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("turns off nothing until you say"), "{told}");
    session.next("session.idle").await;
    assert!(listed(&daemon).await.contains("turns off nothing"));

    daemon.client().call("loopd.hooks.accept", json!({})).await;
    session.ask("three").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

const ALLOW: &str = r#"echo '{"permissionDecision": "allow"}'"#;

/// Answers what a session asks with a no and returns whether it asked.
async fn asks(session: &mut Session, prompt: &str) -> bool {
    session.send(prompt).await;
    let event = session
        .next_where("a question or the end", |event| {
            ["permission.requested", "session.idle"]
                .contains(&event["type"].as_str().unwrap_or_default())
        })
        .await;
    if event["type"] == "session.idle" {
        return false;
    }
    let id = event["data"]["requestId"].as_str().unwrap().to_owned();
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    true
}

/// A session with hooks of files that asks for permissions.
fn offer() -> serde_json::Value {
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    offer["requestPermission"] = true.into();
    offer
}

#[tokio::test]
async fn a_hook_that_a_tool_wrote_allows_nothing_until_that_is_accepted() {
    let tried =
        |prompt: &str| Turn::user(prompt).calls([bash(&format!("call-{prompt}"), "touch made")]);
    let daemon = Daemon::playing([
        tried("one"),
        tried("two"),
        tried("three"),
        Turn::any().says("done"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    assert!(asks(&mut session, "one").await);

    write_hooks(&daemon, &json!({"preToolUse": [{"bash": ALLOW}]}));
    session.send("two").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(
        told.contains("cannot allow anything until you say"),
        "{told}"
    );
    let (id, _) = session.permission().await;
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert!(
        listed(&daemon)
            .await
            .contains("what it allows does not count")
    );

    let accepted = daemon.client().call("loopd.hooks.accept", json!({})).await;
    assert_eq!(accepted["added"][0]["message"], "preToolUse", "{accepted}");
    assert_eq!(accepted["givenUp"], json!([]), "{accepted}");
    assert!(!asks(&mut session, "three").await);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

/// What was there when loopd looked for the first time is the user's.
#[tokio::test]
async fn a_hook_that_was_there_from_the_beginning_allows() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([bash("a", "touch made")]),
        Turn::any().says("done"),
    ])
    .await;
    write_hooks(&daemon, &json!({"preToolUse": [{"bash": ALLOW}]}));
    let mut session = daemon.client().create(offer()).await;
    assert!(!asks(&mut session, "one").await);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn nobody_is_told_that_what_was_accepted_is_new() {
    let hooks = json!({"preToolUse": [{"bash": "true"}], "postToolUse": [{"bash": "true"}]});
    let (daemon, mut session) = with_files(hooks, [Turn::user("one").says("ok")]).await;
    daemon.client().call("loopd.hooks.accept", json!({})).await;
    session.ask("one").await;
    let events = session.events();
    let told: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "session.warning")
        .collect();
    assert!(told.is_empty(), "{told:?}");
    assert!(!listed(&daemon).await.contains("new"));
    daemon.finish().await;
}
