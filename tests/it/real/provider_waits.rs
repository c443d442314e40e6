//! A turn waits for its provider, and the daemon is killed meanwhile.

use loopd_tests::binary::Loopd;
use loopd_tests::{Script, Turn};
use serde_json::json;

#[tokio::test]
async fn a_wait_goes_on_in_the_next_daemon() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(
        home.path().join("config.toml"),
        "[limits]\nretry_wait = 0\n",
    )
    .unwrap();
    let mut script = Script::play([
        Turn::user("hello")
            .fails(429, "slow down")
            .with_header("retry-after", "3"),
        Turn::user("hello").says("hi"),
    ])
    .await;
    let provider = json!({"type": "openai", "baseUrl": script.url(), "apiKey": "k"});
    let using = json!({"model": "scripted", "provider": provider});
    let (loopd, client) = Loopd::private(home.path(), using.clone());
    let mut session = client.create(json!({})).await;
    session
        .call(
            "session.send",
            json!({"prompt": "hello", "messageId": "mine"}),
        )
        .await;
    let told = session.next("session.warning").await;
    assert_eq!(told["data"]["warningType"], "provider_wait");
    loopd.kill_hard().await;
    let (loopd, client) = Loopd::private(home.path(), using);
    let mut session = client
        .resume(&session.id, json!({"continuePendingWork": true}))
        .await;
    let answer = session.next("assistant.message").await;
    assert_eq!(answer["data"]["content"], "hi");
    assert_eq!(answer["data"]["originatingMessageId"], "mine");
    session.next("session.idle").await;
    assert_eq!(script.requests().len(), 2);
    loopd.kill_hard().await;
    script.finish();
}
