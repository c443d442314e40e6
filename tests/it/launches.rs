//! Launches: what a relay brings for its client, who belongs to it, what its end ends.

use loopd_proto::build_id;
use loopd_tests::{Client, Daemon, Script, Turn, call};
use serde_json::{Value, json};

/// A daemon and a client that came through the user's socket, as a relay does.
async fn with_relay(script: Script) -> (Daemon, Client) {
    let daemon = Daemon::with(script).await;
    let relay = daemon.client_of(daemon.new_launch());
    (daemon, relay)
}

fn launch(daemon: &Daemon, folder: &str) -> Value {
    let folder = daemon.file(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let env = json!({
        "PATH": std::env::var("PATH").unwrap(), "GREETING": "hello from the launch",
        "A_SECRET_TOKEN": "never for children",
    });
    json!({"build": build_id::current(), "cwd": folder, "env": env, "yolo": true, "connectionToken": "t"})
}

fn joining(launched: &Value, transport: &str) -> Value {
    json!({"launchId": launched["launchId"], "transport": transport})
}

#[tokio::test]
async fn who_joins_a_session_does_not_bring_its_environment_upon_it() {
    let shows = |id: &str| {
        call(
            id,
            "bash",
            json!({"command": "echo is=$WHOSE", "description": "d"}),
        )
    };
    let daemon = Daemon::builder()
        .script(
            Script::play([
                Turn::user("one").calls([shows("a")]),
                Turn::results(["is=first"]).says("1"),
                Turn::user("two").calls([shows("b")]),
                Turn::results(["is=second"]).says("2"),
            ])
            .await,
        )
        .start()
        .await;
    let launch = |whose: &str| {
        let mut env: std::collections::BTreeMap<String, String> = std::env::vars().collect();
        env.insert("WHOSE".to_owned(), whose.to_owned());
        let options = loopd::launch::LaunchOptions {
            yolo: true,
            ..Default::default()
        };
        std::sync::Arc::new(loopd::launch::Launch::new(
            daemon.work().to_owned(),
            env,
            options,
        ))
    };
    let mut session = daemon.client_of(launch("first")).create(json!({})).await;
    let second = daemon.client_of(launch("second"));
    let mut theirs = second.resume(&session.id, json!({})).await;
    session.ask("one").await;
    theirs.next("session.idle").await;
    session.call("session.detach", json!({})).await;
    theirs.ask("two").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_launch_brings_its_directory_and_its_environment() {
    let command = "pwd; echo $GREETING; echo token=$A_SECRET_TOKEN.";
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", json!({"command": command}))]),
        Turn::results(["/app\nhello from the launch\ntoken=."]).says("ok"),
    ])
    .await;
    let (daemon, relay) = with_relay(script).await;
    let launched = relay.call("loopd.launch", launch(&daemon, "app")).await;
    assert_eq!(
        (&launched["build"], &launched["leaving"]),
        (&json!(build_id::current()), &json!(false))
    );
    let client = daemon.client_of(daemon.new_launch());
    client.notify("loopd.join", &joining(&launched, "pipe"));
    let mut session = client.create(json!({})).await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn who_comes_over_tcp_has_to_show_the_launchs_token() {
    let (daemon, relay) = with_relay(Script::play([]).await).await;
    let launched = relay.call("loopd.launch", launch(&daemon, "app")).await;
    let client = daemon.client_of(daemon.new_launch());
    client.notify("loopd.join", &joining(&launched, "tcp"));
    assert_eq!(client.refused("ping", json!({})).await.code, -32002);
    assert_eq!(
        client
            .refused("connect", json!({"token": "wrong"}))
            .await
            .code,
        -32002
    );
    client.call("connect", json!({"token": "t"})).await;
    client.call("ping", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_second_join_does_not_open_the_door() {
    let (daemon, relay) = with_relay(Script::play([]).await).await;
    let launched = relay.call("loopd.launch", launch(&daemon, "app")).await;
    let client = daemon.client_of(daemon.new_launch());
    client.notify("loopd.join", &joining(&launched, "tcp"));
    assert_eq!(client.refused("ping", json!({})).await.code, -32002);
    let refusal = client.refused("loopd.launch", launch(&daemon, "app")).await;
    assert_eq!(refusal.code, -32002);
    // Its relay has joined for it already: whoever joins again is up to something.
    client.notify("loopd.join", &joining(&launched, "pipe"));
    client.closed().await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_end_of_a_launch_ends_its_sessions_and_refuses_its_connections() {
    let (daemon, relay) = with_relay(Script::play([]).await).await;
    let launched = relay.call("loopd.launch", launch(&daemon, "app")).await;
    let client = daemon.client_of(daemon.new_launch());
    client.notify("loopd.join", &joining(&launched, "pipe"));
    let mut session = client.create(json!({})).await;
    let other = daemon.client();
    let elsewhere = other.create(json!({})).await;
    relay.call("loopd.launchEnd", json!({})).await;
    session.next("session.shutdown").await;
    let error = client.refused("ping", json!({})).await;
    assert!(error.message.contains("shut down"), "{error}");
    elsewhere.call("session.mode.get", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_lone_daemon_makes_room_for_another_build() {
    let (daemon, relay) = with_relay(Script::play([]).await).await;
    let mut newer = launch(&daemon, "app");
    newer["build"] = json!("another-build");
    let launched = relay.call("loopd.launch", newer).await;
    assert_eq!(launched["leaving"], true);
    loopd_tests::within("the daemon to leave", daemon.app.ending.cancelled()).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_daemon_with_other_clients_stays_whatever_the_build() {
    let (daemon, relay) = with_relay(Script::play([]).await).await;
    let other = daemon.client();
    other.call("ping", json!({})).await;
    let mut newer = launch(&daemon, "app");
    newer["build"] = json!("another-build");
    let launched = relay.call("loopd.launch", newer).await;
    assert_eq!(launched["leaving"], false);
    assert!(!daemon.app.ending.is_cancelled());
    daemon.finish().await;
}

#[tokio::test]
async fn leaving_has_two_names() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let left = session.call("session.detach", json!({})).await;
    assert_eq!(left, json!({"success": true}));
    session.next("session.shutdown").await;
    let again = session.call("session.detach", json!({})).await;
    assert_eq!(again, json!({"success": false}), "it is left already");
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_breaks_takes_nobody_along() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("after").says("3"),
    ])
    .await;
    let client = daemon.client();
    let mut broken = client.create(json!({})).await;
    let mut other = client.create(json!({})).await;
    broken.ask("one").await;
    let breaks = daemon
        .live(&broken.id)
        .view(|_| -> () { panic!("on purpose, inside the session") });
    assert!(breaks.await.is_err());
    other.ask("two").await;
    let error = broken
        .refused("session.send", json!({"prompt": "anybody?"}))
        .await;
    assert!(error.message.contains("Session not found"), "{error}");
    let mut again = client.resume(&broken.id, json!({})).await;
    again.ask("after").await;
    assert_eq!(
        daemon.script().last_request().messages().len(),
        4,
        "its history is whole"
    );
    daemon.finish().await;
}
