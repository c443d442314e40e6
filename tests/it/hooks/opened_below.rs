//! A sub-agent's session that a client opens directly: what restricts its parent holds in it, although
//! no run of its parent drives it.

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, offer, waits, without_hooks};

/// A session whose sub-agent has answered; spoken to directly it runs a command and is told this.
pub(super) async fn with_kid(told: &str) -> Daemon {
    let task = json!({"description": "a part of it", "prompt": "be ready", "name": "kid",
                      "mode": "sync", "agent_type": "general-purpose"});
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([call("t", "task", task)]),
                Turn::results(["ready"]).says("done"),
            ],
        ),
        (
            "be ready",
            vec![
                Turn::user("be ready").says("ready"),
                Turn::user("do it").calls([bash("c", "touch made")]),
                Turn::results([told]).says("I did what I could"),
            ],
        ),
    ]);
    Daemon::builder().script(script.await).yolo().start().await
}

pub(super) async fn kid_of(session: &Session) -> String {
    let read = session.call("loopd.taskRead", json!({"id": "kid"})).await;
    read["node"]["sessionId"].as_str().unwrap().to_owned()
}

fn named(name: &str, offer: Value) -> Value {
    let mut offer = offer;
    offer["clientName"] = name.into();
    offer
}

fn denying(session: &Session) -> HookApp {
    HookApp::on(session.client(), |kind, input| match kind {
        "preToolUse" if input["toolName"] == "bash" => {
            HookReply::Output(json!({"permissionDecision": "deny"}))
        }
        _ => HookReply::Nothing,
    })
}

const DENIED: &str = "Denied by preToolUse hook";

#[tokio::test]
async fn the_parents_app_guards_a_sub_agent_that_another_client_opens() {
    // The other client has a name, none, or hooks of its own that allow everything.
    let others = [
        named("other", without_hooks()),
        without_hooks(),
        named("other", offer()),
        offer(),
    ];
    for other in others {
        let daemon = with_kid(DENIED).await;
        let mut session = daemon.client().create(named("guard", offer())).await;
        let app = denying(&session);
        session.ask("begin").await;
        let id = kid_of(&session).await;
        let client = daemon.client();
        let _allowing = HookApp::on(&client, |_, _| HookReply::Nothing);
        let mut kid = client.resume(&id, other).await;
        kid.ask("do it").await;
        assert!(!daemon.file("made").exists());
        let asked = app.inputs("preToolUse");
        let asked = asked.iter().find(|it| it["toolCallId"] == "c").unwrap();
        assert_eq!(asked["agentId"], "kid");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_sub_agent_that_a_client_opens_waits_for_the_parents_app() {
    let mut daemon = with_kid(DENIED).await;
    let mut session = daemon.client().create(offer()).await;
    let app = denying(&session);
    session.ask("begin").await;
    let id = kid_of(&session).await;
    drop(app);
    daemon.restart().await;
    // It has no name either, and yet it is not the app that guards.
    let client = daemon.client();
    let _allowing = HookApp::on(&client, |_, _| HookReply::Nothing);
    let mut kid = client.resume(&id, offer()).await;
    kid.send("do it").await;
    waits(&daemon, &id).await;
    assert!(!daemon.file("made").exists());
    let guard = daemon.client();
    let _app = HookApp::on(&guard, |kind, input| match kind {
        "preToolUse" if input["toolName"] == "bash" => {
            HookReply::Output(json!({"permissionDecision": "deny"}))
        }
        _ => HookReply::Nothing,
    });
    let _session = guard.resume(&session.id, offer()).await;
    kid.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_parents_plan_mode_holds_in_a_sub_agent_that_a_client_opens() {
    // The parent is in plan mode before the sub-agent's session is opened, or comes into it later.
    for is_first in [true, false] {
        let daemon = with_kid("Permission denied").await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.ask("begin").await;
        let id = kid_of(&session).await;
        let plan = || session.call("session.mode.set", json!({"mode": "plan"}));
        if is_first {
            plan().await;
        }
        let mut kid = daemon.client().resume(&id, without_hooks()).await;
        if !is_first {
            plan().await;
        }
        let mode = kid.call("session.mode.get", json!({})).await;
        assert_eq!(mode, "plan");
        let send = json!({"prompt": "do it", "agentMode": "interactive"});
        let refused = kid.refused("session.send", send).await;
        assert!(refused.message.contains(&session.id), "{}", refused.message);
        kid.ask("do it").await;
        assert!(!daemon.file("made").exists());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn the_parents_deny_rules_hold_in_a_sub_agent_that_a_client_opens() {
    let daemon = with_kid("denied by the rule").await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.ask("begin").await;
    let id = kid_of(&session).await;
    let mut kid = daemon.client().resume(&id, without_hooks()).await;
    let denied = json!([{"kind": "shell", "argument": "touch"}]);
    let policy = json!({"rules": {"approved": [], "denied": denied}});
    session.call("session.permissions.configure", policy).await;
    kid.ask("do it").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
