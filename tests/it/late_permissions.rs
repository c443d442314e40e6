//! Answers to permission requests that come after the turn of the call is over.

use loopd_tests::{Daemon, Gate, Session, Turn, call};
use serde_json::{Value, json};

const METHOD: &str = "session.permissions.handlePendingPermissionRequest";

fn asks() -> Value {
    json!({"requestPermission": true})
}

fn run(id: &str) -> loopd_tests::script::Call {
    call(id, "bash", json!({"command": "touch made"}))
}

/// A session in which a call waits for a permission; returns the id of the request.
async fn asked(daemon: &Daemon) -> (Session, String) {
    let mut session = daemon.client().create(asks()).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    (session, request)
}

#[tokio::test]
async fn an_answer_after_the_turn_is_over_takes_the_queue_once() {
    let gate = Gate::new();
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([run("c")]),
        Turn::user("other").says("busy").held_by(&gate),
        Turn::user("allows it").says("I see"),
    ])
    .await;
    let (session, request) = asked(&daemon).await;
    daemon.restart().await;
    // The client does not want the pending work to continue, so the turn is over.
    let mut again = daemon.client().resume(&session.id, asks()).await;
    again.send("other").await;
    gate.reached().await;
    assert!(
        again
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    assert!(
        !again
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    let queue = again.call("session.queue.pendingItems", json!({})).await;
    assert_eq!(queue["items"][0]["source"], "late-permission");
    let shown = queue["items"][0]["displayText"].as_str().unwrap();
    assert!(
        shown.contains("bash") && shown.contains("touch made"),
        "{shown}"
    );
    gate.open();
    again.next("session.idle").await;
    assert_eq!(
        again.count("permission.requested"),
        0,
        "the call did not run again by itself"
    );
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_late_refusal_reaches_the_model_with_its_feedback() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([run("c")]),
        Turn::user("use make instead").says("I will"),
    ])
    .await;
    let (mut session, request) = asked(&daemon).await;
    session.call("session.suspend", json!({})).await;
    session.next("session.idle").await;
    let decision = json!({"kind": "reject", "feedback": "use make instead"});
    assert!(session.decide(&request, decision).await);
    session.next("session.idle").await;
    assert_eq!(session.count("user.message"), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn nobody_can_answer_what_was_aborted_answered_or_never_asked() {
    let daemon = Daemon::playing([Turn::user("go").calls([run("c")])]).await;
    let (mut session, request) = asked(&daemon).await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    let late = json!({"requestId": request, "result": {"kind": "approve-once"}});
    assert_eq!(session.call(METHOD, late).await, json!({"success": false}));
    assert!(
        !session
            .decide("never-asked", json!({"kind": "approve-once"}))
            .await
    );
    assert_eq!(session.count("user.message"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_without_a_person_does_not_answer_late() {
    let daemon = Daemon::playing([Turn::user("go").calls([run("c")])]).await;
    let (mut session, request) = asked(&daemon).await;
    session.call("session.suspend", json!({})).await;
    session.next("session.idle").await;
    assert!(
        !session
            .decide(&request, json!({"kind": "user-not-available"}))
            .await
    );
    assert_eq!(session.count("user.message"), 1);
    daemon.finish().await;
}
