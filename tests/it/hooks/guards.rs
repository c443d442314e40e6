//! Several apps whose hooks guard one session: each of them is waited for.

use loopd_tests::{Client, Daemon, Session, Turn};
use serde_json::{Value, json};

use super::support::{
    HookApp, HookReply, bash, end_of, offer, one_call, waits, warning, without_hooks,
};

pub(super) fn named(name: &str) -> Value {
    let mut offer = offer();
    offer["clientName"] = name.into();
    offer
}

/// A client that resumes the session as an app of this name, and lets everything through.
async fn joins(daemon: &Daemon, id: &str, offer: Value) -> (Session, HookApp) {
    let client: Client = daemon.client();
    let app = HookApp::silent(&client);
    (client.resume(id, offer).await, app)
}

/// Two apps that guard a session.
pub(super) async fn two_apps(daemon: &Daemon) -> ((Session, HookApp), (Session, HookApp)) {
    let client = daemon.client();
    let app = HookApp::silent(&client);
    let first = client.create(named("first")).await;
    first.approve_all().await;
    let second = joins(daemon, &first.id, named("second")).await;
    let id = first.id.clone();
    daemon
        .until(&id, "two guards", |state| state.guards.count() == 2)
        .await;
    ((first, app), second)
}

#[tokio::test]
async fn a_call_waits_for_the_app_whose_connection_broke_though_another_guards() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let ((mut first, _app), (second, second_app)) = two_apps(&daemon).await;
    drop(second_app);
    second.client().vanish().await;
    first.send("go").await;
    let told = warning(&mut first, "guard_absent").await;
    assert!(told.contains("the app `second`"), "{told}");
    waits(&daemon, &first.id).await;
    assert!(!daemon.file("made").exists());

    // Another app is not the one that is missed.
    let (_third, _third_app) = joins(&daemon, &first.id, named("third")).await;
    waits(&daemon, &first.id).await;
    assert!(!daemon.file("made").exists());

    let (_second, second_app) = joins(&daemon, &first.id, named("second")).await;
    let end = end_of(&mut first, "c").await;
    assert_eq!(end["success"], true, "{end}");
    first.next("session.idle").await;
    assert_eq!(second_app.inputs("preToolUse").len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn all_apps_are_waited_for_after_a_restart() {
    let mut daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let ((first, app), (_second, second_app)) = two_apps(&daemon).await;
    drop((app, second_app));
    daemon.restart().await;
    let (mut first, _app) = joins(&daemon, &first.id, named("first")).await;
    first.approve_all().await;
    first.send("go").await;
    let told = warning(&mut first, "guard_absent").await;
    assert!(told.contains("the app `second`"), "{told}");
    waits(&daemon, &first.id).await;
    let lifted = first.call("loopd.hooks.lift", json!({})).await;
    assert_eq!(lifted["lifted"], true);
    first.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn an_app_that_leaves_by_its_own_will_is_not_waited_for() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let ((mut first, app), (second, _second_app)) = two_apps(&daemon).await;
    second.destroy().await;
    let told = warning(&mut first, "guard_left").await;
    assert!(told.contains("the app `second`"), "{told}");
    first.ask("go").await;
    assert_eq!(app.inputs("preToolUse").len(), 1);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_that_its_app_closed_goes_on_without_the_app() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let client = daemon.client();
    let _app = HookApp::silent(&client);
    let session = client.create(named("first")).await;
    session.approve_all().await;
    let id = session.id.clone();
    session.destroy().await;
    let mut other = daemon.client().resume(&id, without_hooks()).await;
    other.approve_all().await;
    other.ask("go").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

/// The daemon may notice a broken connection after its app has come back.
#[tokio::test]
async fn an_app_that_comes_back_counts_once() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("c", "touch made")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let old = daemon.client();
    let _old_app = HookApp::silent(&old);
    let session = old.create(named("first")).await;
    session.approve_all().await;
    let mut again = named("first");
    again["loopdReturns"] = true.into();
    let (mut back, app) = joins(&daemon, &session.id, again).await;
    back.call("session.mode.get", json!({})).await;
    old.vanish().await;
    back.ask("go").await;
    assert_eq!(app.inputs("preToolUse").len(), 1);
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

/// The app answers the guard, and is gone when the permission is asked for.
#[tokio::test]
async fn a_permission_waits_for_the_app_that_may_deny_it() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let client = daemon.client();
    let app = HookApp::on(&client, |kind, _| match kind {
        "permissionRequest" => HookReply::Never,
        _ => HookReply::Nothing,
    });
    let session = client.create(named("first")).await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    other.send("go").await;
    app.asked("permissionRequest", 1).await;
    drop(app);
    client.vanish().await;
    warning(&mut other, "guard_absent").await;
    waits(&daemon, &session.id).await;
    assert_eq!(other.count("permission.requested"), 0);
    let denies = json!({"behavior": "deny", "message": "no"});
    let again = daemon.client();
    let _app = HookApp::saying(&again, "permissionRequest", denies);
    let _back = again.resume(&session.id, named("first")).await;
    let end = end_of(&mut other, "c").await;
    assert_eq!(end["error"]["code"], "denied", "{end}");
    other.next("session.idle").await;
    assert_eq!(other.count("tool.execution_start"), 1);
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
