//! The limits that a message sets for its own run.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

use super::limit_errors;

/// A message whose run may take so much.
fn limited(prompt: &str, limits: &Value) -> Value {
    json!({"prompt": prompt, "runScope": {"limits": limits}})
}

/// A model that calls a tool again and again, and answers plain messages.
async fn busy() -> Daemon {
    let script = Script::answering(|request| {
        let id = format!("c{}", request.messages().len());
        let look = call(&id, "glob", json!({"pattern": "*"}));
        if request.last_user_text().contains("plain") {
            Turn::any().says("fine")
        } else {
            Turn::any().calls([look])
        }
    })
    .await;
    Daemon::builder().script(script).yolo().start().await
}

#[tokio::test]
async fn a_run_makes_no_more_calls_than_its_message_allows() {
    let daemon = busy().await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("plain words").await;
    let message = limited("go on for ever", &json!({"maxTurns": 2}));
    session.call("session.send", message).await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().requests().len(), 3);
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "session_limits_turns");
    assert!(
        errors[0]
            .1
            .contains("2 of the 2 model calls that its message"),
        "{errors:?}"
    );
    // It was a limit of that run only.
    session.ask("plain words again").await;
    assert_eq!(limit_errors(&session).len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_calls_for_other_messages_do_not_count() {
    let gate = Gate::new();
    let look = |id: &str| call(id, "glob", json!({"pattern": "*"}));
    let script = Script::play([
        Turn::user("first").calls([look("a")]).held_by(&gate),
        Turn::any().calls([look("b")]),
        Turn::any().says("one"),
        Turn::user("second").says("two"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("first").await;
    gate.reached().await;
    let message = limited("second", &json!({"maxTurns": 1}));
    session.call("session.send", message).await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(limit_errors(&session), []);
    assert_eq!(session.count("assistant.message"), 4);
    daemon.finish().await;
}

#[tokio::test]
async fn the_time_of_a_run_ends_its_commands() {
    let slow = json!({"command": "sleep 600", "timeout": 600_000});
    let script = Script::play([
        Turn::user("sleep").calls([call("c", "bash", slow)]),
        Turn::user("again").says("fine"),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({})).await;
    let message = limited("sleep", &json!({"timeoutMs": 300}));
    session.call("session.send", message).await;
    session.next("session.idle").await;
    let errors = limit_errors(&session);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].0, "session_limits_time");
    session.ask("again").await;
    assert_eq!(limit_errors(&session).len(), 1);
    daemon.finish().await;
}
