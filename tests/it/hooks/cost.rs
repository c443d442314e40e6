//! What hooks cost a tool call in commits. Without hooks it is what `tool_stages` says.

use loopd_tests::{Commits, Daemon, Script};
use serde_json::json;

use super::support::{HookApp, bash, offer, one_call};

#[tokio::test]
async fn a_client_hook_that_says_nothing_costs_one_commit_more() {
    let commits = Commits::default();
    let script = Script::play(one_call(bash("c", "echo hi"), "hi")).await;
    let builder = Daemon::builder().script(script).commits(&commits);
    let daemon = builder.start().await;
    let mut session = daemon.client().create(offer()).await;
    session.approve_all().await;
    let app = HookApp::silent(session.client());
    session.ask("go").await;
    assert_eq!(app.inputs("preToolUse").len(), 1);
    assert_eq!(app.inputs("postToolUse").len(), 1);
    let kinds = commits.kinds().into_iter().map(|kinds| kinds.join(" "));
    let made: Vec<String> = kinds
        .skip_while(|kinds| !kinds.contains("assistant.message"))
        .collect();
    assert_eq!(
        made,
        [
            "loopd.usage assistant.message",
            "tool.execution_start",
            "tool.execution_complete assistant.turn_end assistant.turn_start",
            "loopd.usage assistant.message",
            "assistant.turn_end loopd.loop_ended",
        ]
    );
    // What hooks are asked is told and not stored.
    assert!(session.count("hook.start") >= 2);
    let stored = session.messages().await;
    let kinds = stored.iter().map(|event| event["type"].as_str().unwrap());
    assert_eq!(kinds.filter(|kind| kind.starts_with("hook.")).count(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn files_of_hooks_for_other_tools_cost_nothing() {
    let commits = Commits::default();
    let script = Script::play(one_call(bash("c", "echo hi"), "hi")).await;
    let builder = Daemon::builder().script(script).commits(&commits);
    let daemon = builder.start().await;
    let hooks = json!({"preToolUse": [{"bash": "exit 2", "matcher": "edit"}]});
    super::support::write_hooks(&daemon, &hooks);
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let kinds = commits.kinds().into_iter().map(|kinds| kinds.join(" "));
    let made: Vec<String> = kinds
        .skip_while(|kinds| !kinds.contains("tool.execution_start"))
        .collect();
    assert_eq!(
        made,
        [
            "loopd.usage assistant.message tool.execution_start",
            "tool.execution_complete assistant.turn_end assistant.turn_start",
            "loopd.usage assistant.message assistant.turn_end loopd.loop_ended",
        ]
    );
    assert_eq!(session.count("hook.start"), 0);
    daemon.finish().await;
}
