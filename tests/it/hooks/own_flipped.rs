//! The script of a guard of the user's own is exchanged while the guard runs, and put back: a person is
//! asked in its place.

use std::fs::{create_dir, rename, write};
use std::os::unix::fs::symlink;
use std::path::Path;

use loopd_tests::Turn;
use serde_json::json;

use super::flipped::{Barrier, go_on};
use super::support::{bash, with_files};

/// Lets a guard run whose script these steps exchange meanwhile. A person has to be asked.
async fn is_asked(folder: &Path, guard: &serde_json::Value, exchange: impl FnOnce(&Path)) {
    let barrier = Barrier::new();
    create_dir(folder.join("real")).unwrap();
    write(folder.join("real/guard.sh"), barrier.script()).unwrap();
    symlink("real/guard.sh", folder.join("link.sh")).unwrap();
    let hooks = json!({"preToolUse": [guard]});
    let turns = [Turn::user("go").calls([bash("c", "touch made")])];
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.send("go").await;
    let pipe = barrier.reached().await;
    exchange(folder);
    go_on(pipe).await;
    let (id, request) = session.permission().await;
    assert!(request.to_string().contains("touch made"), "{request}");
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

/// Moves a file away, another one to its place, and the first one back.
fn flip(folder: &Path, name: &str) {
    write(folder.join("evil"), "exit 0").unwrap();
    rename(folder.join(name), folder.join("kept")).unwrap();
    rename(folder.join("evil"), folder.join(name)).unwrap();
    rename(folder.join("kept"), folder.join(name)).unwrap();
}

#[tokio::test]
async fn a_guard_of_the_user_whose_script_is_exchanged_while_it_runs_does_not_decide() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("real/guard.sh");
    let guard = json!({"bash": format!("bash {}", path.display()), "matcher": "bash"});
    is_asked(folder.path(), &guard, |it| flip(it, "real/guard.sh")).await;
}

#[tokio::test]
async fn a_guard_of_the_user_whose_link_is_exchanged_while_it_runs_does_not_decide() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("link.sh");
    let guard = json!({"bash": format!("bash {}", path.display()), "matcher": "bash"});
    is_asked(folder.path(), &guard, |it| flip(it, "link.sh")).await;
}

#[tokio::test]
async fn a_script_that_the_folder_of_a_guard_tells_is_one_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let guard = json!({"bash": "bash ./guard.sh", "cwd": folder.path().join("real"),
                       "matcher": "bash"});
    is_asked(folder.path(), &guard, |it| flip(it, "real/guard.sh")).await;
}
