//! What answers of guards mean.

use serde_json::{Value, json};

use super::*;

fn read(kind: HookKind, answer: Value, refused: Option<&str>) -> String {
    let output = match HookOutput::of(Some(answer)) {
        Ok(output) => HookOutput {
            refused: refused.map(str::to_owned),
            ..output
        },
        Err(failure) => return format!("wrong: {}", failure.cause()),
    };
    let answer = match read_guard(kind, &output) {
        Ok(answer) => answer,
        Err(wrong) => return format!("wrong: {wrong}"),
    };
    let verdict = match answer.verdict {
        HookVerdict::None => "none".to_owned(),
        HookVerdict::Allow => "allow".to_owned(),
        HookVerdict::Ask(why) => format!("ask {}", why.unwrap_or_default()),
        HookVerdict::Deny(denial) => format!("deny {}", denial.reason),
    };
    let arguments = answer.arguments.map(|it| format!(" with {it}"));
    let context = answer.context.map(|it| format!(" telling {it}"));
    format!(
        "{verdict}{}{}",
        arguments.unwrap_or_default(),
        context.unwrap_or_default()
    )
}

#[test]
fn both_formats_say_what_they_want_of_a_call() {
    let table = [
        (json!({}), "none"),
        (json!({"permissionDecision": "allow"}), "allow"),
        (
            json!({"permissionDecision": "deny"}),
            "deny No reason provided",
        ),
        (
            json!({"permissionDecision": "deny", "permissionDecisionReason": "not here"}),
            "deny not here",
        ),
        (
            json!({"permissionDecision": "ask", "permissionDecisionReason": "sure?"}),
            "ask sure?",
        ),
        (
            json!({"permissionDecision": "allow", "modifiedArgs": {"a": 1}, "additionalContext": "c"}),
            r#"allow with {"a":1} telling c"#,
        ),
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
                "permissionDecision": "deny", "permissionDecisionReason": "claude"}}),
            "deny claude",
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"b": 2}}}),
            r#"allow with {"b":2}"#,
        ),
        (json!({"decision": "approve"}), "allow"),
        (json!({"decision": "block", "reason": "old"}), "deny old"),
        (json!({"permissionDecision": "defer"}), "none"),
        (
            json!({"continue": false, "stopReason": "halt"}),
            "deny halt",
        ),
        (
            json!({"permissionDecision": "allow", "decision": "block", "reason": "both"}),
            "deny both",
        ),
        (json!({"permissionDecision": null}), "none"),
        (
            json!({"permissionDecision": "allow",
                "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "x"}}),
            "deny x",
        ),
        (
            json!({"permissionDecision": "deny",
                "hookSpecificOutput": {"permissionDecision": "allow"}}),
            "deny No reason provided",
        ),
        (
            json!({"permissionDecision": "allow", "hookSpecificOutput": {"decision": "block"}}),
            "deny No reason provided",
        ),
        (
            json!({"permissionDecision": "allow", "hookSpecificOutput": {"permissionDecision": "ask"}}),
            "ask ",
        ),
        (
            json!({"continue": true, "hookSpecificOutput": {"continue": false}}),
            "deny No reason provided",
        ),
    ];
    for (answer, wanted) in table {
        assert_eq!(
            read(HookKind::PreToolUse, answer.clone(), None),
            wanted,
            "{answer}"
        );
    }
}

#[test]
fn nonsense_is_no_answer() {
    let table = [
        json!({"permissionDecision": "maybe"}),
        json!({"permissionDecision": 1}),
        json!({"permissionDecision": ["deny"]}),
        json!({"decision": "whatever"}),
        json!({"modifiedArgs": "rm"}),
        json!({"permissionDecision": "allow", "hookSpecificOutput": {"permissionDecision": "Deny"}}),
        json!({"permissionDecision": "allow", "hookSpecificOutput": "deny"}),
        json!({"modifiedArgs": {"a": 1}, "hookSpecificOutput": {"updatedInput": {"a": 2}}}),
        json!({"permissionDecision": "deny", "permissionDecisionReason": 7}),
        json!(["deny"]),
        json!("deny"),
        json!(false),
    ];
    for answer in table {
        let read = read(HookKind::PreToolUse, answer.clone(), None);
        assert!(read.starts_with("wrong: "), "{answer} gives {read}");
    }
}

