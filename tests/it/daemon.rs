//! The daemon as a process: what it tells of itself, and its end by request.

use loopd_tests::{Daemon, Gate, Script, Turn, within};
use serde_json::{Value, json};

#[tokio::test]
async fn it_looks_for_damage_in_its_database() {
    let daemon = Daemon::playing([Turn::any().says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    let found = daemon.client().call("loopd.databaseCheck", json!({})).await;
    assert_eq!(found, json!({"damage": [], "complete": true}));
    daemon.finish().await;
}

#[tokio::test]
async fn it_tells_who_is_connected_and_what_its_sessions_do() {
    let gate = Gate::new();
    let script = Script::play([Turn::user("go").held_by(&gate).says("gone")]).await;
    let daemon = Daemon::with(script).await;
    let client = daemon.client();
    let idle = client.create(json!({})).await;
    let mut busy = client.create(json!({})).await;
    busy.send("go").await;
    busy.next("assistant.turn_start").await;
    let status = client.call("loopd.daemonStatus", json!({})).await;
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(status["build"], loopd_proto::build_id::current());
    assert_eq!(status["connections"], 1);
    assert_eq!(status["work"], 1);
    let activity = |id: &str| -> Value {
        let sessions = status["sessions"].as_array().unwrap();
        let found = sessions.iter().find(|session| session["sessionId"] == id);
        found.unwrap()["activity"].clone()
    };
    assert_eq!(activity(&idle.id), "idle");
    assert_eq!(activity(&busy.id), "working");
    gate.open();
    busy.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn it_answers_the_request_to_end_and_then_ends() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    assert!(!daemon.app.ending.is_cancelled());
    assert_eq!(
        client.call("loopd.daemonStop", json!({})).await,
        Value::Null
    );
    within("the daemon to end", daemon.app.ending.cancelled()).await;
    daemon.finish().await;
}
