//! What a session tells of itself: where, how, with which model, for how much; and its end.

use loopd_tests::{Daemon, Gate, Turn};
use serde_json::{Value, json};

const SNAPSHOT: &str = "session.metadata.snapshot";
const SET_DIRECTORY: &str = "session.metadata.setWorkingDirectory";
const RECORD: &str = "session.metadata.recordContextChange";

#[tokio::test]
async fn whoever_takes_over_is_told_what_was_asked_and_answered() {
    let daemon = Daemon::playing([
        Turn::user("find").says("It is in `main.rs`."),
        Turn::user("Somebody else will take over").says("## Goal\n\nThe bug in `main.rs`."),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let method = "session.history.summarizeForHandoff";
    let nothing = session.call(method, json!({})).await;
    assert_eq!(nothing, json!({"summary": ""}));
    session.ask("find\nthe bug").await;
    let told = session.call(method, json!({})).await;
    let told = told["summary"].as_str().unwrap();
    for part in [
        "- find the bug\n",
        "The bug in `main.rs`.",
        &daemon.work().display().to_string(),
    ] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains("current_datetime"), "{told}");
    for (method, word) in [
        ("session.history.cancelBackgroundCompaction", "cancelled"),
        ("session.history.abortManualCompaction", "aborted"),
    ] {
        assert_eq!(session.call(method, json!({})).await, json!({word: false}));
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_describes_itself() {
    let daemon = Daemon::playing([]).await;
    let params = json!({"model": "some-model", "clientName": "a test"});
    let session = daemon.client().create(params).await;
    let told = session.call(SNAPSHOT, json!({})).await;
    assert_eq!(told["sessionId"], session.id);
    assert_eq!(told["currentMode"], "interactive");
    assert_eq!(told["selectedModel"], "some-model");
    assert_eq!(told["clientName"], "a test");
    assert_eq!(told["workingDirectory"], json!(daemon.work()));
    assert_eq!(told["workspace"]["id"], session.id);
    assert_eq!(told["sessionLimits"], Value::Null);
    assert_eq!(told["isRemote"], false);
    assert!(told["workspacePath"].is_string());
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_moves_to_another_directory_and_stays_there() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let there = daemon.file("there");
    std::fs::create_dir(&there).unwrap();
    let primary = "session.permissions.paths.updatePrimary";
    session.call(primary, json!({"path": daemon.work()})).await;
    let moved = json!({ "workingDirectory": there });
    assert_eq!(session.call(SET_DIRECTORY, moved.clone()).await, moved);
    let changed = session.next("session.context_changed").await;
    assert_eq!(changed["data"], json!({ "cwd": there }));
    let paths = session
        .call("session.permissions.paths.list", json!({}))
        .await;
    assert_eq!(paths["primary"], json!(there));
    session.call("session.destroy", json!({})).await;
    let again = daemon.client().resume(&session.id, json!({})).await;
    let told = again.call(SNAPSHOT, json!({})).await;
    assert_eq!(told["workingDirectory"], json!(there));
    for wrong in ["relative", "/no/such/directory", ""] {
        let params = json!({ "workingDirectory": wrong });
        assert_eq!(again.refused(SET_DIRECTORY, params).await.code, -32602);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn only_what_is_said_of_the_sessions_directory_is_recorded() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let elsewhere = json!({"context": {"cwd": "/elsewhere", "branch": "other"}});
    assert_eq!(session.call(RECORD, elsewhere).await, json!({}));
    let context = json!({"cwd": daemon.work(), "gitRoot": "/src", "branch": "main",
        "repository": "us/it", "repositoryHost": "example.org", "hostType": "github",
        "headCommit": "1", "baseCommit": "0"});
    session.call(RECORD, json!({ "context": context })).await;
    let told = session.next("session.context_changed").await;
    assert_eq!(told["data"], context, "the first one was not about it");
    let there = json!({"filter": {"branch": "main"}});
    let listed = daemon.client().call("session.list", there).await;
    assert_eq!(listed["sessions"][0]["sessionId"], session.id);
    for wrong in [json!({}), json!({"cwd": daemon.work(), "hostType": "moon"})] {
        let params = json!({ "context": wrong });
        assert_eq!(session.refused(RECORD, params).await.code, -32602);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn what_goes_on_is_told() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("one").says("1").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    let activity = "session.metadata.activity";
    let processing = "session.metadata.isProcessing";
    let rests = json!({"abortable": false, "hasActiveWork": false});
    assert_eq!(session.call(activity, json!({})).await, rests);
    session.send("one").await;
    gate.reached().await;
    let works = json!({"abortable": true, "hasActiveWork": true});
    assert_eq!(session.call(activity, json!({})).await, works);
    let told = session.call(processing, json!({})).await;
    assert_eq!(told, json!({"processing": true}));
    gate.open();
    session.next("session.idle").await;
    assert_eq!(session.call(activity, json!({})).await, rests);
    let told = session.call(processing, json!({})).await;
    assert_eq!(told, json!({"processing": false}));
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_session_used_adds_up_and_is_kept() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let metrics = "session.usage.getMetrics";
    let mut session = daemon.client().create(json!({})).await;
    let fresh = session.call(metrics, json!({})).await;
    assert_eq!(fresh["totalUserRequests"], 0);
    assert_eq!(fresh["modelMetrics"], json!({}));
    session.ask("one").await;
    session.ask("two").await;
    let used = session.call(metrics, json!({})).await;
    assert_eq!(used["totalUserRequests"], 2);
    let model = used["currentModel"].as_str().unwrap();
    let of_model = &used["modelMetrics"][model];
    assert_eq!(of_model["requests"]["count"], 2);
    let spent = of_model["usage"]["inputTokens"].as_u64().unwrap();
    let last = used["lastCallInputTokens"].as_u64().unwrap();
    assert!(last <= spent, "{used}");
    assert_eq!(used["codeChanges"]["filesModifiedCount"], 0);
    session.call("session.destroy", json!({})).await;
    let again = daemon.client().resume(&session.id, json!({})).await;
    assert_eq!(again.call(metrics, json!({})).await, used);
    daemon.finish().await;
}

#[tokio::test]
async fn the_effort_changes_and_the_model_stays() {
    let daemon = Daemon::playing([]).await;
    let set = "session.model.setReasoningEffort";
    let mut session = daemon.client().create(json!({"model": "m"})).await;
    let high = json!({"reasoningEffort": "high"});
    assert_eq!(session.call(set, high.clone()).await, high);
    let changed = session.next("session.model_change").await;
    assert_eq!(changed["data"]["newModel"], "m");
    let current = session.call("session.model.getCurrent", json!({})).await;
    assert_eq!(current, json!({"modelId": "m", "reasoningEffort": "high"}));
    for wrong in [json!({}), json!({"reasoningEffort": " "})] {
        assert_eq!(session.refused(set, wrong).await.code, -32602);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn people_are_asked_or_not() {
    let daemon = Daemon::playing([]).await;
    let (get, set) = ("session.permissions.getMode", "session.permissions.setMode");
    let session = daemon.client().create(json!({})).await;
    assert_eq!(
        session.call(get, json!({})).await,
        json!({"mode": "manual"})
    );
    for mode in ["allow-all", "manual"] {
        let done = session.call(set, json!({ "mode": mode })).await;
        assert_eq!(done, json!({"success": true, "mode": mode}));
        assert_eq!(session.call(get, json!({})).await, json!({ "mode": mode }));
    }
    for wrong in ["assisted", "anything"] {
        let refused = session.refused(set, json!({ "mode": wrong })).await;
        assert_eq!(refused.code, -32602);
    }
    daemon.finish().await;
    let daemon = Daemon::builder().yolo().start().await;
    let session = daemon.client().create(json!({})).await;
    let told = session.call(get, json!({})).await;
    assert_eq!(told, json!({"mode": "allow-all"}), "by its launch");
    let cannot = session.call(set, json!({"mode": "manual"})).await;
    assert_eq!(cannot, json!({"success": false, "mode": "allow-all"}));
    daemon.finish().await;
}

#[tokio::test]
async fn the_instructions_of_a_session_are_those_its_model_gets() {
    let daemon = Daemon::playing([]).await;
    std::fs::write(daemon.file("AGENTS.md"), "Use tabs.").unwrap();
    let get = "session.instructions.getSources";
    let session = daemon.client().create(json!({})).await;
    let told = session.call(get, json!({})).await;
    let sources = told["sources"].as_array().unwrap();
    assert!(
        sources
            .iter()
            .any(|source| source["content"] == "Use tabs."),
        "{told}"
    );
    let params = json!({"skipCustomInstructions": true});
    let session = daemon.client().create(params).await;
    assert_eq!(session.call(get, json!({})).await, json!({"sources": []}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_is_ended_for_everybody() {
    let daemon = Daemon::playing([]).await;
    let shutdown = "session.shutdown";
    let session = daemon.client().create(json!({})).await;
    let mut other = daemon.client().resume(&session.id, json!({})).await;
    let wrong = session.refused(shutdown, json!({"type": "sudden"})).await;
    assert_eq!(wrong.code, -32602);
    let params = json!({"type": "error", "reason": "no power"});
    assert_eq!(session.call(shutdown, params).await, Value::Null);
    let end = other.next("session.shutdown").await;
    assert_eq!(end["data"]["shutdownType"], "error");
    assert_eq!(end["data"]["errorReason"], "no power");
    let gone = session.refused(shutdown, json!({})).await;
    assert!(gone.message.contains("not found"), "{}", gone.message);
    let mut again = daemon.client().resume(&session.id, json!({})).await;
    again.call(shutdown, json!({})).await;
    let end = again.next("session.shutdown").await;
    assert_eq!(end["data"]["shutdownType"], "routine");
    daemon.finish().await;
}
