//! Rules of settings that ask: what a person approves for the session is not asked about again, and
//! nothing else is covered by that.

use std::path::Path;

use loopd_tests::script::Call;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

fn ask_about(root: &Path, rules: &[&str]) {
    let text = json!({"permissions": {"ask": rules}}).to_string();
    std::fs::create_dir_all(root.join(".claude")).unwrap();
    std::fs::write(root.join(".claude/settings.json"), text).unwrap();
}

fn bash(id: &str, command: &str) -> Call {
    call(id, "bash", json!({"command": command}))
}

/// A turn of its own for each call.
fn one_by_one(calls: Vec<Call>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut next = Turn::user("go");
    for call in calls {
        turns.push(next.calls([call]));
        next = Turn::any();
    }
    turns.push(next.says("done"));
    turns
}

/// Waits for the next question. Returns its id, and the call that it is about.
async fn question(session: &mut Session) -> (String, String, Value) {
    let asked = session.next("permission.requested").await["data"].clone();
    let id = asked["requestId"].as_str().unwrap().to_owned();
    let call = &asked["permissionRequest"]["toolCallId"];
    (id, call.as_str().unwrap().to_owned(), asked)
}

/// Works through a conversation in which these calls are asked about, and approves each for the session.
async fn approving(session: &mut Session, asked: &[&str]) {
    for expected in asked {
        let (id, call, _) = question(session).await;
        assert_eq!(call, *expected);
        session
            .decide(&id, json!({"kind": "approve-for-session"}))
            .await;
    }
    session.next("session.idle").await;
}

#[tokio::test]
async fn what_was_approved_for_the_session_is_not_asked_about_again_and_nothing_more() {
    let mut daemon = Daemon::playing(
        [
            one_by_one(vec![
                bash("first", "touch made"),
                bash("same", "touch made"),
                bash("other", "touch made other"),
                bash("more", "touch made; touch third"),
                call(
                    "write",
                    "create",
                    json!({"path": "a.txt", "file_text": "1"}),
                ),
                call(
                    "again",
                    "create",
                    json!({"path": "a.txt", "file_text": "2"}),
                ),
                call(
                    "beside",
                    "create",
                    json!({"path": "b.txt", "file_text": "1"}),
                ),
            ]),
            one_by_one(vec![
                bash("kept", "touch made"),
                bash("new", "touch fourth"),
            ]),
        ]
        .concat(),
    )
    .await;
    ask_about(daemon.work(), &["Bash(touch:*)", "Edit(*.txt)"]);
    let offer = json!({"requestPermission": true});
    let mut session = daemon.client().create(offer.clone()).await;
    session.approve_all().await;
    session.send("go").await;
    let (id, call, asked) = question(&mut session).await;
    assert_eq!(call, "first");
    assert_eq!(
        asked["askedBecause"],
        json!({
            "reason": "askRule",
            "rules": [{"kind": "shell", "argument": "touch:*"}],
            "sessionApproval": true,
        })
    );
    assert_eq!(asked["permissionRequest"]["managedApprovalRequired"], true);
    session
        .decide(&id, json!({"kind": "approve-for-session"}))
        .await;
    let done = session.next("permission.completed").await;
    assert_eq!(
        done["data"]["result"],
        json!({"kind": "approved-for-session", "approval": {
            "kind": "commands", "commandIdentifiers": ["touch made"],
        }})
    );
    approving(&mut session, &["other", "more", "write", "beside"]).await;
    // No rule that allows was added, and the approvals are in the log.
    let state = daemon.state(&session.id).await;
    assert_eq!(state.permissions.approved, []);
    daemon.restart().await;
    let mut session = daemon.client().resume(&session.id, offer).await;
    session.send("go").await;
    approving(&mut session, &["new"]).await;
    // Whoever takes approvals back takes these back.
    session
        .call("session.permissions.resetSessionApprovals", json!({}))
        .await;
    let state = daemon.state(&session.id).await;
    assert_eq!(state.permissions.confirmed, []);
    daemon.finish().await;
}

#[tokio::test]
async fn an_approval_for_the_session_does_not_hold_in_another_folder_or_a_changed_shell() {
    let in_shell =
        |id: &str, command: &str| call(id, "bash", json!({"command": command, "shellId": "one"}));
    let daemon = Daemon::playing(one_by_one(vec![
        in_shell("first", "touch made"),
        in_shell("same", "touch made"),
        in_shell("moved", "cd sub"),
        in_shell("there", "touch made"),
    ]))
    .await;
    ask_about(daemon.work(), &["Bash(touch:*)"]);
    std::fs::create_dir(daemon.file("sub")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("go").await;
    approving(&mut session, &["first", "there"]).await;
    daemon.finish().await;
}

/// A deny rule that came later wins, and what may be denied is asked about each time.
#[tokio::test]
async fn an_approval_for_the_session_lifts_no_rule_that_denies() {
    let daemon = Daemon::playing(
        [
            one_by_one(vec![bash("first", "touch made")]),
            one_by_one(vec![bash("second", "touch made")]),
        ]
        .concat(),
    )
    .await;
    ask_about(daemon.work(), &["Bash(touch:*)"]);
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    approving(&mut session, &["first"]).await;
    let denied = json!({"rules": {"approved": [], "denied": [
        {"kind": "shell", "argument": "touch"},
    ]}});
    session.call("session.permissions.configure", denied).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 1);
    let end = session.events().into_iter().rev();
    let end = end
        .filter(|event| event["type"] == "tool.execution_complete")
        .map(|event| event["data"]["success"].clone())
        .next();
    assert_eq!(end, Some(json!(false)));
    daemon.finish().await;
}

/// What a person approves when an agent asks holds for all agents of the session.
#[tokio::test]
async fn an_approval_that_an_agent_asked_for_holds_in_the_session() {
    let task = call(
        "task",
        "task",
        json!({"prompt": "work", "name": "worker", "description": "a part", "mode": "sync"}),
    );
    let daemon = Daemon::with(
        Script::voices([
            (
                "go",
                vec![
                    Turn::user("go").calls([task]),
                    Turn::any().calls([bash("above", "touch made")]),
                    Turn::any().says("done"),
                ],
            ),
            (
                "work",
                vec![
                    Turn::user("work").calls([bash("below", "touch made")]),
                    Turn::any().says("worked"),
                ],
            ),
        ])
        .await,
    )
    .await;
    ask_about(daemon.work(), &["Bash(touch:*)"]);
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    session.send("go").await;
    approving(&mut session, &["below"]).await;
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_person_the_result_names_the_rule_and_how_to_go_on() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch made")]),
        Turn::results(["A rule in settings wants a person to approve this (shell(touch:*))"])
            .says("done"),
    ])
    .await;
    ask_about(daemon.work(), &["Bash(touch:*)"]);
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
