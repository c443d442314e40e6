//! What hooks leave in a log.

use loopd_tests::Turn;
use serde_json::json;

use super::{Log, bash, end, session, started, take};
use crate::hooks::{HookApp, HookReply};

/// Hooks of a client change a prompt, arguments and results, deny a call, answer a permission and
/// keep the loop from ending.
pub(super) async fn hooks() -> Vec<Log> {
    let daemon = started([
        Turn::user("go").calls([bash("changed", "echo one"), bash("denied", "echo two")]),
        Turn::any().says("done"),
        Turn::user("test it").says("tested"),
    ])
    .await;
    let mut session = session(&daemon, "hooks", json!({"hooks": true})).await;
    let _app = HookApp::on(session.client(), |kind, input| {
        let command = input["toolArgs"]["command"].as_str();
        HookReply::Output(match (kind, command) {
            ("sessionStart", _) => json!({"additionalContext": "Be brief."}),
            ("userPromptSubmitted", _) => json!({"modifiedPrompt": "go on"}),
            ("preToolUse", Some("echo one")) => {
                json!({"modifiedArgs": {"command": "echo three", "description": "another"},
                       "additionalContext": "It was changed."})
            }
            ("preToolUse", Some("echo two")) => {
                json!({"permissionDecision": "deny", "permissionDecisionReason": "not this"})
            }
            ("permissionRequest", _) => json!({"behavior": "allow"}),
            ("postToolUse", _) => json!({"modifiedResult": {"textResultForLlm": "four"}}),
            ("agentStop", _) if input["stopBlocks"] == 0 => {
                json!({"decision": "block", "reason": "test it"})
            }
            _ => return HookReply::Nothing,
        })
    });
    session.ask("go").await;
    end(daemon).await
}

/// A call waits for the client whose hooks guard the session.
pub(super) async fn guard_absent() -> Vec<Log> {
    let daemon = started([Turn::user("go").calls([bash("waits", "touch made")])]).await;
    let guard = session(&daemon, "guard-absent", json!({"hooks": true})).await;
    let offer = json!({"requestPermission": true});
    let mut other = daemon.client().resume(&guard.id, offer).await;
    guard.client().vanish().await;
    other.send("go").await;
    other.next("session.warning").await;
    let logs = take(&daemon).await;
    other.call("session.abort", json!({})).await;
    other.next("session.idle").await;
    daemon.finish().await;
    logs
}

/// A session moves out of a folder whose rules deny something.
pub(super) async fn guards_kept() -> Vec<Log> {
    let daemon = started([Turn::user("go").says("done")]).await;
    let (here, there) = (daemon.file("here"), daemon.file("there"));
    for folder in [&daemon.file(".git"), &here.join(".claude"), &there] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let rules = json!({"permissions": {"deny": ["Bash(curl:*)"]}}).to_string();
    std::fs::write(here.join(".claude/settings.json"), rules).unwrap();
    let options = json!({"workingDirectory": here});
    let mut session = session(&daemon, "guards-kept", options).await;
    let moved = json!({"workingDirectory": there});
    session
        .call("session.metadata.setWorkingDirectory", moved)
        .await;
    session.ask("go").await;
    end(daemon).await
}

/// Hooks keep an agent in autopilot mode from ending until they may not any more; then it is paused.
pub(super) async fn stop_limit() -> Vec<Log> {
    let turns = (0..9).map(|_| Turn::any().says("done"));
    let daemon = started(turns).await;
    let mut session = session(&daemon, "stop-limit", json!({"hooks": true})).await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "agentStop" => HookReply::Output(json!({"decision": "block", "reason": "more"})),
        _ => HookReply::Nothing,
    });
    let mode = json!({"mode": "autopilot"});
    session.call("session.mode.set", mode).await;
    let paused = json!({"paused": true});
    session.call("loopd.autopilot.pause", paused).await;
    session.ask("go").await;
    end(daemon).await
}

/// An app names a folder of hooks, whose guard denies a call.
pub(super) async fn vouched_hooks() -> Vec<Log> {
    let daemon = started([
        Turn::user("go").calls([bash("denied", "echo one")]),
        Turn::any().says("done"),
    ])
    .await;
    let folder = daemon.file("hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let hooks =
        json!({"version": 1, "hooks": {"preToolUse": [{"bash": "exit 2", "matcher": "bash"}]}});
    std::fs::write(folder.join("guard.json"), hooks.to_string()).unwrap();
    let options = json!({"hookDirectories": ["hooks"]});
    let mut session = session(&daemon, "vouched-hooks", options).await;
    session.ask("go").await;
    end(daemon).await
}

/// A hook that sees a result ends the run.
pub(super) async fn hook_stopped() -> Vec<Log> {
    let daemon = started([Turn::user("go").calls([bash("last", "echo one")])]).await;
    let options = json!({"hooks": true});
    let mut session = session(&daemon, "hook-stopped", options).await;
    let _app = HookApp::on(session.client(), |kind, _| match kind {
        "preToolUse" => HookReply::Output(json!({"permissionDecision": "allow"})),
        "postToolUse" => HookReply::Output(json!({"continue": false, "stopReason": "seen enough"})),
        _ => HookReply::Nothing,
    });
    session.ask("go").await;
    end(daemon).await
}
