//! The files that the daemon keeps for a session: no link leads out of the session's folder, nothing
//! waits for a pipe, and a failure leaves nothing behind.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use loopd_tests::{Daemon, Session};
use serde_json::{Value, json};

const CREATE: &str = "session.workspaces.createFile";
const READ: &str = "session.workspaces.readFile";

/// The folder of the session.
async fn folder(session: &Session) -> PathBuf {
    let found = session
        .call("session.workspaces.getWorkspace", json!({}))
        .await;
    PathBuf::from(found["path"].as_str().unwrap())
}

fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn a_plan_that_is_a_link_is_neither_read_nor_written_through() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let outside = daemon.file("outside.md");
    std::fs::write(&outside, "not a plan").unwrap();
    let plan = folder(&session).await.join("plan.md");
    std::fs::create_dir_all(plan.parent().unwrap()).unwrap();
    symlink(&outside, &plan).unwrap();
    let wrong = session.refused("session.plan.read", json!({})).await;
    assert!(wrong.message.contains("plan.md"), "{}", wrong.message);
    assert!(!wrong.message.contains("not a plan"), "{}", wrong.message);
    session
        .call("session.plan.update", json!({"content": "1. go"}))
        .await;
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "not a plan");
    let read = session.call("session.plan.read", json!({})).await;
    assert_eq!(read["content"], "1. go");
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_that_is_a_link_is_not_followed() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    std::fs::write(daemon.file("a.txt"), "outside").unwrap();
    let own = folder(&session).await;
    std::fs::create_dir_all(&own).unwrap();
    symlink(daemon.work(), own.join("files")).unwrap();
    for (method, params) in [
        (READ, json!({"path": "a.txt"})),
        (CREATE, json!({"path": "new.txt", "content": "x"})),
        ("session.workspaces.listFiles", json!({})),
    ] {
        let wrong = session.refused(method, params).await;
        assert!(wrong.message.contains("leads out"), "{}", wrong.message);
    }
    assert!(!daemon.file("new.txt").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn nothing_waits_for_a_pipe() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let own = folder(&session).await;
    std::fs::create_dir_all(own.join("files")).unwrap();
    pipe(&own.join("plan.md"));
    pipe(&own.join("files/pipe"));
    for _ in 0..20 {
        let wrong = session.refused("session.plan.read", json!({})).await;
        assert!(wrong.message.contains("plan.md"), "{}", wrong.message);
        let wrong = session.refused(READ, json!({"path": "pipe"})).await;
        assert!(wrong.message.contains("pipe"), "{}", wrong.message);
    }
    session
        .call("session.plan.update", json!({"content": "1. go"}))
        .await;
    let read = session.call("session.plan.read", json!({})).await;
    assert_eq!(read["content"], "1. go");
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_file_that_is_a_pipe_or_a_link_out_is_not_read() {
    let daemon = Daemon::playing([]).await;
    let agents = daemon.file(".github/agents");
    std::fs::create_dir_all(&agents).unwrap();
    pipe(&agents.join("pipe.agent.md"));
    symlink("/dev/zero", agents.join("zero.agent.md")).unwrap();
    std::fs::write(
        agents.join("good.agent.md"),
        "---\nname: good\ndescription: Good\n---\nDo good.",
    )
    .unwrap();
    let params = json!({"projectPaths": [daemon.work()]});
    let found = daemon.client().call("agents.discover", params).await;
    let names: Vec<&Value> = found["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["name"])
        .collect();
    assert!(names.contains(&&json!("good")), "{names:?}");
    assert!(!names.contains(&&json!("pipe")), "{names:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_made_leaves_no_folder() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let before = below(&folder(&session).await);
    let deep = "d/".repeat(1_500);
    let long = "x".repeat(300);
    for path in [
        format!("{deep}{deep}{deep}file.txt"),
        format!("a/b/c/{long}.txt"),
        format!("a/{long}/c/d.txt"),
    ] {
        let params = json!({"path": path, "content": "x"});
        session.refused(CREATE, params).await;
        let left = below(&folder(&session).await);
        assert_eq!(left, before, "{} entries are left", left.len());
    }
    daemon.finish().await;
}
