//! A client grants more, and the work goes on.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{UPDATE, limit_errors, used};

fn stops_after_one_call() -> [Turn; 2] {
    [
        Turn::user("work")
            .calls([call("c", "bash", json!({"command": "echo done"}))])
            .uses(1_000, 500),
        Turn::any().says("finished").uses(1_600, 100),
    ]
}

async fn stopped() -> (Daemon, loopd_tests::Session) {
    let script = Script::play(stops_after_one_call()).await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"maxTokens": 1_200});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    let refused = session
        .start("session.sendAndWait", json!({"prompt": "work"}))
        .await
        .unwrap_err();
    assert!(
        refused.message.contains("1500 of the 1200 tokens"),
        "{refused}"
    );
    session.next("session.idle").await;
    (daemon, session)
}

#[tokio::test]
async fn the_run_goes_on_where_it_ended() {
    let (daemon, mut session) = stopped().await;
    let more = json!({"sessionLimits": {"maxTokens": 50_000}});
    session.call(UPDATE, more).await;
    let changed = session.next("session.session_limits_changed").await;
    assert_eq!(
        changed["data"]["sessionLimits"],
        json!({"maxTokens": 50_000})
    );
    let answer = session.next("assistant.message").await;
    assert_eq!(answer["data"]["content"], "finished");
    session.next("session.idle").await;
    assert_eq!(limit_errors(&session).len(), 1);
    assert_eq!(used(&session).await["tokens"], 3_200);
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_limit_it_goes_on_as_well() {
    let (daemon, mut session) = stopped().await;
    session
        .call(UPDATE, json!({"sessionLimits": Value::Null}))
        .await;
    let changed = session.next("session.session_limits_changed").await;
    assert_eq!(changed["data"]["sessionLimits"], Value::Null);
    session.next("session.idle").await;
    assert_eq!(session.count("assistant.message"), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn what_was_used_survives_a_restart() {
    let (mut daemon, session) = stopped().await;
    let id = session.id.clone();
    drop(session);
    daemon.restart().await;
    let client = daemon.client();
    let mut session = client.resume(&id, json!({})).await;
    assert_eq!(used(&session).await["tokens"], 1_500);
    session.ask("more").await;
    assert_eq!(limit_errors(&session).len(), 1, "nothing is left");
    let more = json!({"sessionLimits": {"maxTokens": 50_000}});
    session.call(UPDATE, more).await;
    // The message that found nothing left is answered now.
    let answer = session.next("assistant.message").await;
    assert_eq!(answer["data"]["content"], "finished");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_question_about_credits_is_answered_with_more_of_them() {
    const CREDIT: u64 = 1_000_000_000;
    const ANSWER: &str = "session.ui.handlePendingSessionLimitsExhausted";
    let script = Script::play([
        Turn::any()
            .calls([call("c", "bash", json!({"command": "echo done"}))])
            .charges(3 * CREDIT),
        Turn::any().says("finished"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let client = daemon.client();
    let limits = json!({"maxAiCredits": 2, "maxTurns": 9});
    let mut session = client.create(json!({"sessionLimits": limits})).await;
    session.send("work").await;
    let asked = session.next("session_limits_exhausted.requested").await;
    assert_eq!(asked["ephemeral"], true);
    assert_eq!(asked["data"]["maxAiCredits"], 2.0);
    assert_eq!(asked["data"]["usedAiCredits"], 3.0);
    session.next("session.idle").await;
    let answer =
        |response: Value| json!({"requestId": asked["data"]["requestId"], "response": response});
    let kept = session
        .call(ANSWER, answer(json!({"action": "cancel"})))
        .await;
    assert_eq!(kept, json!({"success": true}));
    let more = json!({"action": "add", "additionalAiCredits": 5});
    session.call(ANSWER, answer(more.clone())).await;
    let changed = session.next("session.session_limits_changed").await;
    assert_eq!(
        changed["data"]["sessionLimits"],
        json!({"maxAiCredits": 7.0, "maxTurns": 9})
    );
    let said = session.next("assistant.message").await;
    assert_eq!(said["data"]["content"], "finished");
    session.next("session.idle").await;
    let late = session.call(ANSWER, answer(more)).await;
    assert_eq!(late, json!({"success": false}), "it is answered");
    daemon.finish().await;
}
