//! Hooks before a compaction: they are told why it begins, may prevent it and say what matters.

use loopd_tests::script::Recorded;
use loopd_tests::{Daemon, Script, Session, Turn};
use serde_json::{Value, json};

use super::window;
use crate::hooks::{HookApp, HookReply, write_hooks};

const COMPACT: &str = "session.history.compact";

fn asks_for_summary(request: &Recorded) -> bool {
    let asked = request.last_user_text();
    asked.starts_with("Please create a detailed summary")
}

async fn talking() -> Script {
    Script::answering(|request| {
        if asks_for_summary(request) {
            return Turn::any().says("<overview>towns</overview>");
        }
        Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)))
    })
    .await
}

/// The options of a client that answers hooks.
fn answering_hooks() -> Value {
    let mut options = window(100_000);
    options["hooks"] = true.into();
    options
}

/// Compacts now; returns what came of it.
async fn compact(session: &Session, asked: &str) -> Value {
    let params = json!({"customInstructions": asked});
    session.call(COMPACT, params).await
}

fn requests_for_summaries(daemon: &Daemon) -> Vec<Recorded> {
    let mut requests = daemon.script().requests();
    requests.retain(asks_for_summary);
    requests
}

#[tokio::test]
async fn an_app_is_asked_before_a_compaction_and_adds_what_matters() {
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(answering_hooks()).await;
    let output = json!({"additionalContext": "keep every name of a town"});
    let app = HookApp::saying(session.client(), "preCompact", output);
    session.ask("first question").await;
    session.ask("second question").await;
    let done = compact(&session, "dwell on the sea").await;
    assert_eq!(done["success"], true, "{done}");
    let told = app.inputs("preCompact");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["trigger"], "manual");
    assert_eq!(told[0]["customInstructions"], "dwell on the sea");
    let asked = requests_for_summaries(&daemon);
    let text = asked[0].last_user_text();
    for part in ["dwell on the sea", "keep every name of a town"] {
        assert!(text.contains(part), "{text}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_app_prevents_a_compaction() {
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(answering_hooks()).await;
    let output = json!({"decision": "block", "reason": "not before the demo"});
    let _app = HookApp::saying(session.client(), "preCompact", output);
    session.ask("first question").await;
    session.ask("second question").await;
    let before = daemon.state(&session.id).await.history.clone();
    let done = compact(&session, "").await;
    assert_eq!(done["success"], false, "{done}");
    let why = done["error"].as_str().unwrap();
    assert!(why.contains("not before the demo"), "{why}");
    assert!(requests_for_summaries(&daemon).is_empty());
    assert_eq!(daemon.state(&session.id).await.history, before);
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_that_fails_is_told_and_prevents_nothing() {
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(answering_hooks()).await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "preCompact" => HookReply::Fails("it broke"),
        _ => HookReply::Nothing,
    });
    session.ask("first question").await;
    session.ask("second question").await;
    let done = compact(&session, "").await;
    assert_eq!(done["success"], true, "{done}");
    let events = session.events();
    let mut warnings = events
        .iter()
        .filter(|event| event["type"] == "session.warning");
    let warned = warnings.any(|event| event["data"]["message"].to_string().contains("preCompact"));
    assert!(warned, "{events:#?}");
    daemon.finish().await;
}

#[tokio::test]
async fn an_automatic_compaction_asks_the_hooks_for_it() {
    let mut options = answering_hooks();
    options["infiniteSessions"] = json!({
        "enabled": true, "backgroundCompactionThreshold": 0.001, "bufferExhaustionThreshold": 0.9,
    });
    let daemon = Daemon::with(talking().await).await;
    let mut session = daemon.client().create(options).await;
    let app = HookApp::silent(session.client());
    session.ask("first question").await;
    session.ask("second question").await;
    let compacted = |state: &loopd_kernel::state::State| state.compaction.count == 1;
    daemon.until(&session.id, "a compaction", compacted).await;
    let told = app.inputs("preCompact");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["trigger"], "auto");
    daemon.finish().await;
}

/// A session whose user has these hooks in files, after two questions.
async fn with_commands(hooks: &Value) -> (Daemon, Session) {
    let daemon = Daemon::with(talking().await).await;
    write_hooks(&daemon, hooks);
    let mut options = window(100_000);
    options["enableFileHooks"] = true.into();
    let mut session = daemon.client().create(options).await;
    session.ask("first question").await;
    session.ask("second question").await;
    (daemon, session)
}

#[tokio::test]
async fn commands_in_both_formats_prevent_a_compaction() {
    let block = r#"echo '{"decision":"block","reason":"not now"}'"#;
    for command in ["echo not now >&2; exit 2", block] {
        let claude =
            json!([{"matcher": "manual", "hooks": [{"type": "command", "command": command}]}]);
        for hooks in [
            json!({"preCompact": [{"bash": command}]}),
            json!({"PreCompact": claude}),
        ] {
            let (daemon, session) = with_commands(&hooks).await;
            let done = compact(&session, "").await;
            assert_eq!(done["success"], false, "{command}: {done}");
            let why = done["error"].as_str().unwrap();
            assert!(why.contains("not now"), "{why}");
            assert!(requests_for_summaries(&daemon).is_empty());
            daemon.finish().await;
        }
    }
}

#[tokio::test]
async fn a_command_is_told_why_and_only_for_the_trigger_that_it_names() {
    let other = json!({"matcher": "auto", "hooks": [{"type": "command", "command": "exit 2"}]});
    let own =
        json!({"matcher": "manual", "hooks": [{"type": "command", "command": "cat > seen.json"}]});
    let (daemon, session) = with_commands(&json!({"PreCompact": [other, own]})).await;
    let done = compact(&session, "names only").await;
    assert_eq!(done["success"], true, "{done}");
    let seen = std::fs::read_to_string(daemon.file("seen.json")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["hook_event_name"], "PreCompact", "{seen}");
    assert_eq!(seen["trigger"], "manual");
    assert_eq!(seen["custom_instructions"], "names only");
    assert!(seen["transcript_path"].is_string(), "{seen}");
    daemon.finish().await;
}
