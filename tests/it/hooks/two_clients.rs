//! Several clients that answer hooks.

use loopd_tests::{Daemon, Session};
use serde_json::{Value, json};

use super::support::{HookApp, HookReply, bash, end_of, offer, one_call, waits};

fn decides(what: &'static str) -> Value {
    json!({"permissionDecision": what, "permissionDecisionReason": "because"})
}

async fn two(daemon: &Daemon) -> (Session, Session) {
    let first = daemon.client().create(offer()).await;
    first.approve_all().await;
    let second = daemon.client().resume(&first.id, offer()).await;
    (first, second)
}

#[tokio::test]
async fn the_strictest_of_two_clients_decides_in_any_order() {
    let table = [
        ("deny", "allow", "deny"),
        ("allow", "deny", "deny"),
        ("ask", "deny", "deny"),
        ("deny", "ask", "deny"),
        ("ask", "allow", "ask"),
        ("allow", "ask", "ask"),
        ("allow", "allow", "allow"),
    ];
    for (one, other, both) in table {
        let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
        let (mut first, second) = two(&daemon).await;
        let app = HookApp::saying(first.client(), "preToolUse", decides(one));
        let other_app = HookApp::saying(second.client(), "preToolUse", decides(other));
        first.send("go").await;
        if both == "ask" {
            let (id, _) = first.permission().await;
            assert!(!daemon.file("made").exists());
            first.decide(&id, json!({"kind": "approve-once"})).await;
        }
        let end = end_of(&mut first, "c").await;
        assert_eq!(end["success"], both != "deny", "{one} and {other}: {end}");
        first.next("session.idle").await;
        assert_eq!(daemon.file("made").exists(), both != "deny");
        assert_eq!(app.inputs("preToolUse").len(), 1);
        assert_eq!(other_app.inputs("preToolUse").len(), 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_call_waits_for_a_guard_that_leaves_in_the_middle_unless_the_other_one_denies() {
    for verdict in ["allow", "deny"] {
        let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
        let (first, mut second) = two(&daemon).await;
        let app = HookApp::on(first.client(), |kind, _| match kind {
            "preToolUse" => HookReply::Never,
            _ => HookReply::Nothing,
        });
        let other_app = HookApp::saying(second.client(), "preToolUse", decides(verdict));
        second.send("go").await;
        app.asked("preToolUse", 1).await;
        other_app.asked("preToolUse", 1).await;
        drop(app);
        first.client().vanish().await;
        let again = daemon.client();
        let back_app = HookApp::silent(&again);
        let mut back = Vec::new();
        if verdict == "allow" {
            waits(&daemon, &first.id).await;
            assert!(!daemon.file("made").exists());
            back.push(again.resume(&first.id, offer()).await);
        }
        let end = end_of(&mut second, "c").await;
        assert_eq!(end["success"], verdict == "allow", "{end}");
        second.next("session.idle").await;
        assert_eq!(daemon.file("made").exists(), verdict == "allow");
        drop((back, back_app));
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_guard_that_came_while_the_other_one_was_asked_decides_when_that_one_leaves() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "because")).await;
    let first = daemon.client().create(offer()).await;
    first.approve_all().await;
    let app = HookApp::on(first.client(), |kind, _| match kind {
        "preToolUse" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    first.send("go").await;
    app.asked("preToolUse", 1).await;
    let mut second = daemon.client().resume(&first.id, offer()).await;
    let other_app = HookApp::saying(second.client(), "preToolUse", decides("deny"));
    drop(app);
    first.client().vanish().await;
    let end = end_of(&mut second, "c").await;
    assert_eq!(end["success"], false);
    second.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    assert_eq!(other_app.inputs("preToolUse").len(), 1);
    daemon.finish().await;
}
