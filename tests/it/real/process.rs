//! The process itself: its clock and pipes, its signals, its home.

use std::process::Stdio;

use loopd_tests::binary::Loopd;
use loopd_tests::transcript::Scrub;
use loopd_tests::{Client, Gate, Script, Turn, within};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider})
}

#[tokio::test]
async fn over_tcp_it_says_its_port_and_wants_the_token() {
    let home = TempDir::new().unwrap();
    let mut child = Loopd::command(home.path())
        .args(["--headless", "--private", "--port", "0"])
        .env("COPILOT_CONNECTION_TOKEN", "open sesame")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within("the port", lines.next_line())
        .await
        .unwrap()
        .unwrap();
    let (_, port) = line.split_once("listening on port ").expect(&line);
    let port: u16 = port.parse().unwrap();
    let stream = TcpStream::connect(("localhost", port)).await.unwrap();
    let client = Client::over(stream, json!({}), Scrub::default());
    assert_eq!(client.refused("ping", json!({})).await.code, -32002);
    assert_eq!(
        client
            .refused("connect", json!({"token": "wrong"}))
            .await
            .code,
        -32002
    );
    client
        .call("connect", json!({"token": "open sesame"}))
        .await;
    client.call("ping", json!({})).await;
    let loopd = Loopd { child };
    loopd.terminate();
    assert!(loopd.exited().await.success());
}

#[tokio::test]
async fn an_unknown_flag_is_named_on_stderr() {
    let home = TempDir::new().unwrap();
    let mut child = Loopd::command(home.path())
        .args(["--headless", "--stdio", "--nonexistent-flag-for-testing"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    within("stderr to end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    assert!(said.contains("--nonexistent-flag-for-testing"), "{said}");
    assert!(!Loopd { child }.exited().await.success());
}

#[tokio::test]
async fn a_timeout_that_is_no_number_is_named_on_stderr() {
    for mode in [
        &["--headless", "--stdio"][..],
        &["--headless", "--private", "--stdio"],
    ] {
        let home = TempDir::new().unwrap();
        let mut child = Loopd::command(home.path())
            .args(mode)
            .env("LOOPD_UNATTENDED_TIMEOUT", "soon")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut stderr = child.stderr.take().unwrap();
        within("stderr to end", stderr.read_to_string(&mut said))
            .await
            .unwrap();
        assert!(
            said.contains("LOOPD_UNATTENDED_TIMEOUT is `soon`"),
            "{said}"
        );
        assert!(!Loopd { child }.exited().await.success());
    }
}

/// Lets a process run a turn, asks it to end, and looks at what its log says afterwards.
async fn ends_well(start: fn(&std::path::Path, Value) -> (Loopd, Client)) {
    let home = TempDir::new().unwrap();
    let gate = Gate::new();
    let mut script = Script::play([Turn::user("hello").says("never heard").held_by(&gate)]).await;
    let (loopd, client) = start(home.path(), using(&script));
    let session = client.create(json!({})).await;
    session.send("hello").await;
    gate.reached().await;
    loopd.terminate();
    assert!(loopd.exited().await.success());
    let (loopd, client) = start(home.path(), json!({}));
    let session = client.resume(&session.id, json!({})).await;
    let stored = session.messages().await;
    let kinds: Vec<&str> = stored
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let end = kinds.iter().position(|kind| *kind == "session.shutdown");
    let end = end.unwrap_or_else(|| panic!("the session was not ended: {kinds:?}"));
    assert!(
        kinds[..end].contains(&"assistant.turn_end"),
        "its turn was closed before: {kinds:?}"
    );
    loopd.kill_hard().await;
    script.finish();
}

#[tokio::test]
async fn asked_to_end_a_private_daemon_closes_its_sessions_and_exits_well() {
    ends_well(Loopd::private).await;
}

#[tokio::test]
async fn asked_to_end_a_relay_closes_the_sessions_of_its_launch_and_exits_well() {
    ends_well(Loopd::relay).await;
}

#[tokio::test]
async fn a_private_daemon_leaves_with_its_client() {
    let home = TempDir::new().unwrap();
    let (loopd, client) = Loopd::private(home.path(), json!({}));
    let session = client.create(json!({})).await;
    client.vanish().await;
    assert!(loopd.exited().await.success());
    let (loopd, client) = Loopd::private(home.path(), json!({}));
    client.resume(&session.id, json!({})).await;
    loopd.kill_hard().await;
}

#[tokio::test]
async fn a_home_has_one_owner_and_a_second_is_told_who() {
    let home = TempDir::new().unwrap();
    let (loopd, client) = Loopd::private(home.path(), json!({}));
    client.call("ping", json!({})).await;
    let mut second = Loopd::command(home.path())
        .args(["--headless", "--private", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = second.stderr.take().unwrap();
    within("stderr to end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    let owner = loopd.child.id().unwrap().to_string();
    assert!(
        said.contains(&owner),
        "the owner {owner} is not named: {said}"
    );
    assert!(!Loopd { child: second }.exited().await.success());
    client.call("ping", json!({})).await;
    loopd.kill_hard().await;
}

#[tokio::test]
async fn two_apps_on_one_home_share_a_daemon_and_one_may_crash() {
    let home = TempDir::new().unwrap();
    let gate = Gate::new();
    let mut script = Script::play([
        Turn::user("one").says("heard by the other").held_by(&gate),
        Turn::user("two").says("still here"),
    ])
    .await;
    let (first, one) = Loopd::relay(home.path(), using(&script));
    let session = one.create(json!({})).await;
    session.send("one").await;
    gate.reached().await;
    let (second, two) = Loopd::relay(home.path(), using(&script));
    let listed = two.call("session.list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.id.as_str());
    first.kill_hard().await;
    one.closed().await;
    let params = json!({"continuePendingWork": true});
    let mut session = two.resume(&session.id, params).await;
    gate.open();
    let message = session.next("assistant.message").await;
    assert_eq!(
        message["data"]["content"], "heard by the other",
        "the crash of an app kills no agent"
    );
    session.next("session.idle").await;
    session.ask("two").await;
    second.terminate();
    assert!(second.exited().await.success());
    script.finish();
    // The daemon behind them leaves with its home.
    drop(home);
}
