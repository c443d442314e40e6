//! Guards in Claude's format name tools of MCP servers as Claude does, and are asked about their calls.

use std::path::Path;

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::support::{end_of, write_hooks};

/// A session whose user has this guard, and a server `box` with the tool `echo`.
async fn echoed(hooks: &Value) -> (Daemon, Value) {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("e", "box-echo", json!({"text": "x"}))]),
        Turn::any().says("done"),
    ])
    .await;
    write_hooks(&daemon, hooks);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/mcp/server.py");
    let server = json!({"type": "local", "command": "python3", "args": [program, "good"],
                        "tools": ["*"]});
    let offer = json!({"mcpServers": {"box": server}, "requestPermission": true,
                       "enableFileHooks": true});
    let mut session = daemon.client().create(offer).await;
    session.approve_all().await;
    session.send("go").await;
    let end = end_of(&mut session, "e").await;
    session.next("session.idle").await;
    (daemon, end)
}

fn guard(event: &str, matcher: &str, command: &str) -> Value {
    let command = json!({"type": "command", "command": command});
    json!({event: [{"matcher": matcher, "hooks": [command]}]})
}

#[tokio::test]
async fn a_guard_that_names_a_tool_of_a_server_as_claude_does_is_asked() {
    for matcher in [
        "mcp__box__echo",
        "Bash|mcp__box__echo",
        "mcp__box__.*",
        "mcp__.*",
        "mcp__box",
        "^(mcp__box__echo|Bash)$",
    ] {
        let (daemon, end) = echoed(&guard("PreToolUse", matcher, "cat > seen; exit 2")).await;
        assert_eq!(end["error"]["code"], "denied", "{matcher}: {end}");
        let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
        let seen: Value = serde_json::from_str(&seen).unwrap();
        assert_eq!(seen["tool_name"], "mcp__box__echo", "{matcher}");
        assert_eq!(seen["tool_input"], json!({"text": "x"}), "{matcher}");
        let listed = daemon.client().call("loopd.hooks.list", json!({})).await;
        let told = listed.to_string();
        assert!(!told.contains("no built-in tool"), "{matcher}: {told}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_guard_of_other_tools_is_not_asked_about_those_of_a_server() {
    for matcher in ["mcp__box__add", "mcp__other__.*", "mcp__bo", "Bash"] {
        let (daemon, end) = echoed(&guard("PreToolUse", matcher, "exit 2")).await;
        assert_eq!(end["success"], true, "{matcher}: {end}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_hook_after_a_call_names_the_tool_of_a_server_as_claude_does() {
    let hooks = guard("PostToolUse", "mcp__box__.*", "cat > seen");
    let (daemon, end) = echoed(&hooks).await;
    assert_eq!(end["success"], true, "{end}");
    let seen = std::fs::read_to_string(daemon.file("seen")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["tool_name"], "mcp__box__echo");
    daemon.finish().await;
}
