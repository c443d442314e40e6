//! Approving everything while questions are open: what it covers is answered, what a person has to
//! decide stays open.

use loopd_tests::script::Call;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

fn bash(id: &str, command: &str) -> Call {
    call(id, "bash", json!({"command": command}))
}

/// Waits for this many questions. Returns the ids of the requests by their calls.
async fn questions(session: &mut Session, count: usize) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for _ in 0..count {
        let asked = session.next("permission.requested").await["data"].clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let call = text(&asked["permissionRequest"]["toolCallId"]);
        found.push((call, text(&asked["requestId"])));
    }
    found.sort();
    found
}

/// Returns how questions were closed without a client: by the request, and who decided.
fn settled(session: &Session) -> Vec<(Value, Value)> {
    let events = session.events().into_iter();
    let closed = events.filter(|event| event["type"] == "permission.completed");
    closed
        .map(|event| {
            let data = &event["data"];
            (data["toolCallId"].clone(), data["decisionSource"].clone())
        })
        .collect()
}

#[tokio::test]
async fn open_questions_are_answered_by_every_way_to_approve_everything() {
    let ways = [
        (
            "session.permissions.setApproveAll",
            json!({"enabled": true}),
        ),
        ("session.permissions.setMode", json!({"mode": "allow-all"})),
        (
            "session.permissions.configure",
            json!({"approveAllToolPermissionRequests": true}),
        ),
    ];
    for (method, params) in ways {
        let daemon = Daemon::playing([
            Turn::user("go").calls([bash("a", "touch made"), bash("b", "touch other")]),
            Turn::any().says("done"),
        ])
        .await;
        let mut session = daemon
            .client()
            .create(json!({"requestPermission": true}))
            .await;
        session.send("go").await;
        let asked = questions(&mut session, 2).await;
        session.call(method, params).await;
        session.next("session.idle").await;
        assert!(daemon.file("made").exists() && daemon.file("other").exists());
        let mut settled = settled(&session);
        settled.sort_by_key(|(call, _)| call.to_string());
        assert_eq!(
            settled,
            [
                (json!("a"), json!("host_policy")),
                (json!("b"), json!("host_policy"))
            ],
            "{method}"
        );
        // A late answer changes nothing.
        let late = json!({"kind": "reject"});
        assert!(!session.decide(&asked[0].1, late).await);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn what_a_person_has_to_decide_stays_open() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            bash("fine", "touch made"),
            bash("asked", "git push origin"),
            bash("denied", "ls | xargs rm"),
        ]),
        Turn::any().says("done"),
    ])
    .await;
    std::fs::create_dir_all(daemon.file(".claude")).unwrap();
    let rules = json!({"permissions": {"ask": ["Bash(git push:*)"]}}).to_string();
    std::fs::write(daemon.file(".claude/settings.json"), rules).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let denied = json!({"rules": {"approved": [], "denied": [
        {"kind": "shell", "argument": "rm -rf"},
    ]}});
    session.call("session.permissions.configure", denied).await;
    session.send("go").await;
    let asked = questions(&mut session, 3).await;
    session.approve_all().await;
    session
        .next_where("the call that is covered to end", |event| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "fine"
        })
        .await;
    assert_eq!(settled(&session), [(json!("fine"), json!("host_policy"))]);
    let open = session
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    assert_eq!(open["items"].as_array().unwrap().len(), 2, "{open}");
    for (_, id) in asked.iter().filter(|(call, _)| call != "fine") {
        let answer = json!({"kind": "user-not-available"});
        assert!(session.decide(id, answer).await);
    }
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_questions_of_agents_are_answered_as_well() {
    let task = call(
        "task",
        "task",
        json!({"prompt": "work", "name": "worker", "description": "a part", "mode": "sync"}),
    );
    let daemon = Daemon::with(
        Script::voices([
            (
                "go",
                vec![Turn::user("go").calls([task]), Turn::any().says("done")],
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
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    questions(&mut session, 1).await;
    session.approve_all().await;
    session.next("session.idle").await;
    assert!(daemon.file("made").exists());
    assert_eq!(settled(&session), [(json!("below"), json!("host_policy"))]);
    daemon.finish().await;
}
