//! A provider that takes no requests for a while: the turn waits, or another model answers.

use loopd_tests::{Daemon, Script, Turn};
use serde_json::{Value, json};

use super::warnings;

fn refuses(seconds: &str) -> Turn {
    Turn::any()
        .fails(429, "slow down")
        .with_header("retry-after", seconds)
}

#[tokio::test]
async fn a_turn_waits_and_goes_on() {
    let script = Script::play([refuses("1"), Turn::user("hello").says("hi")]).await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[limits]\nretry_wait = 0\n")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(session.count("session.error"), 0);
    assert_eq!(session.count("assistant.message"), 1);
    let told = warnings(&session, "provider_wait");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("The turn waits until 20"), "{told:?}");
    assert!(told[0].contains("slow down"), "{told:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_wait_survives_a_restart_and_an_abort_ends_it() {
    let script = Script::play([refuses("3600"), Turn::user("again").says("hi")]).await;
    let mut daemon = Daemon::with(script).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    session.next("session.warning").await;
    let id = session.id.clone();
    drop(session);
    daemon.restart().await;
    let client = daemon.client();
    let mut session = client
        .resume(&id, json!({"continuePendingWork": true}))
        .await;
    let state = daemon.state(&id).await;
    assert!(state.turn().unwrap().waits_until().is_some());
    session.call("session.abort", json!({})).await;
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"]["aborted"], true);
    session.ask("again").await;
    assert_eq!(session.count("assistant.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn who_resumes_without_pending_work_ends_the_wait() {
    let script = Script::play([refuses("3600"), Turn::user("again").says("hi")]).await;
    let mut daemon = Daemon::with(script).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    session.next("session.warning").await;
    let id = session.id.clone();
    drop(session);
    daemon.restart().await;
    let mut session = daemon.client().resume(&id, json!({})).await;
    session.ask("again").await;
    assert_eq!(session.count("assistant.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_wait_that_is_too_long_fails_at_once() {
    let script = Script::play([refuses("3600")]).await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[limits]\nprovider_wait = 3599\n")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(session.count("session.error"), 1);
    assert_eq!(warnings(&session, "provider_wait"), Vec::<String>::new());
    daemon.finish().await;
}

#[tokio::test]
async fn the_next_model_answers_and_people_are_told() {
    let script = Script::play([
        refuses("3600"),
        Turn::any()
            .fails(404, "no such model")
            .with_code("model_not_found"),
        Turn::any().says("hi"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("fallback_models = [\"never\"]\n")
        .start()
        .await;
    let options = json!({"fallbackModels": ["second", "third"]});
    let mut session = daemon.client().create(options).await;
    session.ask("hello").await;
    let requests = daemon.script().requests();
    let models: Vec<&Value> = requests.iter().map(|it| &it.body["model"]).collect();
    assert_eq!(models, ["scripted", "second", "third"]);
    let told = warnings(&session, "model_fallback");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("The turn goes on with second."),
        "{told:?}"
    );
    let changes: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "session.model_change")
        .filter(|event| event["data"]["cause"] == "fallback")
        .map(|event| event["data"]["newModel"].clone())
        .collect();
    assert_eq!(changes, ["second", "third"]);
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn the_chain_of_the_file_is_for_sessions_that_name_none() {
    let script = Script::play([
        Turn::any()
            .fails(402, "no money")
            .with_code("insufficient_quota"),
        Turn::any().says("hi"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("fallback_models = [\"cheap\"]\n")
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(daemon.script().last_request().body["model"], "cheap");
    daemon.finish().await;
}

#[tokio::test]
async fn each_model_of_a_chain_is_called_once() {
    let script = Script::answering(|_| {
        Turn::any()
            .fails(402, "no money")
            .with_code("insufficient_quota")
    })
    .await;
    let daemon = Daemon::with(script).await;
    for (chain, called) in [
        (json!(["a", "b", "a"]), vec!["scripted", "a", "b"]),
        (json!(["a", "a"]), vec!["scripted", "a"]),
        (json!(["a", "scripted"]), vec!["scripted", "a"]),
    ] {
        let before = daemon.script().requests().len();
        let options = json!({"fallbackModels": chain});
        let mut session = daemon.client().create(options).await;
        session.ask("hello").await;
        let requests = daemon.script().requests();
        let models: Vec<&Value> = requests[before..]
            .iter()
            .map(|it| &it.body["model"])
            .collect();
        assert_eq!(models, called, "{chain}");
        assert_eq!(session.count("session.error"), 1, "{chain}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_chain_with_an_empty_name_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let chain = json!({"fallbackModels": ["a", " "]});
    let refused = session.refused("session.options.update", chain).await;
    assert!(refused.message.contains("fallbackModels"), "{refused}");
    daemon.finish().await;
}
