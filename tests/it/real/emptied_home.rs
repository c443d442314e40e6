//! A home whose contents are removed while apps are connected: their connections go on with a new
//! daemon, and nothing is lost without a word.

mod deleted_database;
mod endings;
mod late_answers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use loopd_proto::home_paths;
use loopd_tests::binary::{Loopd, daemons};
use loopd_tests::transcript::Scrub;
use loopd_tests::{Client, Gate, Script, Turn, within};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

/// The code of the error that says that the home was emptied.
const HOME_EMPTIED: i64 = -32003;

/// The folder of an app as COPILOT_HOME names it, with the daemon's home in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn home(&self) -> PathBuf {
        self.0.path().join("loopd")
    }

    /// A command that starts a relay on this place.
    fn command(&self) -> Command {
        let mut command = Loopd::command(self.0.path());
        command
            .env_remove("LOOPD_HOME")
            .env("COPILOT_HOME", self.0.path());
        command
    }

    fn relay(&self, defaults: Value) -> (Loopd, Client) {
        Loopd::spawn(self.command(), &[], defaults)
    }

    /// Empties the place as a test suite does between two tests.
    fn empty(&self) {
        // A daemon may be writing: what it adds meanwhile is removed as well.
        while self.home().exists() {
            std::fs::remove_dir_all(self.home()).ok();
        }
    }
}

fn offline() -> Value {
    json!({"model": "offline"})
}

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider})
}

async fn daemon_of(client: &Client) -> u32 {
    let status = client.call("loopd.daemonStatus", json!({})).await;
    status["pid"].as_u64().unwrap().try_into().unwrap()
}

/// Waits until only this daemon runs for the home.
async fn only(home: &Path, daemon: u32) {
    let alone = async {
        while daemons(home) != BTreeSet::from([daemon]) {
            tokio::task::yield_now().await;
        }
    };
    within("the daemons before to leave", alone).await;
}

fn send_signal(signal: &str, pid: u32) {
    let pid = pid.to_string();
    let sent = std::process::Command::new("kill")
        .args([signal, &pid])
        .status();
    assert!(sent.unwrap().success());
}

async fn uses_a_session(client: &Client) {
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(session.count("assistant.message"), 1);
    let deleted = json!({"sessionId": session.id});
    client.call("session.delete", deleted).await;
}

#[tokio::test]
async fn a_private_daemon_says_that_its_home_is_gone_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let mut command = Loopd::command(&home);
    command.current_dir(folder.path());
    let (loopd, client) = Loopd::spawn(command, &["--private"], json!({"model": "offline"}));
    client.create(json!({})).await;
    std::fs::remove_dir_all(&home).unwrap();
    assert_eq!(loopd.exited().await.code(), Some(1));
    assert!(!home.exists(), "it is not made anew");
}

#[tokio::test]
async fn the_apps_connection_goes_on_with_a_new_daemon() {
    let place = Place::new();
    let (loopd, client) = place.relay(offline());
    let before = client.create(json!({})).await;
    let first = daemon_of(&client).await;
    place.empty();
    // The very next request is the new daemon's, however soon it comes.
    let second = daemon_of(&client).await;
    assert_ne!(first, second);
    let gone = before.refused("session.getMessages", json!({})).await;
    assert!(gone.message.contains("Session not found"), "{gone}");
    let params = json!({"sessionId": before.id});
    let gone = client.refused("session.resume", params).await;
    assert!(gone.message.contains("Session not found"), "{gone}");
    uses_a_session(&client).await;
    only(&place.home(), second).await;
    loopd.terminate();
    assert!(loopd.exited().await.success());
}

#[tokio::test]
async fn it_may_happen_twenty_times_in_a_row() {
    let place = Place::new();
    let (loopd, client) = place.relay(offline());
    let mut served = BTreeSet::new();
    for _ in 0..20 {
        uses_a_session(&client).await;
        served.insert(daemon_of(&client).await);
        place.empty();
    }
    assert_eq!(served.len(), 20, "each time another daemon");
    client.vanish().await;
    assert!(loopd.exited().await.success());
    assert!(!place.home().exists(), "nobody makes it again at the end");
}

#[tokio::test]
async fn what_is_under_way_ends_with_a_typed_error() {
    let place = Place::new();
    let gate = Gate::new();
    let mut script = Script::play([Turn::user("hello").says("never heard").held_by(&gate)]).await;
    let (loopd, client) = place.relay(using(&script));
    let mut session = client.create(json!({})).await;
    session.send("hello").await;
    gate.reached().await;
    // A request that waits for a client, and so for ever.
    let question = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let mut asking = client.create(json!({"requestElicitation": true})).await;
    let waiting = asking.start("session.ui.elicitation", question);
    asking.next("elicitation.requested").await;
    place.empty();
    let refused = waiting.await.unwrap_err();
    assert_eq!(refused.code, HOME_EMPTIED, "{refused}");
    assert!(refused.message.contains("home"), "{refused}");
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "home_emptied", "{error}");
    client.call("ping", json!({})).await;
    loopd.kill_hard().await;
    script.finish();
}

#[tokio::test]
async fn every_relay_of_the_home_goes_on() {
    let place = Place::new();
    let (one, first) = place.relay(offline());
    let (two, second) = place.relay(offline());
    uses_a_session(&first).await;
    uses_a_session(&second).await;
    for _ in 0..5 {
        place.empty();
        let (one, two) = tokio::join!(daemon_of(&first), daemon_of(&second));
        assert_eq!(one, two, "one daemon serves both");
        tokio::join!(uses_a_session(&first), uses_a_session(&second));
        only(&place.home(), one).await;
    }
    for loopd in [one, two] {
        loopd.terminate();
        assert!(loopd.exited().await.success());
    }
}

