//! A session that a client's hooks guard, while that client is not there.

use loopd_tests::{Daemon, Turn, within};
use serde_json::{Value, json};

use super::support::{
    HookApp, HookReply, bash, end_of, hooked, offer, one_call, waits, warning, without_hooks,
};

fn never_guards(kind: &str) -> HookReply {
    match kind {
        "preToolUse" => HookReply::Never,
        _ => HookReply::Nothing,
    }
}

#[tokio::test]
async fn a_call_waits_for_a_client_that_answers_its_hooks() {
    for (verdict, success) in [("allow", true), ("deny", false)] {
        let (daemon, session) = hooked(one_call(bash("c", "touch made"), "")).await;
        session.approve_all().await;
        let app = HookApp::on(session.client(), |kind, _| never_guards(kind));
        session.send("go").await;
        app.asked("preToolUse", 1).await;
        drop(app);
        session.client().vanish().await;
        waits(&daemon, &session.id).await;

        let mut other = daemon.client().resume(&session.id, without_hooks()).await;
        let told = other.messages().await;
        let told = told.iter().find(|event| event["type"] == "session.warning");
        let told = &told.expect("people are told that a call waits")["data"];
        assert_eq!(told["warningType"], "guard_absent");
        // A client without hooks changes nothing.
        other.approve_all().await;
        assert_eq!(other.count("tool.execution_start"), 0);
        assert!(!daemon.file("made").exists());
        waits(&daemon, &session.id).await;

        let guard = daemon.client();
        let output = json!({"permissionDecision": verdict});
        let app = HookApp::saying(&guard, "preToolUse", output);
        let _guarding = guard.resume(&session.id, offer()).await;
        let end = end_of(&mut other, "c").await;
        assert_eq!(end["success"], success, "{end}");
        other.next("session.idle").await;
        assert_eq!(daemon.file("made").exists(), success);
        assert_eq!(app.inputs("preToolUse").len(), 1);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_client_that_left_before_the_first_message_guards_all_the_same() {
    let (daemon, session) = hooked(one_call(bash("c", "touch made"), "")).await;
    session.approve_all().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    session.client().vanish().await;
    other.send("go").await;
    let told = warning(&mut other, "guard_absent").await;
    assert!(told.contains("loop hooks"), "{told}");
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());
    let guard = daemon.client();
    let app = HookApp::silent(&guard);
    let _guarding = guard.resume(&session.id, offer()).await;
    other.next("session.idle").await;
    assert_eq!(app.inputs("preToolUse").len(), 1);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn one_warning_is_enough_for_all_calls_of_a_turn() {
    let turns = [
        Turn::user("go").calls([bash("a", "touch made"), bash("b", "touch made")]),
        Turn::results(["", ""]).says("done"),
    ];
    let (daemon, session) = hooked(turns).await;
    session.approve_all().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    session.client().vanish().await;
    other.send("go").await;
    warning(&mut other, "guard_absent").await;
    daemon
        .until(&session.id, "two calls that wait", |state| {
            state.calls().filter(|it| it.stage.is_guarding()).count() == 2
        })
        .await;
    assert_eq!(other.count("session.warning"), 1);
    let guard = daemon.client();
    let app = HookApp::silent(&guard);
    let _guarding = guard.resume(&session.id, offer()).await;
    other.next("session.idle").await;
    assert_eq!(app.inputs("preToolUse").len(), 2);
    assert_eq!(other.count("session.warning"), 1);
    daemon.finish().await;
}

/// A call that waits for its guard waits on after a restart, and the next call waits as well.
#[tokio::test]
async fn a_restart_does_not_let_a_guarded_call_run() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([bash("c", "touch made")]),
        Turn::results(["Denied by preToolUse hook"]).calls([bash("d", "touch made")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let session = daemon.client().create(offer()).await;
    session.approve_all().await;
    let app = HookApp::on(session.client(), |kind, _| never_guards(kind));
    session.send("go").await;
    app.asked("preToolUse", 1).await;
    drop(app);
    session.client().vanish().await;
    waits(&daemon, &session.id).await;
    daemon.restart().await;

    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    other.approve_all().await;
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());
    let guard = daemon.client();
    let app = HookApp::on(&guard, |kind, input| match kind {
        "preToolUse" if input["toolCallId"] == "c" => {
            HookReply::Output(json!({"permissionDecision": "deny"}))
        }
        kind => never_guards(kind),
    });
    let _guarding = guard.resume(&session.id, offer()).await;
    app.asked("preToolUse", 2).await;
    drop(app);
    guard.vanish().await;
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());
    let guard = daemon.client();
    let _app = HookApp::silent(&guard);
    let _guarding = guard.resume(&session.id, offer()).await;
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

/// Whoever resumes without wanting what is open to go on has it closed; it never runs.
#[tokio::test]
async fn a_waiting_call_is_closed_by_a_client_that_does_not_want_it_to_go_on() {
    let mut daemon = Daemon::playing([
        Turn::user("go").calls([bash("c", "touch made")]),
        Turn::user("again").says("done"),
    ])
    .await;
    let session = daemon.client().create(offer()).await;
    session.approve_all().await;
    session.client().vanish().await;
    let sender = daemon.client().resume(&session.id, without_hooks()).await;
    sender.send("go").await;
    waits(&daemon, &session.id).await;
    daemon.restart().await;
    let mut other = daemon.client().resume(&session.id, json!({})).await;
    other.ask("again").await;
    let events = other.messages().await;
    let ends: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool.execution_complete")
        .map(|event| &event["data"]["success"])
        .collect();
    assert_eq!(ends, [false]);
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_waiting_call_can_be_aborted() {
    let (daemon, session) = hooked([Turn::user("go").calls([bash("c", "touch made")])]).await;
    session.approve_all().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    session.client().vanish().await;
    other.send("go").await;
    warning(&mut other, "guard_absent").await;
    within("an abort", other.call("session.abort", json!({}))).await;
    other.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn people_can_let_a_session_go_on_without_the_hooks_of_its_client() {
    let (daemon, session) = hooked(one_call(bash("c", "touch made"), "")).await;
    session.approve_all().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    session.client().vanish().await;
    other.send("go").await;
    warning(&mut other, "guard_absent").await;
    waits(&daemon, &session.id).await;
    let lifted = other.call("loopd.hooks.lift", json!({})).await;
    assert_eq!(lifted["lifted"], true);
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    let lifted = other.call("loopd.hooks.lift", json!({})).await;
    assert_eq!(lifted["lifted"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_waits_if_the_app_that_is_asked_about_it_leaves_the_session() {
    let (daemon, session) = hooked(one_call(bash("c", "touch made"), "")).await;
    session.approve_all().await;
    let app = HookApp::on(session.client(), |kind, _| never_guards(kind));
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    session.send("go").await;
    app.asked("preToolUse", 1).await;
    session.destroy().await;
    let told = warning(&mut other, "guard_absent").await;
    assert!(told.contains("loop hooks lift"), "{told}");
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());

    // Who sends something meanwhile is told why nothing happens.
    other.send("more").await;
    warning(&mut other, "guard_absent").await;
    other.call("session.queue.clear", json!({})).await;
    other.call("loopd.hooks.lift", json!({})).await;
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_allow_of_one_app_does_not_count_for_another_that_left_while_it_was_asked() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let first = daemon.client();
    let app = HookApp::on(&first, |kind, _| never_guards(kind));
    let session = first.create(offer()).await;
    session.approve_all().await;
    let second = daemon.client();
    let _allowing = HookApp::saying(
        &second,
        "preToolUse",
        json!({"permissionDecision": "allow"}),
    );
    let mut other = second.resume(&session.id, offer()).await;
    session.send("go").await;
    app.asked("preToolUse", 1).await;
    session.destroy().await;
    warning(&mut other, "guard_absent").await;
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());
    let third = daemon.client();
    let _back = HookApp::silent(&third);
    let _guarding = third.resume(&session.id, offer()).await;
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}
