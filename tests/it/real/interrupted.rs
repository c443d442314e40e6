//! A daemon that is killed while the model is asked: what the next one does with the message.

use loopd_tests::binary::Loopd;
use loopd_tests::{Gate, Script, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

fn using(script: &Script) -> Value {
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    json!({"model": "scripted", "provider": provider})
}

/// Kills a daemon while the model is asked, and returns its home and session.
async fn killed_while_asking(script: &Script, gate: &Gate) -> (TempDir, String) {
    let home = TempDir::new().unwrap();
    let (loopd, client) = Loopd::private(home.path(), using(script));
    let mut session = client.create(json!({})).await;
    session
        .call(
            "session.send",
            json!({"prompt": "hello", "messageId": "mine"}),
        )
        .await;
    gate.reached().await;
    // The request may leave before the log has the turn; without it, the message is still queued.
    session.next("assistant.turn_start").await;
    loopd.kill_hard().await;
    gate.open();
    (home, session.id.clone())
}

#[tokio::test]
async fn who_wants_pending_work_to_go_on_gets_the_answer() {
    let gate = Gate::new();
    let mut script = Script::play([
        Turn::user("hello").says("never heard").held_by(&gate),
        Turn::user("hello").says("hi"),
    ])
    .await;
    let (home, id) = killed_while_asking(&script, &gate).await;
    let (loopd, client) = Loopd::private(home.path(), using(&script));
    let mut session = client
        .resume(&id, json!({"continuePendingWork": true}))
        .await;
    let answer = session.next("assistant.message").await;
    assert_eq!(answer["data"]["content"], "hi");
    session.next("session.idle").await;
    loopd.kill_hard().await;
    script.finish();
}

#[tokio::test]
async fn otherwise_the_message_has_ended_and_no_model_is_asked() {
    let gate = Gate::new();
    let mut script = Script::play([
        Turn::user("hello").says("never heard").held_by(&gate),
        Turn::user("again").says("hi"),
    ])
    .await;
    let (home, id) = killed_while_asking(&script, &gate).await;
    let (loopd, client) = Loopd::private(home.path(), using(&script));
    let mut session = client.resume(&id, json!({})).await;
    session.ask("again").await;
    assert_eq!(session.count("assistant.message"), 1);
    loopd.kill_hard().await;
    script.finish();
}
