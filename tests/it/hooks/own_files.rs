//! Hooks of the user's own files, which need no trust: people are told of each new one.

use loopd_tests::Turn;
use serde_json::json;

use super::support::{bash, warning, with_files, without_hooks, write_hooks};

#[tokio::test]
async fn a_hook_that_a_tool_wrote_does_not_run_without_a_word() {
    let wrote = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"touch ran"}]}}"#;
    let turns = [
        Turn::user("one").calls([bash("a", "true")]),
        Turn::any().says("done"),
        Turn::user("two").calls([bash("b", "true")]),
        Turn::any().says("done"),
        Turn::user("three").says("done"),
    ];
    let hooks = json!({"preToolUse": [{"bash": "true"}]});
    let (daemon, mut session) = with_files(hooks.clone(), turns).await;
    session.approve_all().await;
    session.send("one").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("test.json, line"), "{told}");
    assert!(told.contains("is new or has changed"), "{told}");
    session.next("session.idle").await;

    std::fs::write(daemon.home().join("hooks/evil.json"), wrote).unwrap();
    session.send("two").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("evil.json, line 1"), "{told}");
    session.next("session.idle").await;
    assert!(daemon.file("ran").exists());

    // What people were told once, in whichever session, they are not told again.
    let mut offer = without_hooks();
    offer["enableFileHooks"] = true.into();
    let mut other = daemon.client().create(offer).await;
    other.ask("three").await;
    assert_eq!(other.count("session.warning"), 0);
    write_hooks(&daemon, &hooks);
    daemon.finish().await;
}
