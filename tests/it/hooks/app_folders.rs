//! Folders of hooks that an app names (`hookDirectories`): it vouches for what is in them at that moment,
//! and their guards hold like any others.

use std::path::Path;

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::opened_below::{kid_of, with_kid};
use super::support::{bash, end_of, one_call, warning, without_hooks};
use super::tree::{go_on, says, tree};

const DENIED: &str = "Denied by preToolUse hook";
const CHANGED: &str = "was changed, moved, deleted or turned off since an app named its folder";

/// A folder of an app with one file of hooks.
fn folder(hooks: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), hooks);
    folder
}

fn write(folder: &Path, hooks: &Value) {
    let text = json!({"version": 1, "hooks": hooks}).to_string();
    std::fs::write(folder.join("guard.json"), text).unwrap();
}

/// A guard of commands that does this.
fn guard(script: &str) -> Value {
    json!({"preToolUse": [{"bash": script, "matcher": "bash"}]})
}

fn naming(folders: &[&Path]) -> Value {
    let mut options = without_hooks();
    options["hookDirectories"] = json!(folders);
    options
}

/// A daemon, and a session whose app names this folder.
async fn guarded(folder: &TempDir, turns: impl IntoIterator<Item = Turn>) -> (Daemon, Session) {
    let daemon = Daemon::playing(turns).await;
    let session = daemon.client().create(naming(&[folder.path()])).await;
    session.approve_all().await;
    (daemon, session)
}

fn tries(prompt: &str, result: &str) -> [Turn; 2] {
    let call = bash(&format!("call-{prompt}"), "touch made");
    [
        Turn::user(prompt).calls([call]),
        Turn::results([result]).says("done"),
    ]
}

