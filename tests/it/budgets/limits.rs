//! One session under each of the limits.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

use super::{limit_errors, used, warnings};

fn look(id: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": "echo done"}))
}

/// A model that calls a tool again and again.
async fn never_done() -> Daemon {
    let script = Script::answering(|request| {
        let id = format!("c{}", request.messages().len());
        Turn::any().calls([look(&id)]).uses(1_000, 200)
    })
    .await;
    Daemon::builder().script(script).yolo().start().await
}

#[tokio::test]
async fn turns_are_counted_and_then_the_turn_ends() {
    let daemon = never_done().await;
    let client = daemon.client();
    let mut session = client
        .create(json!({"sessionLimits": {"maxTurns": 3}}))
        .await;
    let start = session.next("session.start").await;
    assert_eq!(start["data"]["sessionLimits"], json!({"maxTurns": 3}));
    session.ask("go on for ever").await;
    assert_eq!(daemon.script().requests().len(), 3);
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].0, "session_limits_turns");
    assert!(errors[0].1.contains("3 of the 3 model calls"), "{errors:?}");
    assert!(errors[0].1.contains("sessionLimits.maxTurns"), "{errors:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn tokens_end_the_turn_after_one_warning() {
    let daemon = never_done().await;
    let client = daemon.client();
    let limits = json!({"maxTokens": 6_000});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.ask("go on for ever").await;
    assert_eq!(daemon.script().requests().len(), 5);
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "session_limits_tokens");
    let told = warnings(&session, "session_limits");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("4800 of the 6000 tokens"), "{told:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn one_reply_far_beyond_a_limit_is_told() {
    let daemon = Daemon::playing([Turn::any().says("long").uses(4_000, 60_000)]).await;
    let limits = json!({"maxTokens": 20_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    session.ask("one").await;
    let told = warnings(&session, "session_limits");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("64000 of the 20000 tokens")
            && told[0].contains("much more than was left"),
        "{told:?}"
    );
    // The next message calls no model.
    session.ask("two").await;
    assert_eq!(daemon.script().requests().len(), 1);
    assert_eq!(warnings(&session, "session_limits").len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_reply_is_limited_to_what_is_left() {
    let daemon = Daemon::playing([
        Turn::any().says("one").uses(39_000, 600),
        Turn::any().says("two").uses(39_700, 300),
    ])
    .await;
    let client = daemon.client();
    let limits = json!({"maxTokens": 80_000});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.ask("one").await;
    // A model that states no limit gets what is usual.
    assert_eq!(daemon.script().last_request().body["max_tokens"], 16_384);
    assert_eq!(warnings(&session, "session_limits"), Vec::<String>::new());
    session.ask("two").await;
    let most = daemon.script().last_request().body["max_tokens"]
        .as_u64()
        .unwrap();
    // 40,400 are left, of which the conversation so far takes 39,600, and the new words a few.
    assert!((700..800).contains(&most), "{most}");
    assert_eq!(used(&session).await["tokens"], 79_600);
    let told = warnings(&session, "session_limits");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("79600 of the 80000 tokens"), "{told:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn money_is_counted_by_the_prices() {
    let script = Script::play([
        Turn::any().says("one").uses(1_000, 100),
        Turn::any().says("two").uses(1_000, 100_000),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[prices.scripted]\ninput = 3.0\noutput = 15.0\n")
        .start()
        .await;
    let client = daemon.client();
    let mut session = client
        .create(json!({"sessionLimits": {"maxCostUsd": 1.0}}))
        .await;
    session.ask("one").await;
    let cost = used(&session).await["costUsd"].as_f64().unwrap();
    assert!((cost - 0.0045).abs() < 1e-9, "{cost}");
    session.ask("two").await;
    assert_eq!(limit_errors(&session), []);
    session.ask("three").await;
    let errors = limit_errors(&session);
    assert_eq!(errors[0].0, "session_limits_cost");
    assert!(
        errors[0].1.contains("1.51 of the 1.00 US dollars"),
        "{errors:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_model_without_a_price_is_not_called_under_a_limit_of_money() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let mut session = client
        .create(json!({"sessionLimits": {"maxCostUsd": 1.0}}))
        .await;
    session.send("one").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorCode"], "model_not_priced");
    let message = error["data"]["message"].as_str().unwrap();
    assert!(message.contains("[prices.\"scripted\"]"), "{message}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_clock_stops_a_command_and_the_turn() {
    let script = Script::play([Turn::any().calls([call(
        "c",
        "bash",
        json!({"command": "sleep 60", "timeout": 60_000}),
    )])])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"timeoutSeconds": 0.5});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    let waited = session.start("session.sendAndWait", json!({"prompt": "sleep"}));
    session.next("session.idle").await;
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "session_limits_time");
    assert_eq!(waited.await.unwrap_err().code, -32603);
    // There is no time for another message, either.
    session.ask("again").await;
    assert_eq!(limit_errors(&session).len(), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn the_clock_stops_a_model_that_does_not_answer() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::any().says("never").held_by(&gate)]).await;
    let client = daemon.client();
    let limits = json!({"timeoutSeconds": 0.3});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.ask("hello").await;
    assert_eq!(limit_errors(&session)[0].0, "session_limits_time");
    daemon.script().hung_up().await;
    gate.open();
    daemon.finish().await;
}

#[tokio::test]
async fn a_limit_that_cannot_be_kept_is_refused_and_changes_nothing() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client
        .create(json!({"sessionLimits": {"maxTokens": 7}}))
        .await;
    for (wrong, name) in [
        (json!({"maxTokens": -1}), "maxTokens"),
        (json!({"maxTokens": 1.5}), "maxTokens"),
        (json!({"maxTurns": "three"}), "maxTurns"),
        (json!({"maxCostUsd": -0.5}), "maxCostUsd"),
        (json!({"maxCostUsd": "NaN"}), "maxCostUsd"),
        (json!({"timeoutSeconds": -3}), "timeoutSeconds"),
        (json!({"maxTokens": 9, "maxMoney": 3}), "maxMoney"),
        (json!([]), "sessionLimits"),
    ] {
        let limits = json!({ "sessionLimits": wrong });
        for error in [
            client.refused("session.create", limits.clone()).await,
            session.refused(super::UPDATE, limits.clone()).await,
            session.refused("session.resume", limits.clone()).await,
        ] {
            assert_eq!(error.code, -32602, "{error}");
            assert!(error.message.contains(name), "{name}: {error}");
        }
    }
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    assert_eq!(metrics["sessionLimits"], json!({"maxTokens": 7}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_without_limits_stores_nothing_about_them() {
    let daemon = Daemon::playing([Turn::any().says("hi").uses(1_000_000, 1_000)]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    assert_eq!(
        daemon.script().last_request().body["max_tokens"],
        Value::Null
    );
    let metrics = session.call("session.usage.getMetrics", json!({})).await;
    assert_eq!(metrics["sessionLimits"], Value::Null);
    assert_eq!(metrics["used"]["tokens"], 1_001_000);
    assert_eq!(metrics["used"]["turns"], 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_clock_goes_on_while_a_person_is_waited_for() {
    let daemon =
        Daemon::playing([Turn::any().calls([call("c", "bash", json!({"command": "touch made"}))])])
            .await;
    let client = daemon.client();
    let options = json!({"sessionLimits": {"timeoutSeconds": 0.5}, "requestPermission": true});
    let mut session = client.create(options).await;
    session.send("make it").await;
    let (request, _) = session.permission().await;
    session.next("session.idle").await;
    assert_eq!(limit_errors(&session)[0].0, "session_limits_time");
    let open = session
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    assert_eq!(open["items"], json!([]), "nobody is asked any more");
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    assert!(!daemon.file("made").exists(), "a late yes runs nothing");
    daemon.finish().await;
}

#[tokio::test]
async fn the_clock_goes_on_while_a_provider_is_waited_for() {
    let wait = Turn::any()
        .fails(429, "slow down")
        .with_header("retry-after", "3600");
    let daemon = Daemon::playing([wait]).await;
    let client = daemon.client();
    let limits = json!({"timeoutSeconds": 0.5});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.send("hello").await;
    session.next("session.idle").await;
    assert_eq!(warnings(&session, "provider_wait").len(), 1);
    assert_eq!(limit_errors(&session)[0].0, "session_limits_time");
    let state = daemon.state(&session.id).await;
    assert!(state.turn().is_none(), "the wait has ended with the turn");
    daemon.finish().await;
}

#[tokio::test]
async fn a_limit_below_what_is_used_ends_the_run_at_its_next_call() {
    let gate = Gate::new();
    let script = Script::play([
        Turn::user("go").calls([look("a")]).uses(1_000, 100),
        Turn::any()
            .calls([look("b")])
            .uses(1_200, 100)
            .held_by(&gate),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"sessionLimits": {"maxTokens": 50_000}});
    let mut session = client.create(limits).await;
    session.send("go").await;
    gate.reached().await;
    let less = json!({"sessionLimits": {"maxTokens": 500}});
    session.call(super::UPDATE, less).await;
    assert_eq!(limit_errors(&session), [], "the call in flight goes on");
    gate.open();
    session.next("session.idle").await;
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].1.contains("2400 of the 500 tokens"),
        "what the call used counts: {errors:?}"
    );
    assert_eq!(
        session.count("tool.execution_complete"),
        2,
        "what it asked for has run"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_model_of_the_chain_without_a_price_is_not_called_either() {
    let script = Script::play([Turn::any()
        .fails(402, "no money")
        .with_code("insufficient_quota")])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("fallback_models = [\"cheap\"]\n[prices.scripted]\ninput = 3.0\noutput = 15.0\n")
        .start()
        .await;
    let client = daemon.client();
    let mut session = client
        .create(json!({"sessionLimits": {"maxCostUsd": 1.0}}))
        .await;
    session.send("one").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["errorCode"], "model_not_priced");
    let message = error["data"]["message"].as_str().unwrap();
    assert!(message.contains("[prices.\"cheap\"]"), "{message}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_last_call_that_uses_up_a_limit_at_once_is_told() {
    let daemon = Daemon::playing([Turn::user("go").says("done").uses(6_000, 300)]).await;
    let limits = json!({"maxTokens": 5_000});
    let mut session = daemon
        .client()
        .create(json!({"sessionLimits": limits}))
        .await;
    session.ask("go").await;
    let told = warnings(&session, "session_limits");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("6300 of the 5000 tokens"), "{told:?}");
    daemon.finish().await;
}
