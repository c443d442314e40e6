//! Guards of apps that somebody lifts: those of apps that are gone, and those of apps that are there.

use loopd_tests::Daemon;
use serde_json::{Value, json};

use super::guards::{named, two_apps};
use super::support::{HookApp, bash, one_call, waits, warning, without_hooks};

#[tokio::test]
async fn only_the_guards_of_apps_that_are_gone_are_lifted() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let ((session, app), (second, second_app)) = two_apps(&daemon).await;
    drop(second_app);
    second.client().vanish().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    let lifted = other.call("loopd.hooks.lift", json!({})).await;
    let of = |name: &str| json!([{"name": name, "count": 1}]);
    let wanted = json!({"lifted": true, "apps": of("second"), "attached": of("first")});
    assert_eq!(lifted, wanted);
    let told = warning(&mut other, "guard_lifted").await;
    assert!(told.contains("the app `second`"), "{told}");
    assert!(!told.contains("first"), "{told}");
    let again = other.call("loopd.hooks.lift", json!({})).await;
    assert_eq!(
        again,
        json!({"lifted": false, "apps": [], "attached": of("first")})
    );

    // The one that was there guards on when it is gone.
    drop(app);
    session.client().vanish().await;
    other.send("go").await;
    let told = warning(&mut other, "guard_absent").await;
    assert!(told.contains("the app `first`"), "{told}");
    waits(&daemon, &session.id).await;
    assert!(!daemon.file("made").exists());
    let lifted: Value = other.call("loopd.hooks.lift", json!({})).await;
    assert_eq!(lifted["apps"], of("first"));
    other.next("session.idle").await;
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_guards_of_an_app_that_is_there_are_lifted_only_if_somebody_says_so() {
    let daemon = Daemon::playing(one_call(bash("c", "touch made"), "")).await;
    let first = daemon.client();
    let app = HookApp::silent(&first);
    let session = first.create(named("first")).await;
    session.approve_all().await;
    let mut other = daemon.client().resume(&session.id, without_hooks()).await;
    let lifted = other
        .call("loopd.hooks.lift", json!({"attached": true}))
        .await;
    assert_eq!(lifted["apps"], json!([{"name": "first", "count": 1}]));
    assert_eq!(lifted["attached"], json!([]));
    let told = warning(&mut other, "guard_lifted").await;
    assert!(told.contains("the app `first`"), "{told}");
    other.ask("go").await;
    assert_eq!(app.inputs("preToolUse").len(), 1, "it is still asked");
    assert!(daemon.file("made").exists());
    daemon.finish().await;
}