#[tokio::test]
async fn a_start_beside_it_finds_the_same_daemon() {
    let place = Place::new();
    let (_loopd, client) = place.relay(offline());
    uses_a_session(&client).await;
    for _ in 0..5 {
        place.empty();
        let starts = (0..4).map(|_| async {
            let (loopd, other) = place.relay(offline());
            uses_a_session(&other).await;
            (loopd, daemon_of(&other).await)
        });
        let (others, own) = tokio::join!(futures::future::join_all(starts), daemon_of(&client));
        uses_a_session(&client).await;
        for (loopd, served) in others {
            assert_eq!(served, own, "one daemon serves all");
            loopd.terminate();
            assert!(loopd.exited().await.success());
        }
        only(&place.home(), own).await;
        let socket = place.home().join("run").read_dir().unwrap().count();
        assert_eq!(socket, 1, "its socket is in place");
    }
}

#[tokio::test]
async fn over_tcp_who_has_shown_the_token_goes_on_and_who_has_not_does_not() {
    let place = Place::new();
    let mut child = place
        .command()
        .args(["--headless", "--port", "0"])
        .env("COPILOT_CONNECTION_TOKEN", "open sesame")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within("the port", lines.next_line()).await;
    let line = line.unwrap().unwrap();
    let (_, port) = line.split_once("listening on port ").expect(&line);
    let port: u16 = port.parse().unwrap();
    let connect = async || {
        let stream = TcpStream::connect(("localhost", port)).await.unwrap();
        Client::over(stream, offline(), Scrub::default())
    };
    let (one, two, stranger) = (connect().await, connect().await, connect().await);
    for client in [&one, &two] {
        let token = json!({"token": "open sesame"});
        client.call("connect", token).await;
    }
    assert_eq!(stranger.refused("ping", json!({})).await.code, -32002);
    for _ in 0..3 {
        place.empty();
        uses_a_session(&one).await;
        uses_a_session(&two).await;
        assert_eq!(stranger.refused("ping", json!({})).await.code, -32002);
    }
    let late = connect().await;
    assert_eq!(late.refused("ping", json!({})).await.code, -32002);
    stranger
        .call("connect", json!({"token": "open sesame"}))
        .await;
    uses_a_session(&stranger).await;
    let loopd = Loopd { child };
    loopd.terminate();
    assert!(loopd.exited().await.success());
}

#[tokio::test]
async fn what_clients_set_for_their_launch_goes_on() {
    let place = Place::new();
    let (loopd, client) = place.relay(offline());
    let plugin = place.0.path().join("plugin");
    std::fs::create_dir(&plugin).unwrap();
    let plugins = json!({"paths": [plugin]});
    client.call("plugins.builtin.set", plugins).await;
    client.call("llmInference.setProvider", json!({})).await;
    place.empty();
    let session = client
        .create(json!({"model": "m", "provider": {"type": "openai", "baseUrl": "http://model.invalid", "apiKey": "k"}}))
        .await;
    session.send("hello").await;
    // The model is asked through the client, as it was told before.
    let request = client.request("llmInference.httpRequestStart").await;
    assert!(request.params.to_string().contains("model.invalid"));
    client.call("runtime.shutdown", json!({})).await;
    place.empty();
    let refused = client.refused("ping", json!({})).await;
    assert!(refused.message.contains("shut down"), "{refused}");
    loopd.kill_hard().await;
}

#[tokio::test]
async fn a_home_chosen_by_hand_may_be_emptied_too() {
    let home = TempDir::new().unwrap();
    let (loopd, client) = Loopd::relay(home.path(), offline());
    uses_a_session(&client).await;
    for entry in std::fs::read_dir(home.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    uses_a_session(&client).await;
    assert!(home_paths::is_held(home.path()).unwrap());
    loopd.kill_hard().await;
}

#[tokio::test]
async fn a_socket_outside_the_home_is_the_next_daemons() {
    let outer = TempDir::new().unwrap();
    // Too long for a socket: that is in a folder which outlives the home.
    let long = outer.path().join("a-folder-with-a-long-name".repeat(4));
    std::fs::create_dir(&long).unwrap();
    let place = Place(TempDir::new_in(long).unwrap());
    let (_loopd, client) = place.relay(offline());
    for _ in 0..5 {
        uses_a_session(&client).await;
        place.empty();
        let now = daemon_of(&client).await;
        only(&place.home(), now).await;
        assert!(
            !place.home().join("run").exists(),
            "the socket is elsewhere"
        );
        let (loopd, other) = place.relay(offline());
        assert_eq!(daemon_of(&other).await, now, "it is reached there");
        loopd.terminate();
        assert!(loopd.exited().await.success());
    }
}

#[tokio::test]
async fn a_daemon_that_notices_late_leaves_the_socket_of_its_successor() {
    let place = Place::new();
    let (_loopd, client) = place.relay(offline());
    let late = daemon_of(&client).await;
    send_signal("-STOP", late);
    place.empty();
    let (_second, other) = place.relay(offline());
    let successor = daemon_of(&other).await;
    assert_ne!(successor, late);
    send_signal("-CONT", late);
    only(&place.home(), successor).await;
    let (_third, newcomer) = place.relay(offline());
    assert_eq!(daemon_of(&newcomer).await, successor, "its socket is there");
    assert_eq!(daemon_of(&client).await, successor);
}
