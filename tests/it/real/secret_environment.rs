//! Keys in the environment: what `/proc` shows of our processes, and what children see.

use std::process::Stdio;

use loopd_tests::binary::{self, Loopd};
use loopd_tests::{Script, Turn, call, within};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const KEY: &str = "sk-0123456789abcdefghij";
const NAMED: &str = "kv0123456789";

fn with_keys(mut command: Command) -> Command {
    command
        .env("OPENAI_API_KEY", KEY)
        .env("ODDLY_NAMED", NAMED)
        .env("HARMLESS", "yes");
    command
}

/// What `/proc` shows of the environment of a process; nothing if it is not to be read.
fn shown(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check_hidden(pid: u32) {
    let environment = shown(pid);
    assert!(!environment.contains(KEY), "{environment}");
    assert!(!environment.contains(NAMED), "{environment}");
}

#[tokio::test]
async fn keys_are_not_shown_by_relay_daemon_and_serve() {
    let home = TempDir::new().unwrap();
    let command = with_keys(Loopd::command(home.path()));
    let more = ["--auth-token-env", "ODDLY_NAMED"];
    let (relay, client) = Loopd::spawn(command, &more, json!({}));
    client.call("ping", json!({})).await;
    check_hidden(relay.child.id().unwrap());
    for daemon in binary::daemons(home.path()) {
        check_hidden(daemon);
    }
    relay.terminate();
    assert!(relay.exited().await.success());

    let home = TempDir::new().unwrap();
    let mut child = with_keys(Loopd::command(home.path()))
        .arg("serve")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    within("the socket", lines.next_line()).await.unwrap();
    check_hidden(child.id().unwrap());
    let loopd = Loopd { child };
    loopd.terminate();
    assert!(loopd.exited().await.success());
}

#[tokio::test]
async fn children_see_no_key_and_the_daemon_still_has_them() {
    let home = TempDir::new().unwrap();
    let shows = "echo key=$OPENAI_API_KEY. named=$ODDLY_NAMED. harmless=$HARMLESS.";
    let env = call("a", "bash", json!({"command": shows}));
    let all = call(
        "b",
        "bash",
        json!({"command": format!("env | grep -c -e '{KEY}' -e '{NAMED}'; true")}),
    );
    let mut script = Script::play([
        Turn::user("show").calls([env]),
        Turn::results(["key=. named=. harmless=yes."]).calls([all]),
        Turn::results(["0"]).says("ok"),
    ])
    .await;
    let mut command = with_keys(Loopd::command(home.path()));
    command.env("COPILOT_API_URL", script.url());
    let more = ["--private", "--yolo", "--auth-token-env", "ODDLY_NAMED"];
    let (loopd, client) = Loopd::spawn(command, &more, json!({}));
    let mut session = client.create(json!({})).await;
    session.ask("show").await;
    let request = script.last_request();
    assert_eq!(request.header("authorization"), Some("Bearer kv0123456789"));
    loopd.terminate();
    assert!(loopd.exited().await.success());
    script.finish();
}
