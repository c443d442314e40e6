//! Another model after a rate limit of the user: people are asked, and the turn goes on.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};

fn limited() -> Turn {
    // The wait is longer than any that is waited for, so that the call is not tried again.
    Turn::user("go")
        .fails(429, "You have reached your limit.")
        .with_code("user_weekly_rate_limited")
        .with_header("retry-after", "3600")
}

async fn asking(daemon: &Daemon) -> Session {
    let offer = json!({"requestAutoModeSwitch": true});
    daemon.client().create(offer).await
}

async fn answer(session: &Session, request: &Value, response: &str) -> bool {
    let params = json!({"requestId": request, "response": response});
    let method = "session.ui.handlePendingAutoModeSwitch";
    session.call(method, params).await["success"] == true
}

#[tokio::test]
async fn the_turn_goes_on_with_another_model() {
    let daemon = Daemon::playing([limited(), Turn::user("go").says("done")]).await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let request = session.client().request("autoModeSwitch.request").await;
    let expected = json!({"sessionId": session.id, "errorCode": "user_weekly_rate_limited",
        "retryAfterSeconds": 3600});
    assert_eq!(request.params, expected);
    let error = session.next("session.error").await;
    assert_eq!(error["data"]["eligibleForAutoSwitch"], true);
    session.next("auto_mode_switch.requested").await;
    request.answer(json!({"response": "yes"}));
    let completed = session.next("auto_mode_switch.completed").await;
    assert_eq!(completed["data"]["response"], "yes");
    let change = session.next("session.model_change").await;
    assert_eq!(change["data"]["newModel"], "auto");
    assert_eq!(change["data"]["cause"], "rate_limit_auto_switch");
    session.next("session.idle").await;
    assert_eq!(daemon.script().last_request().body["model"], "auto");
    daemon.finish().await;
}

#[tokio::test]
async fn a_no_ends_the_turn_with_the_error() {
    let daemon = Daemon::playing([limited()]).await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let request = session.client().request("autoModeSwitch.request").await;
    let asked = session.next("auto_mode_switch.requested").await["data"]["requestId"].clone();
    assert!(answer(&session, &asked, "no").await);
    request.withdrawn().await;
    session.next("session.idle").await;
    assert!(!answer(&session, &asked, "yes").await);
    assert_eq!(session.count("session.error"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_and_a_restart_close_the_question() {
    let mut daemon = Daemon::playing([limited(), limited()]).await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let request = session.client().request("autoModeSwitch.request").await;
    session.call("session.abort", json!({})).await;
    request.withdrawn().await;
    session.next("session.idle").await;
    session.send("go").await;
    let asked = session
        .next_where("the second question", |event| {
            event["type"] == "auto_mode_switch.requested"
        })
        .await;
    drop(session.client().request("autoModeSwitch.request").await);
    let id = session.id.clone();
    daemon.restart().await;
    let session = daemon.client().resume(&id, json!({})).await;
    assert!(!answer(&session, &asked["data"]["requestId"], "yes").await);
    daemon.finish().await;
}

#[tokio::test]
async fn without_somebody_to_ask_the_turn_fails_as_before() {
    let daemon = Daemon::playing([limited()]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    let error = session.next("session.error").await;
    assert_eq!(error["data"].get("eligibleForAutoSwitch"), None);
    session.next("session.idle").await;
    assert_eq!(session.count("auto_mode_switch.requested"), 0);
    daemon.finish().await;
}
