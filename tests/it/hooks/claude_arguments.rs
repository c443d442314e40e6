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

#[tokio::test]
async fn what_a_model_writes_beside_the_arguments_of_a_tool_hides_nothing_from_a_guard() {
    let guard = "grep -Eq '/.env\"|EVIL' && { echo 'no secrets' >&2; exit 2; }; exit 0";
    let patch = "--- /dev/null\n+++ .env\t2026-01-01\n@@ -0,0 +1 @@\n+x\n";
    let (daemon, mut session) = with_files(
        claude("*", guard),
        [
            Turn::user("go").calls([
                call(
                    "a",
                    "create",
                    json!({"path": ".env", "file_path": "README", "file_text": "x"}),
                ),
                call(
                    "b",
                    "create",
                    json!({"path": "b", "file_text": "EVIL", "content": "fine", "file_path": null}),
                ),
                call("c", "view", json!({"path": ".env", "file_path": "README"})),
                call(
                    "d",
                    "apply_patch",
                    json!({"patch": patch, "file_path": "README", "file_paths": ["README"]}),
                ),
                call(
                    "e",
                    "create",
                    json!({"path": "fine", "file_text": "x", "note": "EVIL"}),
                ),
            ]),
            Turn::results(["no secrets", "no secrets", "no secrets", "no secrets", ""])
                .says("done"),
        ],
    )
    .await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(daemon.file("fine").exists());
    assert!(!daemon.file(".env").exists() && !daemon.file("b").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_is_told_the_files_of_a_patch_in_every_form_that_the_tool_takes() {
    let guard =
        "grep -q '\"file_paths\":\\[[^]]*/.env\"' && { echo 'no secrets' >&2; exit 2; }; exit 0";
    let patches = [
        "--- /dev/null\n+++ .env\n@@ -0,0 +1 @@\n+x\n",
        "--- /dev/null\n+++ ./b/../.env\n@@ -0,0 +1 @@\n+x\n",
        "Index: .env\n===\n--- /dev/null\n+++ .env\t(working copy)\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/fine b/.env\nsimilarity index 100%\nrename from fine\nrename to .env\n",
        "diff --git a/.env b/.env\nnew file mode 100644\nindex 000..111\n",
        "*** Begin Patch\n*** Update File: fine\n*** Move to: .env\n@@\n-x\n+y\n*** End Patch",
    ];
    let ids = ["a", "b", "c", "d", "e", "f"];
    let calls = ids
        .iter()
        .zip(patches)
        .map(|(id, patch)| call(id, "apply_patch", json!({"patch": patch})));
    let (daemon, mut session) = with_files(
        claude("Edit", guard),
        [
            Turn::user("go").calls(calls.collect::<Vec<_>>()),
            Turn::results(["no secrets"; 6]).says("done"),
        ],
    )
    .await;
    std::fs::write(daemon.file("fine"), "x\n").unwrap();
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file(".env").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn changed_arguments_that_the_tool_does_not_have_are_refused_by_name() {
    let change = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse",
        "updatedInput":{"command":"echo ran > here","timeout":5000}}}'"#;
    let (daemon, mut session) = with_files(
        claude("Bash", change),
        [
            Turn::user("go").calls([call("a", "bash", json!({"command": "echo ran > here"}))]),
            Turn::results(["it sets arguments that bash does not have: `timeout`"]).says("done"),
        ],
    )
    .await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(!daemon.file("here").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn the_lines_that_a_hook_wants_by_claudes_names_are_shown() {
    let change = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse",
        "updatedInput":{"file_path":"lines","offset":2,"limit":1}}}'"#;
    let (daemon, mut session) = with_files(
        claude("Read", change),
        [
            Turn::user("go").calls([call("a", "view", json!({"path": "lines"}))]),
            Turn::results(["2. two"]).says("done"),
        ],
    )
    .await;
    std::fs::write(daemon.file("lines"), "one\ntwo\nthree\n").unwrap();
    session.approve_all().await;
    session.ask("go").await;
    daemon.finish().await;
}
