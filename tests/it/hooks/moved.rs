//! Sessions that move to another directory: the guards that came into force stay in force, and people
//! are told so.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::edited::{guarded, trust};
use super::support::{bash, warning, without_hooks};

const MOVE: &str = "session.metadata.setWorkingDirectory";

/// Moves a session; people are told that the guards of this folder stay.
async fn moved(session: &mut Session, to: &TempDir, guards_of: &str) {
    let params = json!({ "workingDirectory": to.path() });
    session.call(MOVE, params).await;
    let told = warning(session, "guards_kept").await;
    let to = to.path().to_string_lossy();
    for part in [guards_of, &to, "stay in force"] {
        assert!(told.contains(part), "{told}");
    }
}

/// A model that makes one call that the guard denies, and one that it allows.
fn tries(prompt: &str, result: &str) -> [Turn; 2] {
    [
        Turn::user(prompt).calls([bash(&format!("{prompt}-no"), "touch forbidden")]),
        Turn::results([result]).says("done"),
    ]
}

#[tokio::test]
async fn the_guards_of_a_project_stay_when_the_session_moves_out_of_it() {
    let there = TempDir::new().unwrap();
    let mut turns = vec![
        Turn::user("go").calls([bash("a", "touch fine"), bash("b", "touch forbidden")]),
        Turn::results(["", "not this"]).says("done"),
    ];
    turns.extend(tries("after", "not this"));
    turns.extend(tries("resumed", "not this"));
    let mut daemon = guarded(turns).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    let folder = daemon.work().canonicalize().unwrap();
    moved(&mut session, &there, &folder.to_string_lossy()).await;
    session.ask("go").await;
    assert!(there.path().join("fine").exists(), "the session has moved");
    session.ask("after").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    session.approve_all().await;
    session.ask("resumed").await;
    assert!(!there.path().join("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_guards_of_a_project_stay_when_a_client_resumes_the_session_elsewhere() {
    let there = TempDir::new().unwrap();
    let mut turns = vec![Turn::user("hello").says("hello")];
    turns.extend(tries("resumed", "not this"));
    turns.extend(tries("later", "not this"));
    let mut daemon = guarded(turns).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.ask("hello").await;
    daemon.restart().await;
    let mut offer = without_hooks();
    offer["workingDirectory"] = json!(there.path());
    let mut session = daemon.client().resume(&session.id, offer).await;
    session.approve_all().await;
    session.ask("resumed").await;
    let events = session.messages().await;
    let kept = |event: &&Value| event["data"]["warningType"] == "guards_kept";
    assert_eq!(events.iter().filter(kept).count(), 1);
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    session.approve_all().await;
    session.ask("later").await;
    assert!(!there.path().join("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_is_taken_away_after_the_session_moved_denies() {
    let there = TempDir::new().unwrap();
    let mut turns = Vec::from(tries("here", "not this"));
    turns.extend(tries("gone", "was changed, moved, deleted or turned off"));
    turns.extend(tries(
        "resumed",
        "was changed, moved, deleted or turned off",
    ));
    turns.extend([
        Turn::user("trusted").calls([bash("c", "touch forbidden")]),
        Turn::results([""]).says("done"),
    ]);
    let mut daemon = guarded(turns).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    moved(&mut session, &there, "").await;
    session.ask("here").await;
    std::fs::remove_dir_all(daemon.file(".github")).unwrap();
    session.ask("gone").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    session.approve_all().await;
    session.ask("resumed").await;
    assert!(!there.path().join("forbidden").exists());
    trust(&daemon.client()).await;
    session.ask("trusted").await;
    assert!(there.path().join("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_moves_within_its_project_keeps_the_guards_of_a_folder_that_it_leaves() {
    let mut turns = Vec::from(tries("there", "not this"));
    turns.extend(tries("resumed", "not this"));
    let mut daemon = Daemon::playing(turns).await;
    let hooks = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"echo 'not this' >&2; exit 2"}]}}"#;
    let (one, other) = (daemon.file("one"), daemon.file("other"));
    std::fs::create_dir_all(daemon.file(".git")).unwrap();
    std::fs::create_dir_all(one.join(".github/hooks")).unwrap();
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(one.join(".github/hooks/guard.json"), hooks).unwrap();
    let client = daemon.client();
    let shown = client
        .call("loopd.trust.show", json!({ "path": one }))
        .await;
    let params = json!({"path": one, "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
    let mut offer = without_hooks();
    offer["workingDirectory"] = json!(one);
    let mut session = client.create(offer).await;
    session.approve_all().await;
    session
        .call(MOVE, json!({ "workingDirectory": other }))
        .await;
    let told = warning(&mut session, "guards_kept").await;
    assert!(told.contains("one"), "{told}");
    session.ask("there").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    session.approve_all().await;
    session.ask("resumed").await;
    assert!(!other.join("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn rules_that_deny_stay_when_the_session_moves_and_is_opened_again() {
    let there = TempDir::new().unwrap();
    let denied = "Permission";
    let mut turns = vec![Turn::user("hello").says("hello")];
    turns.extend(tries("there", denied));
    turns.extend(tries("resumed", denied));
    let mut daemon = Daemon::playing(turns).await;
    let rules = json!({"permissions": {"deny": ["Bash(touch:*)"]}}).to_string();
    std::fs::create_dir_all(daemon.file(".claude")).unwrap();
    std::fs::write(daemon.file(".claude/settings.json"), rules).unwrap();
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("hello").await;
    moved(&mut session, &there, "").await;
    session.ask("there").await;
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, without_hooks()).await;
    session.approve_all().await;
    session.ask("resumed").await;
    assert!(!there.path().join("forbidden").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn nobody_is_told_of_guards_that_are_not_there() {
    let there = TempDir::new().unwrap();
    let daemon = Daemon::playing([Turn::user("hello").says("hello")]).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session
        .call(MOVE, json!({ "workingDirectory": there.path() }))
        .await;
    session.ask("hello").await;
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}
