//! What is too large is refused with the limit in the error, and nothing of it is stored.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};

const MIB: usize = 1024 * 1024;

/// Returns the length of the log and the number of its bytes.
async fn stored(daemon: &Daemon, session: &Session) -> (u64, u64) {
    let id = session.id.as_str().into();
    let size = daemon.app.services.store.size_of(&id).await.unwrap();
    (daemon.state(&session.id).await.seq.0, size)
}

fn rule(argument: &str) -> Value {
    json!({"kind": "read", "argument": argument})
}

#[tokio::test]
async fn what_is_too_large_is_refused_by_its_limit_and_the_session_goes_on() {
    let daemon = Daemon::playing([Turn::user("small").says("ok")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let before = stored(&daemon, &session).await;
    let long = |bytes: usize| "x".repeat(bytes);
    let modify = "session.permissions.modifyRules";
    let many: Vec<Value> = (0..1_001).map(|n| rule(&format!("/{n}"))).collect();
    let names: Vec<String> = (0..4_097).map(|n| format!("t{n}")).collect();
    let tools: Vec<Value> = (0..513).map(|n| json!({"name": format!("t{n}")})).collect();
    let cases = [
        (
            "session.send",
            json!({"prompt": long(40 * MIB)}),
            "16777216 bytes",
        ),
        (
            "session.sendAndWait",
            json!({"prompt": long(17 * MIB)}),
            "16777216 bytes",
        ),
        (
            "session.name.set",
            json!({"name": long(1025)}),
            "1024 bytes",
        ),
        (
            "session.name.setAuto",
            json!({"summary": long(1025)}),
            "1024 bytes",
        ),
        (
            "session.options.update",
            json!({"excludedTools": names}),
            "limit of 4096",
        ),
        (
            "session.plan.update",
            json!({"content": long(MIB + 1)}),
            "1048576 bytes",
        ),
        (
            "session.log",
            json!({"message": long(MIB + 1)}),
            "1048576 bytes",
        ),
        (
            modify,
            json!({"scope": "session", "add": [rule(&long(16385))]}),
            "16384 bytes",
        ),
        (
            modify,
            json!({"scope": "session", "add": many}),
            "limit of 1000",
        ),
        ("session.tools.set", json!({"tools": tools}), "limit of 512"),
    ];
    for (method, params, limit) in cases {
        let error = session.refused(method, params).await;
        assert!(error.message.contains(limit), "{method}: {}", error.message);
    }
    assert_eq!(stored(&daemon, &session).await, before);
    session.ask("small").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_system_message_and_tools_have_limits_when_a_session_is_opened() {
    let daemon = Daemon::builder().start().await;
    let client = daemon.client();
    let long = "x".repeat(MIB + 1);
    let tool = json!({"name": "t", "description": "x".repeat(256 * 1024 + 1)});
    for params in [
        json!({"systemMessage": {"content": long}}),
        json!({"systemMessage": {"mode": "customize", "sections": {"tone": {"action": "append", "content": long}}}}),
        json!({"tools": [tool]}),
    ] {
        let error = client.refused("session.create", params).await;
        assert_eq!(error.code, -32602);
        assert!(
            error.message.contains("more than the limit"),
            "{}",
            error.message
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn many_small_changes_of_the_rules_take_little_room() {
    const CHANGES: u64 = 400;
    let daemon = Daemon::builder().start().await;
    let session = daemon.client().create(json!({})).await;
    let (_, before) = stored(&daemon, &session).await;
    for n in 0..CHANGES {
        let params = json!({"scope": "session", "add": [rule(&format!("/work/{n}"))]});
        session
            .call("session.permissions.modifyRules", params)
            .await;
    }
    let (_, after) = stored(&daemon, &session).await;
    assert!(after - before < CHANGES * 400, "{} bytes", after - before);
    let params = json!({"scope": "session", "remove": [rule("/work/7")], "add": [rule("/more")]});
    session
        .call("session.permissions.modifyRules", params)
        .await;
    let approved = daemon.state(&session.id).await.permissions.approved;
    assert_eq!(approved.len() as u64, CHANGES);
    assert_eq!(approved.last().unwrap().argument.as_deref(), Some("/more"));
    session
        .call(
            "session.permissions.modifyRules",
            json!({"scope": "session", "removeAll": true}),
        )
        .await;
    assert!(
        daemon
            .state(&session.id)
            .await
            .permissions
            .approved
            .is_empty()
    );
    daemon.finish().await;
}
