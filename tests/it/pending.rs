//! Answers to questions that are not open, and handlers that live as long as their connection.

use loopd_tests::Daemon;
use serde_json::{Value, json};

const REGISTER: &str = "session.ui.registerDirectAutoModeSwitchHandler";
const UNREGISTER: &str = "session.ui.unregisterDirectAutoModeSwitchHandler";

/// Every method with an answer that it takes, and one that it does not.
fn answers() -> Vec<(&'static str, Value, Value)> {
    vec![
        (
            "session.ui.handlePendingSampling",
            json!({"requestId": "r", "response": {}}),
            json!({"requestId": "r", "response": 1}),
        ),
        (
            "session.ui.handlePendingAutoModeSwitch",
            json!({"requestId": "r", "response": "yes_always"}),
            json!({"requestId": "r", "response": "perhaps"}),
        ),
        (
            "session.ui.handlePendingExitPlanMode",
            json!({"requestId": "r", "response": {"approved": true, "selectedAction": "exit_only"}}),
            json!({"requestId": "r", "response": {"selectedAction": "exit_only"}}),
        ),
        (
            "session.ui.handlePendingSessionLimitsExhausted",
            json!({"requestId": "r", "response": {"action": "add", "additionalAiCredits": 2.5}}),
            json!({"requestId": "r", "response": {"action": "add"}}),
        ),
        (
            "session.mcp.headers.handlePendingHeadersRefreshRequest",
            json!({"requestId": "r", "result": {"kind": "headers", "headers": {"X-A": "b"}}}),
            json!({"requestId": "r", "result": {"kind": "headers"}}),
        ),
    ]
}

#[tokio::test]
async fn an_answer_without_a_question_finds_nothing() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let stranger = daemon.client();
    for (method, good, bad) in answers() {
        let answered = session.call(method, good.clone()).await;
        assert_eq!(answered, json!({"success": false}), "{method}");
        let wrong = session.refused(method, bad).await;
        assert_eq!(wrong.code, -32602, "{method}");
        let mut params = good;
        params["sessionId"] = session.id.as_str().into();
        let unknown = stranger.refused(method, params).await;
        assert!(unknown.message.contains("Session not found"), "{method}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_handler_is_known_until_it_is_given_back() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let first = session.call(REGISTER, json!({})).await;
    let second = session.call(REGISTER, json!({})).await;
    assert_ne!(first, second);
    let unregister = |handle: &Value| json!({"handle": handle["handle"]});
    for (handle, known) in [(&first, true), (&first, false), (&second, true)] {
        let done = session.call(UNREGISTER, unregister(handle)).await;
        assert_eq!(done, json!({"unregistered": known}));
    }
    let missing = json!({"handle": "nothing"});
    assert_eq!(
        session.call(UNREGISTER, missing).await,
        json!({"unregistered": false})
    );
    let wrong = session.refused(UNREGISTER, json!({})).await;
    assert_eq!(wrong.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn a_handler_belongs_to_its_connection_and_its_session() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let elsewhere = client.create(json!({})).await;
    let other = daemon.client().resume(&session.id, json!({})).await;
    let handle = session.call(REGISTER, json!({})).await;
    for stranger in [&elsewhere, &other] {
        let done = stranger.call(UNREGISTER, handle.clone()).await;
        assert_eq!(done, json!({"unregistered": false}));
    }
    session.call("session.destroy", json!({})).await;
    let again = client.resume(&session.id, json!({})).await;
    let left = again.call(UNREGISTER, handle).await;
    assert_eq!(
        left,
        json!({"unregistered": false}),
        "it left with the session"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn one_connection_has_a_bounded_number_of_handlers() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    for _ in 0..1_000 {
        session.call(REGISTER, json!({})).await;
    }
    let full = session.refused(REGISTER, json!({})).await;
    assert!(full.message.contains("unregister"), "{}", full.message);
    daemon.finish().await;
}
