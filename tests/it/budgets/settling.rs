//! What a model call counts with when it has ended, and who is woken by that.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

use super::{limit_errors, used, warnings};

#[tokio::test]
async fn the_call_of_the_next_message_does_not_wait_for_that_of_the_last() {
    let gate = Gate::new();
    let daemon = Daemon::playing([
        Turn::user("one")
            .says("1")
            .uses(10_000, 5_000)
            .held_by(&gate),
        Turn::user("two").says("2").uses(10_000, 1_000),
    ])
    .await;
    let limits = json!({"maxTokens": 20_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    session.send("one").await;
    gate.reached().await;
    session.send("two").await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 2);
    assert_eq!(used(&session).await["tokens"], 26_000);
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_is_told_to_go_on_does_not_wait_for_its_last_call() {
    let daemon = Daemon::playing([
        Turn::user("go").says("not yet").uses(10_000, 5_000),
        Turn::any()
            .calls([call("c", "task_complete", json!({"summary": "done"}))])
            .uses(10_000, 1_000),
    ])
    .await;
    let limits = json!({"maxTokens": 20_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    session
        .call("session.mode.set", json!({"mode": "autopilot"}))
        .await;
    session.ask("go").await;
    assert_eq!(session.count("session.task_complete"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_whose_usage_cannot_be_counts_with_an_estimate() {
    let text = "x".repeat(8_000);
    for usage in [
        Value::Null,
        json!({}),
        json!({"prompt_tokens": "9", "completion_tokens": "3"}),
        json!({"prompt_tokens": -9, "completion_tokens": -3}),
        json!({"prompt_tokens": 0, "completion_tokens": 0}),
        json!({"prompt_tokens": 1_u64 << 62, "completion_tokens": 0}),
        json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
        json!({"prompt_tokens": 9, "completion_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 10}}),
    ] {
        let answer = Turn::user("hello").says(&text).reports(usage.clone());
        let daemon = Daemon::playing([answer]).await;
        let limits = json!({"maxTokens": 2_500});
        let mut session = daemon
            .client()
            .create(json!({"sessionLimits": limits}))
            .await;
        session.ask("hello").await;
        let used = used(&session).await;
        let tokens = used["tokens"].as_u64().unwrap();
        assert!(tokens > 2_500, "{usage}: {used}");
        assert_eq!(used["estimatedCalls"], 1, "{usage}");
        assert_eq!(warnings(&session, "usage_estimated").len(), 1, "{usage}");
        // Nothing is left.
        session.ask("hello again").await;
        let errors = limit_errors(&session);
        assert_eq!(errors[0].0, "session_limits_tokens", "{usage}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_report_of_fewer_tokens_than_the_texts_can_have_does_not_make_a_limit_void() {
    let text = "a word of a long answer; ".repeat(400);
    let script = Script::answering(move |_| Turn::any().says(&text).uses(1, 1)).await;
    let daemon = Daemon::with(script).await;
    let limits = json!({"maxTokens": 3_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    let mut calls = 0;
    while limit_errors(&session).is_empty() && calls < 6 {
        session.ask("more").await;
        calls += 1;
    }
    let used = used(&session).await;
    assert_eq!(limit_errors(&session)[0].0, "session_limits_tokens");
    assert!(used["tokens"].as_u64().unwrap() >= 3_000, "{used}");
    assert_eq!(warnings(&session, "usage_estimated").len(), 1);
    // What the provider said is told as it said it.
    let events = session.events();
    let told = events
        .iter()
        .find(|event| event["type"] == "assistant.usage");
    assert_eq!(told.unwrap()["data"]["outputTokens"], 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_missing_usage_is_paid_for_and_told_once() {
    let script = Script::answering(|_| Turn::any().says("words").reports(Value::Null)).await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[prices.scripted]\ninput = 3.0\noutput = 15.0\n")
        .start()
        .await;
    let limits = json!({"maxCostUsd": 10.0});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    session.ask("one").await;
    session.ask("two").await;
    let used = used(&session).await;
    assert!(used["costUsd"].as_f64().unwrap() > 0.0, "{used}");
    assert_eq!(used["estimatedCalls"], 2);
    assert_eq!(warnings(&session, "usage_estimated").len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_reply_that_broke_off_counts() {
    let text = "x".repeat(8_000);
    let daemon = Daemon::playing([
        Turn::user("hello").breaks_off_after([text.as_str()]),
        Turn::user("hello").says("hi").uses(10, 5),
    ])
    .await;
    let limits = json!({"maxTokens": 1_000_000});
    let options = json!({"sessionLimits": limits, "streaming": true});
    let mut session = daemon.client().create(options).await;
    session.ask("hello").await;
    let used = used(&session).await;
    assert!(used["tokens"].as_u64().unwrap() > 2_015, "{used}");
    assert_eq!(
        (&used["turns"], &used["estimatedCalls"]),
        (&json!(1), &json!(1))
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_failed_for_good_counts_with_what_had_arrived() {
    let text = "x".repeat(8_000);
    let script = Script::answering(move |_| Turn::any().breaks_off_after([text.as_str()])).await;
    let daemon = Daemon::with(script).await;
    let limits = json!({"maxTokens": 1_000_000});
    let options = json!({"sessionLimits": limits, "streaming": true});
    let mut session = daemon.client().create(options).await;
    session.ask("hello").await;
    let attempts = daemon.script().requests().len() as u64;
    let used = used(&session).await;
    assert!(
        used["tokens"].as_u64().unwrap() > 2_000 * attempts,
        "{used} after {attempts} attempts"
    );
    assert_eq!(used["turns"], 1);
    daemon.finish().await;
}
