//! The worktrees of agents over the wire: listed with what would be lost, removed when asked to.

use std::path::{Path, PathBuf};
use std::process::Command;

use loopd_exec::worktree::{Settled, Worktree};
use loopd_proto::id::SessionId;
use loopd_tests::Daemon;
use serde_json::{Value, json};

/// Runs git in the daemon's working directory, as it is configured nowhere.
pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.com"])
        .args(args)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A daemon whose sessions work in a repository with a commit.
async fn daemon() -> Daemon {
    let daemon = Daemon::builder()
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .start()
        .await;
    std::fs::write(daemon.file("file.txt"), "one\n").unwrap();
    git(daemon.work(), &["init", "--quiet"]);
    git(daemon.work(), &["add", "--all"]);
    git(daemon.work(), &["commit", "--quiet", "-m", "First"]);
    daemon
}

async fn create(daemon: &Daemon, owner: &str) -> Worktree {
    let env = daemon
        .launch()
        .child_environment(&daemon.app.services.config);
    let worktrees = &daemon.app.services.worktrees;
    let owner = SessionId::from(owner);
    let made = worktrees.create(&owner, daemon.work(), &env).await;
    made.unwrap()
}

async fn settle(daemon: &Daemon, worktree: &Worktree) -> Settled {
    let env = daemon
        .launch()
        .child_environment(&daemon.app.services.config);
    let worktrees = &daemon.app.services.worktrees;
    worktrees.settle(worktree, &env).await.unwrap()
}

async fn listed(client: &loopd_tests::Client) -> Vec<Value> {
    let list = client.call("loopd.worktreeList", json!({})).await;
    list["worktrees"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_worktree_is_listed_while_it_is_used_and_kept_and_then_removed() {
    let daemon = daemon().await;
    let client = daemon.client();
    assert_eq!(listed(&client).await, Vec::<Value>::new());

    let worktree = create(&daemon, "agent-1").await;
    let list = listed(&client).await;
    let repository: PathBuf = daemon.work().canonicalize().unwrap();
    let expected = json!({
        "id": "agent1",
        "path": worktree.path,
        "repository": repository,
        "commit": git(daemon.work(), &["rev-parse", "HEAD"]),
        "sessionId": "agent-1",
        "createdAt": list[0]["createdAt"],
        "use": "inUse",
        "contents": {"kind": "unchanged"},
    });
    assert_eq!(list, [expected]);
    let refused = json!({"id": "agent1", "force": true});
    let refused = client.refused("loopd.worktreeRemove", refused).await;
    assert!(refused.message.contains("in use"), "{refused:?}");

    std::fs::write(worktree.path.join("new.txt"), "").unwrap();
    let settled = settle(&daemon, &worktree).await;
    assert!(matches!(settled, Settled::Kept { .. }), "{settled:?}");
    let list = listed(&client).await;
    assert_eq!(list[0]["use"], "kept");
    let contents = json!({"kind": "changed", "files": ["new.txt"], "moreFiles": 0, "commits": 0});
    assert_eq!(list[0]["contents"], contents);

    let refused = client
        .refused("loopd.worktreeRemove", json!({"id": "agent1"}))
        .await;
    assert!(refused.message.contains("1 file"), "{refused:?}");
    let forced = json!({"id": "agent1", "force": true});
    client.call("loopd.worktreeRemove", forced).await;
    assert_eq!(listed(&client).await, Vec::<Value>::new());
    assert!(!worktree.path.exists());
    let known = git(daemon.work(), &["worktree", "list"]);
    assert_eq!(known.lines().count(), 1, "{known}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_leftover_is_in_use_while_its_session_is_live() {
    let daemon = daemon().await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let worktree = create(&daemon, &session.id).await;
    settle(&daemon, &worktree).await;

    // As a daemon that died leaves it: an entry in the repository, a folder and a record.
    let worktree = create(&daemon, &session.id).await;
    let record = worktree.path.with_extension("json");
    let text = std::fs::read(&record).unwrap();
    settle(&daemon, &worktree).await;
    let path = worktree.path.to_str().unwrap();
    git(daemon.work(), &["worktree", "add", "--detach", path]);
    std::fs::write(&record, text).unwrap();

    assert_eq!(listed(&client).await[0]["use"], "inUse");
    let close = json!({"sessionId": session.id});
    client.call("session.destroy", close).await;
    assert_eq!(listed(&client).await[0]["use"], "leftover");
    let remove = json!({"id": worktree.id});
    client.call("loopd.worktreeRemove", remove).await;
    assert_eq!(listed(&client).await, Vec::<Value>::new());
    daemon.finish().await;
}
