//! What happens when the model does not answer: retries, typed errors, a session that stays usable.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

#[tokio::test]
async fn a_refusal_is_a_typed_error_and_the_session_stays_usable() {
    for (status, message, code, kind) in [
        (400, "your request is odd", "invalid", "query"),
        (401, "who are you", "invalid_api_key", "authentication"),
        (402, "pay first", "insufficient_quota", "quota"),
        (404, "there is no such model", "model_not_found", "model_not_found"),
        (400, "that is too long", "context_length_exceeded", "context_limit"),
    ] {
        let daemon = Daemon::playing([
            Turn::user("hello").fails(status, message).with_code(code),
            Turn::user("again").says("hi"),
        ])
        .await;
        let mut session = daemon.client().create(json!({})).await;
        session.send("hello").await;
        let error = session.next("session.error").await;
        assert_eq!(error["data"]["errorType"], kind, "for {code}");
        assert_eq!(error["data"]["errorCode"], code);
        assert_eq!(error["data"]["statusCode"], status);
        assert!(error["data"]["message"].as_str().unwrap().contains(message), "{error}");
        session.next("session.idle").await;
        let kinds = session.durable_kinds();
        let end = &kinds[kinds.len() - 2..];
        assert_eq!(end, ["assistant.turn_end", "session.error"]);
        session.ask("again").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_passing_fault_is_retried_within_the_same_turn() {
    let daemon = Daemon::playing([
        Turn::user("hello").fails(500, "hiccup"),
        Turn::user("hello").fails(503, "hiccup"),
        Turn::user("hello").says("hi"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(session.count("assistant.turn_retry"), 2);
    assert_eq!(session.count("assistant.turn_start"), 1);
    assert_eq!(session.count("assistant.turn_end"), 1);
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_fault_that_stays_ends_the_turn_with_its_kind() {
    let fault = || Turn::user("hello").fails(500, "broken");
    let daemon = Daemon::playing([fault(), fault(), fault(), fault(), Turn::user("again").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "server");
    session.next("session.idle").await;
    assert_eq!(session.count("assistant.turn_retry"), 3);
    session.ask("again").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_as_long_as_it_asks() {
    let daemon = Daemon::playing([
        Turn::user("hello")
            .fails(429, "slow down")
            .with_header("retry-after-ms", "20"),
        Turn::user("hello").says("hi"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    let retry = session.next("assistant.turn_retry").await;
    assert!(retry["data"]["reason"].as_str().unwrap().contains("slow down"));
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_read_again_from_its_beginning() {
    let daemon = Daemon::playing([
        Turn::user("hello").breaks_off(),
        Turn::user("hello").streams(["whole", " answer"]),
    ])
    .await;
    let mut session = daemon.client().create(json!({"streaming": true})).await;
    session.ask("hello").await;
    assert_eq!(session.count("assistant.turn_retry"), 1);
    let messages: Vec<Value> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "assistant.message")
        .map(|event| event["data"]["content"].clone())
        .collect();
    assert_eq!(messages, ["whole answer"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_failure_in_the_middle_of_a_tool_loop_keeps_what_the_tools_did() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "bash", json!({"command": "echo done once"}))]),
        Turn::results(["done once"]).fails(400, "no"),
        Turn::user("go on").says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.send("go").await;
    session.next("session.error").await;
    session.next("session.idle").await;
    session.ask("go on").await;
    let request = daemon.script().last_request();
    let roles: Vec<&Value> = request.messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_provider_that_cannot_be_used_is_an_error_and_its_message_does_not_come_back() {
    let daemon = Daemon::playing([Turn::user("with a model").says("hi")]).await;
    let provider = json!({"type": "openai", "baseUrl": "http://127.0.0.1:1"});
    let nothing = json!({"provider": provider, "model": null});
    let mut session = daemon.client().create(nothing).await;
    session.send("nobody hears this").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "network");
    session.next("session.idle").await;
    let queue = session.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"], json!([]), "a message that failed does not wait again");
    let id = session.id.clone();
    let mut session = session.client().resume(&id, json!({})).await;
    session.ask("with a model").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_provider_whose_key_was_not_given_again_says_so() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi"), Turn::user("keyed").says("hi")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    session.destroy().await;
    let mut session = client.resume(&session.id, json!({"provider": null, "model": null})).await;
    session.send("without a key").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorType"], "authentication");
    assert_eq!(error["data"]["errorCode"], "provider_secret_missing");
    session.next("session.idle").await;
    let mut session = client.resume(&session.id, json!({})).await;
    session.ask("keyed").await;
    daemon.finish().await;
}