#[tokio::test]
async fn a_guard_of_a_folder_that_an_app_names_denies() {
    let folder = folder(&guard("echo no >&2; exit 2"));
    let (daemon, mut session) = guarded(&folder, one_call(bash("c", "touch made"), DENIED)).await;
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    assert!(end.to_string().contains("guard.json:1"), "{end}");
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_fails_denies_whatever_discovery_and_files_of_hooks_say() {
    for (script, options) in [
        ("exit 1", json!({})),
        ("echo nonsense", json!({"enableFileHooks": false})),
        ("kill -9 $$", json!({"enableConfigDiscovery": false})),
        ("exit 1", json!({"enableConfigDiscovery": true})),
    ] {
        let folder = folder(&guard(script));
        let daemon = Daemon::playing(one_call(bash("c", "touch made"), DENIED)).await;
        let mut all = naming(&[folder.path()]);
        for (name, value) in options.as_object().unwrap() {
            all[name] = value.clone();
        }
        let mut session = daemon.client().create(all).await;
        session.approve_all().await;
        session.ask("go").await;
        assert!(!daemon.file("made").exists(), "{script}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_relative_folder_stays_where_it_is_when_the_session_moves() {
    let turns = tries("one", DENIED).into_iter().chain(tries("two", DENIED));
    let daemon = Daemon::playing(turns).await;
    std::fs::create_dir_all(daemon.file("app/hooks")).unwrap();
    std::fs::create_dir_all(daemon.file("elsewhere")).unwrap();
    write(&daemon.file("app/hooks"), &guard("exit 2"));
    let mut options = naming(&[Path::new("hooks")]);
    options["workingDirectory"] = "app".into();
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("one").await;
    let moved = json!({"workingDirectory": daemon.file("elsewhere")});
    session
        .call("session.metadata.setWorkingDirectory", moved)
        .await;
    session.ask("two").await;
    assert!(!daemon.file("app/made").exists() && !daemon.file("elsewhere/made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn it_holds_in_a_grandchild_and_after_a_restart_without_being_named_again() {
    let folder = folder(&guard("cat >> seen; exit 2"));
    let mut daemon = tree().await;
    let mut session = daemon.client().create(naming(&[folder.path()])).await;
    session.send("begin").await;
    says(&mut session, "it is done").await;
    session.next("session.idle").await;
    let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
    assert!(seen.contains("\"agentId\":\"one.two\""), "{seen}");
    std::fs::remove_file(daemon.file("seen")).unwrap();
    daemon.restart().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    go_on(&other).await;
    says(&mut other, "it is done again").await;
    other.next("session.idle").await;
    let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
    assert!(seen.contains("\"agentId\":\"one\""), "{seen}");
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn it_holds_in_the_session_of_an_agent_that_another_client_opens() {
    let folder = folder(&guard("exit 2"));
    let mut daemon = with_kid(DENIED).await;
    let mut session = daemon.client().create(naming(&[folder.path()])).await;
    session.ask("begin").await;
    let kid = kid_of(&session).await;
    daemon.restart().await;
    let mut kid = daemon.client().resume(&kid, without_hooks()).await;
    kid.ask("do it").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_that_is_changed_after_it_was_named_denies_until_the_folder_is_named_again() {
    let script = tempfile::tempdir().unwrap();
    let script = script.path().join("guard.sh");
    let run = format!("bash {}", script.display());
    std::fs::write(&script, "exit 0").unwrap();
    let folder = folder(&guard(&run));
    let turns = tries("one", CHANGED)
        .into_iter()
        .chain(tries("two", CHANGED));
    let turns = turns.chain(tries("three", ""));
    let (mut daemon, mut session) = guarded(&folder, turns).await;
    // A script that the guard runs, wherever it is.
    std::fs::write(&script, "exit 0 # ours now").unwrap();
    session.send("one").await;
    let told = warning(&mut session, "hook_file").await;
    for part in ["guard.json, line 1", CHANGED, "session.options.update"] {
        assert!(told.contains(part), "{told}");
    }
    let end = end_of(&mut session, "call-one").await;
    assert!(end.to_string().contains("hookDirectories"), "{end}");
    session.next("session.idle").await;
    // Nor does a restart lift it.
    let id = session.id.clone();
    daemon.restart().await;
    let mut session = daemon.client().resume(&id, without_hooks()).await;
    session.ask("two").await;
    assert!(!daemon.file("made").exists());
    let again = json!({"hookDirectories": [folder.path()]});
    session.call("session.options.update", again).await;
    session.ask("three").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_that_is_deleted_denies_also_before_anything_was_asked() {
    let folder = folder(&guard("exit 0"));
    let (daemon, mut session) = guarded(&folder, one_call(bash("c", "touch made"), CHANGED)).await;
    folder.close().unwrap();
    session.ask("go").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_comes_into_the_folder_later_does_not_run() {
    let folder = folder(&guard("exit 0"));
    let (daemon, mut session) = guarded(&folder, one_call(bash("c", "true"), "")).await;
    let late = json!({"version": 1, "hooks": {"preToolUse": [{"bash": "touch ran"}]}});
    std::fs::write(folder.path().join("late.json"), late.to_string()).unwrap();
    session.send("go").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(
        told.contains("late.json") && told.contains("since an app named"),
        "{told}"
    );
    session.next("session.idle").await;
    assert!(!daemon.file("ran").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_names_others_replaces_them_and_people_are_told() {
    let (first, second) = (folder(&guard("exit 2")), folder(&json!({})));
    let turns = tries("one", DENIED).into_iter().chain(tries("two", ""));
    let (daemon, mut session) = guarded(&first, turns).await;
    session.ask("one").await;
    // Who joins others changes nothing.
    let joined = daemon.client();
    let mut joined = joined.resume(&session.id, naming(&[second.path()])).await;
    let told = joined.next("session.info").await;
    assert!(told.to_string().contains("hookDirectories"), "{told}");
    joined.client().vanish().await;
    session.client().vanish().await;
    let client = daemon.client();
    let mut session = client.resume(&session.id, naming(&[])).await;
    let told = warning(&mut session, "guards_changed").await;
    let path = first.path().canonicalize().unwrap();
    assert!(told.contains(&*path.to_string_lossy()), "{told}");
    session.ask("two").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_of_a_project_that_is_not_trusted_counts_if_an_app_names_it_and_runs_once() {
    let turns = one_call(bash("c", "touch made"), "");
    let daemon = Daemon::playing(turns).await;
    let hooks = daemon.file(".github/hooks");
    std::fs::create_dir_all(daemon.file(".git")).unwrap();
    std::fs::create_dir_all(&hooks).unwrap();
    write(&hooks, &guard("echo x >> ran"));
    let mut options = naming(&[&hooks]);
    options["enableConfigDiscovery"] = true.into();
    let trust = json!({"path": daemon.work()});
    let first = daemon.client().create(without_hooks()).await;
    first
        .call("session.permissions.folderTrust.addTrusted", trust)
        .await;
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("go").await;
    let ran = std::fs::read_to_string(daemon.file("ran")).unwrap();
    assert_eq!(ran, "x\n");
    assert_eq!(session.count("session.warning"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_by_name() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let file = daemon.file("a_file");
    std::fs::write(&file, "").unwrap();
    let broken = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), text).unwrap();
        folder
    };
    let folders = [
        broken("{\"hooks\":\n {"),
        broken("{\"version\": 2, \"hooks\": {}}"),
        broken("{\"hooks\": {\"preToolUs\": [{\"bash\": \"true\"}]}}"),
        broken("{\"hooks\": {\"preToolUse\": [\n{\"bash\": \"true\", \"matcher\": \"(\"}]}}"),
        broken("/* {"),
    ];
    std::fs::create_dir(folders[4].path().join("b.json")).unwrap();
    let in_folder = |at: usize| json!([folders[at].path()]);
    for (named, expected) in [
        (
            json!(["/nowhere/at/all"]),
            "hookDirectories[0]: /nowhere/at/all does not exist",
        ),
        (json!([file]), "is not a directory"),
        (json!([""]), "hookDirectories[0]: it is empty"),
        (
            json!("x"),
            "hookDirectories: invalid type: string \"x\", expected a list",
        ),
        (
            json!(vec![daemon.work(); 65]),
            "hookDirectories: 65 folders are more than the limit of 64",
        ),
        (in_folder(0), "a.json, line 2: is not valid JSON"),
        (in_folder(1), "a.json, line 1: has version 2"),
        (in_folder(2), "preToolUse"),
        (in_folder(3), "a.json, line 2: "),
        (in_folder(4), "a.json, line 1: is empty"),
    ] {
        let params = json!({"hookDirectories": named});
        for method in ["session.create", "session.resume", "session.options.update"] {
            let mut params = params.clone();
            if method != "session.create" {
                params["sessionId"] = session.id.as_str().into();
            }
            let error = client.refused(method, params).await;
            assert_eq!(error.code, -32602, "{}", error.message);
            let message = &error.message;
            assert!(
                message.contains(expected) && message.contains("hookDirectories"),
                "{message}"
            );
        }
    }
    daemon.finish().await;
}

#[tokio::test]
async fn apps_can_look_what_a_folder_would_bring() {
    let folder = folder(&guard("exit 2"));
    let daemon = Daemon::playing([]).await;
    let asked = json!({"hookDirectories": [folder.path()], "excludeHostHooks": true});
    let found = daemon.client().call("hooks.discover", asked).await;
    assert_eq!(found["hooks"][0]["hookType"], "preToolUse", "{found}");
    assert_eq!(found["hooks"][0]["enabled"], true, "{found}");
    daemon.finish().await;
}
