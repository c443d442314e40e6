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
