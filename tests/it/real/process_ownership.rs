//! What the commands of a real daemon leave behind when they, their session or their daemon end:
//! nothing, however they cut themselves loose.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loopd_tests::binary::Loopd;
use loopd_tests::{Client, Script, Turn, call, within};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Forks in all the ways that are known to outlive an ordinary parent, then waits.
const NASTY: &str = "trap '' TERM HUP INT
for i in {1..20}; do
  setsid bash -c \"trap '' TERM HUP; sleep 1000\" &
  (setsid bash -c '(sleep 1000 </dev/null >/dev/null 2>&1 &)' &)
  nohup sleep 1000 >/dev/null 2>&1 &
done
(while :; do (setsid sleep 1000 &); sleep 0.1; done) &
echo ready > ready
while :; do sleep 1000; done";

/// How many processes were started as a command of the daemon of this home.
fn alive(home: &Path) -> usize {
    let mark = home.to_str().unwrap().as_bytes();
    let entries = std::fs::read_dir("/proc").unwrap();
    let environments =
        entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("environ")).ok());
    environments
        .filter(|bytes| bytes.windows(14).any(|window| window == b"LOOPD_PROCESS="))
        .filter(|bytes| bytes.windows(mark.len()).any(|window| window == mark))
        .count()
}

async fn dead_within_a_second(home: &Path) {
    let dying = async {
        while alive(home) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let dead = tokio::time::timeout(Duration::from_secs(1), dying).await;
    assert!(dead.is_ok(), "{} live on", alive(home));
}

struct Running {
    loopd: Loopd,
    client: Client,
    session: loopd_tests::Session,
    home: PathBuf,
    _folder: TempDir,
    script: Script,
}

/// A daemon in whose session a nasty command runs.
async fn running() -> Running {
    let folder = TempDir::new().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let script =
        Script::play([Turn::user("go").calls([call("c", "bash", json!({"command": NASTY}))])])
            .await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let config = json!({"model": "scripted", "provider": provider});
    let (loopd, client) = Loopd::permissive(&home, config);
    let session = client.create(json!({})).await;
    session.send("go").await;
    let ready = async {
        // What was forked before `ready` was written may still be on its way.
        while !home.join("ready").exists() || alive(&home) <= 60 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("the command to be at its worst", ready).await;
    Running {
        loopd,
        client,
        session,
        home,
        _folder: folder,
        script,
    }
}

#[tokio::test]
async fn a_running_command_is_listed_and_ends_with_its_session() {
    let mut running = running().await;
    let listed = running.client.call("loopd.processList", json!({})).await;
    let processes = listed["processes"].as_array().unwrap();
    let [process] = processes.as_slice() else {
        panic!("one command runs: {listed}");
    };
    assert_eq!(
        (&process["class"], &process["state"], &process["sessionId"]),
        (
            &json!("turn"),
            &json!("running"),
            &json!(running.session.id)
        )
    );
    assert_eq!(process["command"], NASTY);
    let status = format!("/proc/{}/cwd", process["pid"]);
    assert_eq!(std::fs::read_link(status).unwrap(), running.home);
    let destroyed = json!({"sessionId": running.session.id});
    running.client.call("session.destroy", destroyed).await;
    assert_eq!(alive(&running.home), 0, "they are dead before the answer");
    let listed = running.client.call("loopd.processList", json!({})).await;
    assert_eq!(listed["processes"], Value::Array(Vec::new()));
    running.loopd.kill_hard().await;
    running.script.finish();
}

#[tokio::test]
async fn nothing_outlives_a_daemon_that_is_asked_to_end() {
    let mut running = running().await;
    running.loopd.terminate();
    assert!(running.loopd.exited().await.success());
    assert_eq!(alive(&running.home), 0);
    running.script.finish();
}

#[tokio::test]
async fn nothing_outlives_a_daemon_that_is_killed() {
    let mut running = running().await;
    running.loopd.kill_hard().await;
    dead_within_a_second(&running.home).await;
    running.script.finish();
}

#[tokio::test]
async fn nothing_outlives_an_aborted_turn() {
    let mut running = running().await;
    let abort = json!({"sessionId": running.session.id});
    running.client.call("session.abort", abort).await;
    let ended = async {
        while alive(&running.home) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // It ignores the request to end, for which a command has five seconds.
    within("the tree to be killed", ended).await;
    running.loopd.kill_hard().await;
    running.script.finish();
}
