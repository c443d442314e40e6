//! What a joiner is offered after a kill: the calls of client tools that the log says are open, and
//! none that was answered before.
//!
//! A turn that waits for clients outlives its daemon: `Recover` closes only what ran beside. The list
//! of open questions must be the one that the log folds to: what was answered before the kill is not
//! in it, whether it was a call of the same turn or of an earlier one, and whether its answer was
//! the last event of the log or not.

use loopd_tests::{Daemon, Lifeline, Script, Session, Turn, call};
use serde_json::{Value, json};

fn offer() -> Value {
    json!({
        "requestPermission": true, "continuePendingWork": true,
        "tools": [{"name": "lookup", "description": "Looks a word up", "skipPermission": true,
                   "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}],
    })
}

fn lookup(id: &str) -> loopd_tests::script::Call {
    call(id, "lookup", json!({"word": id}))
}

/// Waits for the call of a client tool with this id, and returns the request's id.
async fn asked_for(session: &mut Session, call: &str) -> String {
    let what = format!("the client tool call {call}");
    let event = session
        .next_where(&what, |event| {
            event["type"] == "external_tool.requested" && event["data"]["toolCallId"] == call
        })
        .await;
    event["data"]["requestId"].as_str().unwrap().to_owned()
}

/// Joins after the daemon was ended without a word to its sessions, and says which calls it is
/// offered. As far as the log can tell, that is a `kill -9`: nothing is stored at the end.
async fn joined_after_a_kill(daemon: &mut Daemon, id: &str) -> (Session, Vec<String>) {
    daemon.restart().await;
    let joined = daemon.client().resume(id, offer()).await;
    // The session takes this request after it has taken in the joiner.
    joined
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    let events = joined.events().into_iter();
    let offered = events.filter(|event| event["type"] == "external_tool.requested");
    let offered = offered.map(|event| event["data"]["toolCallId"].as_str().unwrap().to_owned());
    let offered = offered.collect();
    (joined, offered)
}

/// Answers the open call and waits for the end of the turn.
async fn goes_on(mut joined: Session, request: &str) {
    assert!(joined.give(request, json!({"result": "second"})).await);
    joined.next("session.idle").await;
}

#[tokio::test]
async fn of_two_calls_in_one_turn_only_the_open_one_is_offered() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([lookup("answered"), lookup("open")]),
        Turn::results(["first", "second"]).says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    session.send("go").await;
    let answered = asked_for(&mut session, "answered").await;
    let open = asked_for(&mut session, "open").await;
    assert!(session.give(&answered, json!({"result": "first"})).await);
    session.next("tool.execution_complete").await;
    let (joined, offered) = joined_after_a_kill(&mut daemon, &session.id).await;
    assert_eq!(offered, ["open"]);
    goes_on(joined, &open).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_an_earlier_turn_answered_is_not_offered_again() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([lookup("answered")]),
        Turn::results(["first"]).calls([lookup("open")]),
        Turn::results(["second"]).says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    session.send("go").await;
    let answered = asked_for(&mut session, "answered").await;
    assert!(session.give(&answered, json!({"result": "first"})).await);
    let open = asked_for(&mut session, "open").await;
    let (joined, offered) = joined_after_a_kill(&mut daemon, &session.id).await;
    assert_eq!(offered, ["open"]);
    goes_on(joined, &open).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_was_answered_beside_an_open_permission_is_not_offered_again() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([
            lookup("answered"),
            call("asks", "bash", json!({"command": "echo hi"})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    session.send("go").await;
    let answered = asked_for(&mut session, "answered").await;
    let (request, _) = session.client().session(&session.id).permission().await;
    assert!(session.give(&answered, json!({"result": "first"})).await);
    session.next("tool.execution_complete").await;
    let (mut joined, offered) = joined_after_a_kill(&mut daemon, &session.id).await;
    assert_eq!(offered, Vec::<String>::new());
    assert_eq!(joined.permission().await.0, request);
    assert!(
        joined
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    joined.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn who_joins_the_live_session_is_offered_only_the_open_call() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([lookup("answered"), lookup("open")]),
        Turn::results(["first", "second"]).says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    session.send("go").await;
    let answered = asked_for(&mut session, "answered").await;
    let open = asked_for(&mut session, "open").await;
    assert!(session.give(&answered, json!({"result": "first"})).await);
    session.next("tool.execution_complete").await;
    let mut joined = daemon.client().resume(&session.id, offer()).await;
    assert_eq!(asked_for(&mut joined, "open").await, open);
    assert_eq!(joined.count("external_tool.requested"), 1);
    goes_on(joined, &open).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_is_open_beside_a_running_command_is_offered_again() {
    let script = Script::answering(|request| {
        let text = request.last_user_text();
        match text.split_once("run: ") {
            Some((_, command)) if request.last_results().is_empty() => Turn::any().calls([
                lookup("open"),
                call("runs", "bash", json!({"command": command})),
            ]),
            _ => Turn::any().says("ok"),
        }
    })
    .await;
    let mut daemon = Daemon::builder().script(script).yolo().start().await;
    let lifeline = Lifeline::new(daemon.work());
    let mut session = daemon.client().create(offer()).await;
    session.send(&format!("run: {}", lifeline.command())).await;
    let open = asked_for(&mut session, "open").await;
    let command = lifeline.started().await;
    let (joined, offered) = joined_after_a_kill(&mut daemon, &session.id).await;
    command.ended().await;
    assert_eq!(offered, ["open"]);
    goes_on(joined, &open).await;
    daemon.finish().await;
}