#[test]
fn a_reason_is_bounded_and_hides_nothing() {
    let long = "x".repeat(200_000);
    let read_long = read(HookKind::PreToolUse, json!({}), Some(&long));
    assert!(read_long.len() < 11_000, "{}", read_long.len());
    assert!(read_long.contains("189760 more bytes"), "the rest is told");
    let hidden =
        json!({"permissionDecision": "deny", "permissionDecisionReason": "a\u{1b}[2Jb\nc"});
    let read = read(HookKind::PreToolUse, hidden, None);
    assert!(!read.contains('\u{1b}') && read.contains("b\nc"), "{read}");
}

#[test]
fn exit_code_2_denies_whatever_the_answer_says() {
    let allow = json!({"permissionDecision": "allow"});
    let table = [
        (json!({}), "no way", "deny no way"),
        (allow, "no way", "deny no way"),
        (json!({}), "", "deny No reason provided"),
        (
            json!({"permissionDecision": "deny", "permissionDecisionReason": "written"}),
            "",
            "deny written",
        ),
    ];
    for (answer, refused, wanted) in table {
        let read = read(HookKind::PreToolUse, answer.clone(), Some(refused));
        assert_eq!(read, wanted, "{answer}");
    }
}

#[test]
fn a_permission_is_answered_in_both_formats() {
    let table = [
        (json!({}), "none"),
        (json!({"behavior": "allow"}), "allow"),
        (json!({"behavior": "deny", "message": "no"}), "deny no"),
        (
            json!({"hookSpecificOutput": {"decision": {"behavior": "deny", "message": "claude"}}}),
            "deny claude",
        ),
        (
            json!({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}),
            "allow",
        ),
        (json!({"decision": "block", "reason": "old"}), "deny old"),
        (
            json!({"permissionDecision": "deny", "permissionDecisionReason": "as before a call"}),
            "deny as before a call",
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "deny"}}),
            "deny No reason provided",
        ),
        (json!({"permissionDecision": "allow"}), "allow"),
        (
            json!({"behavior": "allow", "hookSpecificOutput": {"decision": {"behavior": "deny"}}}),
            "deny No reason provided",
        ),
        (
            json!({"behavior": "allow", "permissionDecision": "deny"}),
            "deny No reason provided",
        ),
    ];
    for (answer, wanted) in table {
        let read = read(HookKind::PermissionRequest, answer.clone(), None);
        assert_eq!(read, wanted, "{answer}");
    }
    for answer in [
        json!({"behavior": "maybe"}),
        json!({"permissionDecision": "maybe"}),
        json!({"permissionDecision": true}),
        json!({"hookSpecificOutput": {"permissionDecision": "Deny"}}),
        json!({"behavior": "allow", "decision": {"behavior": "no"}}),
        json!({"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"a": 1}}}}),
    ] {
        let read = read(HookKind::PermissionRequest, answer.clone(), None);
        assert!(read.starts_with("wrong: "), "{answer} gives {read}");
    }
}

#[test]
fn an_answer_in_words_that_nobody_knows_is_not_taken_for_no_objection() {
    let wrong = [
        json!({"permission_decision": "deny"}),
        json!({"permissionDescision": "deny"}),
        json!({"behavior": "deny"}),
        json!({"block": true}),
        json!({"ok": false}),
        json!({"continue": "false"}),
        json!({"permissionDecisionReason": "no"}),
        json!({"additionalContext": "c", "PermissionDecision": "deny"}),
        json!({"hookSpecificOutput": {"permission-decision": "deny"}}),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "decison": 1, "deny": true}}),
    ];
    for answer in wrong {
        let read = read(HookKind::PreToolUse, answer.clone(), None);
        assert!(read.starts_with("wrong: "), "{answer}: {read}");
    }
    let fine = [
        json!({}),
        json!({"suppressOutput": true}),
        json!({"systemMessage": "hello", "mine": 1}),
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse"}}),
        json!({"continue": true}),
        json!({"hookSpecificOutput": {}}),
    ];
    for answer in fine {
        let said = read(HookKind::PreToolUse, answer.clone(), None);
        assert_eq!(said, "none", "{answer}");
        let said = read(HookKind::PermissionRequest, answer.clone(), None);
        assert_eq!(said, "none", "{answer}");
    }
    let permits = read(
        HookKind::PermissionRequest,
        json!({"behavior": "allow"}),
        None,
    );
    assert_eq!(permits, "allow");
}
