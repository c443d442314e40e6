//! Hooks that answer a permission question before a person is asked.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};

use super::support::{
    HookApp, HookReply, bash, end_of, hooked, offer, one_call, permit, with_files,
};

fn question(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let asked = events.filter(|event| event["type"] == "permission.requested");
    asked.map(|event| event["data"].clone()).collect()
}

#[tokio::test]
async fn a_hook_that_allows_is_the_answer() {
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), "")).await;
    let allow = json!({"behavior": "allow"});
    let app = HookApp::saying(session.client(), "permissionRequest", allow);
    session.ask("go").await;
    let asked = question(&session);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["resolvedByHook"], true);
    assert_eq!(
        asked[0]["permissionRequest"]["fullCommandText"],
        "touch made"
    );
    assert_eq!(session.count("permission.completed"), 1);
    assert!(daemon.file("made").exists());
    let input = &app.inputs("permissionRequest")[0];
    assert_eq!(input["toolName"], "bash");
    assert_eq!(input["permissionRequest"]["kind"], "shell");
    // Nobody is bothered with a question that has its answer.
    assert_eq!(app.inputs("notification"), [Value::Null; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_denies_is_the_answer() {
    let denied = "Denied by permissionRequest hook: not you";
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), denied)).await;
    let deny = json!({"behavior": "deny", "message": "not you"});
    let _app = HookApp::saying(session.client(), "permissionRequest", deny);
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    assert_eq!(end["error"]["code"], "denied");
    session.next("session.idle").await;
    let done = session.messages().await;
    let done = done.iter().find(|it| it["type"] == "permission.completed");
    let kind = &done.unwrap()["data"]["result"]["kind"];
    assert_eq!(kind, "denied-by-permission-request-hook");
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_has_nothing_to_say_leaves_it_to_a_person() {
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), "")).await;
    let app = HookApp::silent(session.client());
    session.send("go").await;
    permit(&mut session).await;
    session.next("session.idle").await;
    assert_eq!(question(&session)[0]["resolvedByHook"], Value::Null);
    assert_eq!(app.inputs("permissionRequest").len(), 1);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn no_hook_is_asked_about_what_the_rules_allow() {
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), "")).await;
    session.approve_all().await;
    let app = HookApp::silent(session.client());
    session.ask("go").await;
    assert_eq!(app.inputs("permissionRequest"), [Value::Null; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_fails_denies() {
    let (daemon, mut session) = hooked(one_call(bash("c", "touch made"), "it crashed")).await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "permissionRequest" => HookReply::Fails("it crashed"),
        _ => HookReply::Nothing,
    });
    session.ask("go").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_fails_denies_in_both_formats() {
    let command = json!({"type": "command", "command": "exit 1"});
    for hooks in [
        json!({"permissionRequest": [{"bash": "exit 1"}]}),
        json!({"PermissionRequest": [{"matcher": "Bash", "hooks": [command]}]}),
    ] {
        let turns = one_call(bash("c", "touch made"), "it ended with exit code 1");
        let (daemon, mut session) = with_files(hooks, turns).await;
        session.send("go").await;
        let end = end_of(&mut session, "c").await;
        let message = end["error"]["message"].as_str().unwrap();
        assert!(message.contains("onFailure"), "{message}");
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists());
        daemon.finish().await;
    }
}

/// An app that allows whatever it is asked.
fn allows(session: &Session) -> HookApp {
    HookApp::on(session.client(), |kind, _| match kind {
        "preToolUse" => HookReply::Output(json!({"permissionDecision": "allow"})),
        "permissionRequest" => HookReply::Output(json!({"behavior": "allow"})),
        _ => HookReply::Nothing,
    })
}

#[tokio::test]
async fn no_hook_lifts_a_rule_that_denies() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let mut offer = offer();
    let rules = json!({"deny": ["Shell(touch *)"]});
    offer["managedSettings"] = json!({ "permissions": rules });
    let mut session = daemon.client().create(offer).await;
    let _app = allows(&session);
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    assert_eq!(end["error"]["code"], "denied", "{end}");
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_denies_what_managed_settings_want_a_person_to_answer() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let mut offer = offer();
    let rules = json!({"ask": ["Shell(touch *)"]});
    offer["managedSettings"] = json!({ "permissions": rules });
    let mut session = daemon.client().create(offer).await;
    let denies = json!({"behavior": "deny", "message": "no"});
    let _app = HookApp::saying(session.client(), "permissionRequest", denies);
    session.send("go").await;
    let end = end_of(&mut session, "c").await;
    assert_eq!(end["error"]["code"], "denied", "{end}");
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn no_hook_answers_what_managed_settings_want_a_person_to_answer() {
    let daemon = Daemon::playing([Turn::user("go").calls([bash("c", "touch made")])]).await;
    let mut offer = offer();
    let rules = json!({"ask": ["Shell(touch *)"]});
    offer["managedSettings"] = json!({ "permissions": rules });
    let mut session = daemon.client().create(offer).await;
    let app = allows(&session);
    session.send("go").await;
    let (id, _) = session.permission().await;
    assert_eq!(app.inputs("permissionRequest").len(), 1);
    assert!(session.decide(&id, json!({"kind": "reject"})).await);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
