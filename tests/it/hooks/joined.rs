//! A guard that joins while a person is asked about a call decides before the call runs.

use loopd_tests::Turn;
use serde_json::json;

use super::support::{HookApp, HookReply, bash, end_of, one_call, without_hooks};

#[tokio::test]
async fn a_guard_that_joins_while_a_person_is_asked_is_asked_before_the_call_runs() {
    for denies in [true, false] {
        let told = if denies {
            "Denied by preToolUse hook"
        } else {
            ""
        };
        let daemon = loopd_tests::Daemon::playing(one_call(bash("a", "touch made"), told)).await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.send("go").await;
        let (request, _) = session.permission().await;
        let guard = daemon.client();
        let app = HookApp::on(&guard, move |kind, _| match kind {
            "preToolUse" if denies => HookReply::Output(json!({"permissionDecision": "deny"})),
            _ => HookReply::Nothing,
        });
        let joined = guard.resume(
            &session.id,
            json!({"hooks": true, "continuePendingWork": true}),
        );
        let _joined = joined.await;
        let yes = json!({"kind": "approve-once"});
        assert!(session.decide(&request, yes).await);
        let end = end_of(&mut session, "a").await;
        assert_eq!(end["success"], !denies, "{end}");
        assert_eq!(daemon.file("made").exists(), !denies);
        assert_eq!(app.inputs("preToolUse").len(), 1);
        session.next("session.idle").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_guard_that_was_asked_before_a_person_is_not_asked_again() {
    let turns: [Turn; 2] = one_call(bash("a", "touch made"), "");
    let (daemon, mut session) = super::support::hooked(turns).await;
    let app = HookApp::silent(session.client());
    session.send("go").await;
    super::support::permit(&mut session).await;
    session.next("session.idle").await;
    assert!(daemon.file("made").exists());
    assert_eq!(app.inputs("preToolUse").len(), 1);
    daemon.finish().await;
}
