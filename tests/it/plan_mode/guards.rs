//! Hooks that answer permission requests, in plan mode: they can deny, and lift nothing.

use super::*;
use crate::hooks::{HookApp, HookReply};

/// A model that runs a command, and a session in plan mode whose client answers hooks so.
async fn asked(reply: Value) -> (Daemon, Session, HookApp) {
    let script = Script::play(vec![
        Turn::user("go").calls([bash("c", "touch made; cat a.txt")]),
        Turn::any().says("done"),
    ]);
    let daemon = Daemon::with(script.await).await;
    std::fs::write(daemon.file("a.txt"), "secret").unwrap();
    let offer = json!({"hooks": true, "requestPermission": true});
    let session = daemon.client().create(offer).await;
    let app = HookApp::on(session.client(), move |kind, _| match kind {
        "permissionRequest" => HookReply::Output(reply.clone()),
        _ => HookReply::Nothing,
    });
    set(&session, "plan").await;
    (daemon, session, app)
}

#[tokio::test]
async fn a_hook_that_denies_is_the_answer() {
    let deny = json!({"behavior": "deny", "message": "not you"});
    let (daemon, mut session, _app) = asked(deny).await;
    session.ask("go").await;
    let told = result_of(&session, "c");
    assert!(told.contains("not you"), "{told}");
    assert!(!told.contains("secret"), "{told}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_allows_leaves_it_to_a_person() {
    let (daemon, mut session, _app) = asked(json!({"behavior": "allow"})).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    let approved = json!({"kind": "approve-once"});
    assert!(session.decide(&request, approved).await);
    session.next("session.idle").await;
    assert!(result_of(&session, "c").contains("secret"));
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}
