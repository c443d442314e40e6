//! Hooks in Claude's format see the arguments of tools by Claude's names, and may change them so.

use loopd_tests::{Turn, call};
use serde_json::{Value, json};

use super::support::with_files;

/// Hooks of one kind in Claude's format.
fn claude(matcher: &str, command: &str) -> Value {
    json!({"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]})
}

#[tokio::test]
async fn a_guard_finds_the_file_and_the_text() {
    let guard =
        "grep -q '\"file_path\":\"[^\"]*/.env\"' && { echo 'no secrets' >&2; exit 2; }; exit 0";
    let (daemon, mut session) = with_files(
        claude("Edit|Write|Read", guard),
        [
            Turn::user("go").calls([
                call("a", "create", json!({"path": ".env", "file_text": "x"})),
                call("b", "create", json!({"path": "fine", "file_text": "x"})),
                call("c", "view", json!({"path": ".env"})),
                call(
                    "d",
                    "edit",
                    json!({"path": ".env", "old_str": "a", "new_str": "b"}),
                ),
            ]),
            Turn::results(["no secrets", "", "no secrets", "no secrets"]).says("done"),
        ],
    )
    .await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(daemon.file("fine").exists());
    assert!(!daemon.file(".env").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_hook_writes_by_claudes_names_is_what_runs() {
    let change = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow",
        "updatedInput":{"file_path":"other","content":"changed"}}}'"#;
    let (daemon, mut session) = with_files(
        claude("Write", change),
        [
            Turn::user("go").calls([call(
                "a",
                "create",
                json!({"path": "first", "file_text": "x"}),
            )]),
            Turn::results(["other"]).says("done"),
        ],
    )
    .await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("first").exists());
    let written = std::fs::read_to_string(daemon.file("other")).unwrap();
    assert_eq!(written, "changed");
    daemon.finish().await;
}
