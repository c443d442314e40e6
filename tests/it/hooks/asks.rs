//! Hooks that want a person to decide: which hook it is, and why, reaches whoever is asked, and stands in
//! the refusal where nobody can be asked.

use loopd_tests::{Daemon, Script, call};
use serde_json::{Value, json};

use super::support::{bash, end_of, hooked, one_call, with_files, write_hooks};

const COULD_NOT_ASK: &str = "Permission denied and could not request permission from user. A person has to \
                             approve this. The preToolUse hook ";

fn asking(reason: Option<&str>) -> Value {
    let mut answer = json!({"permissionDecision": "ask"});
    if let Some(reason) = reason {
        answer["permissionDecisionReason"] = reason.into();
    }
    json!({"preToolUse": [{"bash": format!("echo '{answer}'")}]})
}

#[tokio::test]
async fn a_refusal_where_nobody_can_be_asked_names_the_hook_and_its_reason() {
    for (reason, told) in [
        (Some("it touches production"), "asks: it touches production"),
        (None, "asks: it gives no reason"),
    ] {
        let turns = one_call(bash("c", "touch made"), COULD_NOT_ASK);
        let daemon = Daemon::builder()
            .script(Script::play(turns).await)
            .start()
            .await;
        write_hooks(&daemon, &asking(reason));
        let mut session = daemon
            .client()
            .create(json!({"enableFileHooks": true}))
            .await;
        session.approve_all().await;
        session.send("go").await;
        let end = end_of(&mut session, "c").await;
        let message = end["error"]["message"].as_str().unwrap();
        for part in ["test.json:", told] {
            assert!(message.contains(part), "{message}");
        }
        session.next("session.idle").await;
        let raw = &daemon.script().last_request().raw;
        assert!(raw.contains("test.json:") && raw.contains(told), "{raw}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_person_who_is_asked_and_not_there_is_told_in_the_refusal_too() {
    let turns = one_call(bash("c", "touch made"), COULD_NOT_ASK);
    let (daemon, mut session) = with_files(asking(Some("sure?")), turns).await;
    session.approve_all().await;
    session.send("go").await;
    let requested = session.next("permission.requested").await;
    let because = &requested["data"]["askedBecause"];
    let message = because["hookMessage"].as_str().unwrap();
    assert!(
        message.contains("test.json:") && message.ends_with("asks: sure?"),
        "{message}"
    );
    let id = requested["data"]["requestId"].as_str().unwrap();
    assert!(
        session
            .decide(id, json!({"kind": "user-not-available"}))
            .await
    );
    let end = end_of(&mut session, "c").await;
    assert!(end.to_string().contains("asks: sure?"), "{end}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_permission_question_that_a_hook_passes_on_keeps_its_reason() {
    let call = call("c", "create", json!({"path": "made", "file_text": "x"}));
    let (daemon, mut session) = hooked(one_call(call, "")).await;
    let answer = json!({"behavior": "ask", "message": "look twice"});
    let _app = super::HookApp::saying(session.client(), "permissionRequest", answer);
    session.send("go").await;
    let requested = session.next("permission.requested").await;
    let because = &requested["data"]["askedBecause"];
    let message = because["hookMessage"].as_str().unwrap_or_default();
    assert_eq!(
        message, "The permissionRequest hook of a client asks: look twice",
        "{requested}"
    );
    let id = requested["data"]["requestId"].as_str().unwrap();
    assert!(session.decide(id, json!({"kind": "approve-once"})).await);
    session.next("session.idle").await;
    daemon.finish().await;
}
