//! How much a session may use up: what the model is told of it, and what happens at the end.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

const CREDIT: u64 = 1_000_000_000;

fn statuses(daemon: &Daemon) -> Vec<String> {
    let request = daemon.script().last_request();
    let texts = request.messages().iter().map(text_of);
    texts
        .filter(|text| text.starts_with("<session_limits_status>"))
        .collect()
}

#[tokio::test]
async fn the_model_is_told_what_is_left() {
    let daemon = Daemon::playing([
        Turn::any().says("1").charges(CREDIT / 2),
        Turn::any().says("2"),
        Turn::any().says("3"),
    ])
    .await;
    let client = daemon.client();
    let limits = json!({"maxAiCredits": 30});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    let start = session.next("session.start").await;
    assert_eq!(
        start["data"]["sessionLimits"],
        json!({"maxAiCredits": 30.0})
    );
    session.ask("one").await;
    let told = statuses(&daemon);
    assert!(
        told.len() == 1 && told[0].contains("Remaining session limits: 30 AI credits."),
        "{told:?}"
    );
    session.ask("two").await;
    let told = statuses(&daemon);
    assert!(
        told.len() == 2 && told[1].contains("Remaining session limits: 29.5 AI credits."),
        "{told:?}"
    );
    let stored = session.messages().await;
    let users = stored
        .iter()
        .filter(|event| event["type"] == "user.message");
    assert_eq!(users.count(), 2, "nobody said the status");
    session.destroy().await;
    let limits = json!({"maxAiCredits": 7});
    let mut again = client
        .resume(&session.id, json!({"sessionLimits": limits}))
        .await;
    let resumed = again.next("session.resume").await;
    assert_eq!(
        resumed["data"]["sessionLimits"],
        json!({"maxAiCredits": 7.0})
    );
    again.ask("three").await;
    assert!(statuses(&daemon)[2].contains(" 6.5 AI credits."));
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_limit_nothing_is_said() {
    let daemon = Daemon::playing([Turn::user("one").says("1").charges(CREDIT)]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    assert_eq!(statuses(&daemon), Vec::<String>::new());
    daemon.finish().await;
}

#[tokio::test]
async fn no_model_is_called_beyond_the_limit_until_it_is_raised() {
    let script = Script::play([
        Turn::any()
            .calls([call("c", "bash", json!({"command": "echo done"}))])
            .charges(3 * CREDIT),
        Turn::any().says("after all"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"maxAiCredits": 2});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.ask("work").await;
    let failure = |events: Vec<Value>| {
        let mut errors = events
            .into_iter()
            .filter(|event| event["type"] == "session.error");
        let last = errors.next_back().unwrap();
        (
            last["data"]["errorCode"].clone(),
            last["data"]["message"].as_str().unwrap().to_owned(),
        )
    };
    // The tool that was asked for has run; its result is not sent to a model.
    assert_eq!(session.count("tool.execution_complete"), 1);
    let (code, message) = failure(session.events());
    assert_eq!(code, "session_limits_exhausted");
    assert!(message.contains("3 of the 2 AI credits"), "{message}");
    session.ask("more").await;
    assert_eq!(session.count("session.error"), 2);
    assert_eq!(session.count("assistant.message"), 1);
    let limits = json!({"maxAiCredits": 10});
    let mut again = client
        .resume(&session.id, json!({"sessionLimits": limits}))
        .await;
    again.ask("now").await;
    assert!(statuses(&daemon).last().unwrap().contains(" 7 AI credits."));
    daemon.finish().await;
}

#[tokio::test]
async fn a_limit_that_is_no_amount_is_refused() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    for wrong in [
        json!({"maxAiCredits": -1}),
        json!({"maxAiCredits": "all"}),
        json!(3),
    ] {
        let error = client
            .refused("session.create", json!({"sessionLimits": wrong}))
            .await;
        assert_eq!(error.code, -32602, "{error}");
        assert!(error.message.contains("sessionLimits"), "{error}");
    }
    daemon.finish().await;
}
