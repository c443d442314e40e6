//! The built-in commands that let agents work.

use loopd_tests::{Daemon, Turn, call};
use serde_json::json;

use super::INVOKE;

#[tokio::test]
async fn review_lets_an_agent_review() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let review = session
        .call(INVOKE, json!({"name": "review", "input": "src/lib.rs"}))
        .await;
    assert_eq!(review["kind"], "agent-prompt");
    assert_eq!(review["displayPrompt"], "/review src/lib.rs");
    let prompt = review["prompt"].as_str().unwrap();
    assert!(
        prompt.contains("code-review") && prompt.contains("src/lib.rs"),
        "{prompt}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn autopilot_is_turned_on_and_off() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let cases = [
        ("", "autopilot"),
        ("", "interactive"),
        ("ON", "autopilot"),
        ("off", "interactive"),
    ];
    for (input, mode) in cases {
        let params = json!({"name": "autopilot", "input": input});
        assert_eq!(session.call(INVOKE, params).await["kind"], "completed");
        assert_eq!(
            session.call("session.mode.get", json!({})).await,
            mode,
            "{input:?}"
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn todos_are_listed_and_a_fleet_needs_some() {
    let list = json!({"todos": [
        {"id": "a", "content": "write it", "status": "cancelled", "priority": "high"},
        {"id": "b", "content": "plan it", "status": "completed", "priority": "low"},
    ]});
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("t", "todowrite", list)]),
        Turn::results([""]).says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let empty = session.call(INVOKE, json!({"name": "todos"})).await;
    assert_eq!(empty["text"], "Nothing is on the list.");
    session.ask("go").await;
    let todos = session.call(INVOKE, json!({"name": "todos"})).await;
    let text = todos["text"].as_str().unwrap();
    assert!(text.contains("- [ ] write it (cancelled)"), "{text}");
    assert!(text.contains("- [x] plan it (done)"), "{text}");
    // Nothing waits for a worker.
    let refused = session.try_call(INVOKE, json!({"name": "fleet"})).await;
    let refused = refused.unwrap_err().message;
    assert!(refused.to_lowercase().contains("todo"), "{refused}");
    daemon.finish().await;
}
