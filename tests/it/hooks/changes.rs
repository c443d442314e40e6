//! Changes by hooks that cannot be used, or that contradict each other.

use loopd_tests::{Daemon, Turn};
use serde_json::json;

use super::support::{HookApp, bash, hooked, offer, one_call, warning};

#[tokio::test]
async fn a_result_that_a_hook_failed_to_change_is_kept_back() {
    for wrong in [
        json!({"textResultForLlm": ["redacted"]}),
        json!({"text": "redacted"}),
        json!({"textResultForLlm": 5}),
        json!("redacted"),
    ] {
        let turns = one_call(bash("a", "echo sesame"), "The output is kept back");
        let (daemon, mut session) = hooked(turns).await;
        let answer = json!({ "modifiedResult": wrong });
        let _app = HookApp::saying(session.client(), "postToolUse", answer);
        session.approve_all().await;
        session.send("go").await;
        let told = warning(&mut session, "hook_failed").await;
        assert!(told.contains("modifiedResult"), "{told}");
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn people_are_told_of_two_hooks_that_change_the_arguments_differently() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a", "touch none")]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(offer()).await;
    let other = daemon.client();
    let second = other.resume(&session.id, offer()).await;
    let change = |name: &str| json!({"modifiedArgs": {"command": format!("touch {name}")}});
    let _one = HookApp::saying(session.client(), "preToolUse", change("one"));
    let _two = HookApp::saying(second.client(), "preToolUse", change("two"));
    session.approve_all().await;
    session.send("go").await;
    let told = warning(&mut session, "hook_message").await;
    assert!(told.contains("Two hooks change the arguments"), "{told}");
    session.next("session.idle").await;
    assert!(!daemon.file("two").exists());
    daemon.finish().await;
}
