//! A resume that turns off the hooks of files.

use loopd_tests::Turn;
use serde_json::json;

use super::support::{bash, warning, with_files, without_hooks};

#[tokio::test]
async fn people_are_told_that_guards_of_files_are_off() {
    for member in ["enableFileHooks", "enableConfigDiscovery"] {
        let hooks = json!({"preToolUse": [{"bash": "exit 2"}]});
        let turns = [
            Turn::user("one").calls([bash("a", "touch made")]),
            Turn::any().says("done"),
            Turn::user("two").calls([bash("b", "touch made")]),
            Turn::any().says("done"),
        ];
        let (daemon, mut session) = with_files(hooks, turns).await;
        session.approve_all().await;
        session.ask("one").await;
        assert!(!daemon.file("made").exists());
        session.client().vanish().await;
        let mut offer = without_hooks();
        offer["enableFileHooks"] = json!(null);
        offer[member] = false.into();
        let mut other = daemon.client().resume(&session.id, offer).await;
        if member == "enableConfigDiscovery" {
            // The session was opened with `enableFileHooks`, which counts.
            other.ask("two").await;
            assert!(!daemon.file("made").exists());
        } else {
            let told = warning(&mut other, "hooks_off").await;
            assert!(told.contains("guards included"), "{told}");
            other.ask("two").await;
            assert!(daemon.file("made").exists());
        }
        daemon.finish().await;
    }
}
