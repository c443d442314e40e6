//! The checkpoints of a session, and what changed in its working directory.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use crate::worktrees::git;

fn shown(diff: &Value) -> Vec<(String, String)> {
    let changes = diff["changes"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    changes
        .map(|change| (text(&change["path"]), text(&change["changeType"])))
        .collect()
}

fn is(path: &str, kind: &str) -> (String, String) {
    (path.to_owned(), kind.to_owned())
}

#[tokio::test]
async fn checkpoints_are_listed_by_number_and_read() {
    let daemon = Daemon::builder().start().await;
    let session = daemon.client().create(json!({})).await;
    let listed = session
        .call("session.workspaces.listCheckpoints", json!({}))
        .await;
    assert_eq!(listed["checkpoints"], json!([]));
    let folder = daemon.home().join("session-state").join(&session.id);
    let folder = folder.join("checkpoints");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("010-later.md"), "# Later\n\nmore").unwrap();
    std::fs::write(folder.join("002-first.md"), "# The first\n").unwrap();
    std::fs::write(folder.join("notes.txt"), "not one").unwrap();
    let listed = session
        .call("session.workspaces.listCheckpoints", json!({}))
        .await;
    assert_eq!(
        listed["checkpoints"],
        json!([
            {"number": 2, "title": "The first", "filename": "002-first.md"},
            {"number": 10, "title": "Later", "filename": "010-later.md"},
        ])
    );
    let read = |number: u64| {
        session.call(
            "session.workspaces.readCheckpoint",
            json!({ "number": number }),
        )
    };
    assert_eq!(read(10).await["content"], "# Later\n\nmore");
    assert_eq!(read(4_294_967_294).await["content"], Value::Null);
    daemon.finish().await;
}

#[tokio::test]
async fn a_diff_is_made_by_git_or_by_what_was_captured() {
    let edit = call(
        "e",
        "edit",
        json!({"path": "kept.txt", "old_str": "one", "new_str": "two"}),
    );
    let make = call(
        "c",
        "create",
        json!({"path": "sub/made.txt", "file_text": "new\n"}),
    );
    let script = Script::play([
        Turn::user("go").calls([edit, make]),
        Turn::results(["updated", "Created"]).says("done"),
    ]);
    let daemon = Daemon::builder()
        .script(script.await)
        .yolo()
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .start()
        .await;
    std::fs::write(daemon.file("kept.txt"), "one\n").unwrap();
    std::fs::write(daemon.file("gone.txt"), "x\n").unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let diff = |mode: &str| session.call("session.workspaces.diff", json!({"mode": mode}));
    let nothing = diff("unstaged").await;
    assert_eq!(
        (
            &nothing["mode"],
            &nothing["changes"],
            &nothing["isFallback"]
        ),
        (&json!("unstaged"), &json!([]), &json!(false)),
        "without a repository"
    );
    git(daemon.work(), &["init", "--quiet", "-b", "main"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    std::fs::remove_file(daemon.file("gone.txt")).unwrap();
    session.ask("go").await;

    let diff = |mode: &str| session.call("session.workspaces.diff", json!({"mode": mode}));
    let unstaged = diff("unstaged").await;
    let mut changes = shown(&unstaged);
    changes.sort();
    assert_eq!(
        changes,
        [
            is("gone.txt", "deleted"),
            is("kept.txt", "modified"),
            is("sub/made.txt", "added"),
        ]
    );
    let own = diff("session").await;
    assert_eq!(own["mode"], "session");
    assert_eq!(
        shown(&own),
        [is("kept.txt", "modified"), is("sub/made.txt", "added")],
        "a person deleted the other one"
    );
    let text = own["changes"][0]["diff"].as_str().unwrap();
    assert!(text.contains("-one\n+two\n"), "{text}");
    let branch = diff("branch").await;
    assert_eq!(
        (&branch["mode"], &branch["baseBranch"]),
        (&json!("branch"), &json!("main"))
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_diff_that_cannot_be_made_says_why_and_falls_back() {
    let daemon = Daemon::builder().start().await;
    let options = json!({"enableFileChangeTracking": false});
    let session = daemon.client().create(options).await;
    let diff = session
        .call("session.workspaces.diff", json!({"mode": "session"}))
        .await;
    assert_eq!(diff["requestedMode"], "session");
    assert_eq!(diff["mode"], "unstaged");
    assert_eq!(diff["isFallback"], true);
    assert_eq!(diff["unavailableReason"], "file-change-tracking-disabled");
    daemon.finish().await;
}
