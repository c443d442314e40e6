//! What the end of a command means.

use super::*;

fn judged(kind: HookKind, form: PayloadForm, output: &str, errors: &str, exit: Exit) -> String {
    let line = |text: &str| PrintedText {
        kept: Vec::new(),
        line: text.as_bytes().to_vec(),
    };
    let printed = Printed {
        output: line(output),
        errors: line(errors),
    };
    match judge(kind, form, &printed, exit) {
        Ok(output) => match (&output.refused, &output.text) {
            (Some(refused), _) => format!("refused {refused}"),
            (None, Some(text)) => format!("text {text}"),
            (None, None) => serde_json::to_string(&output.members).unwrap(),
        },
        Err(failure) => format!("failed: {}", failure.cause()),
    }
}

#[test]
fn the_end_of_a_command_is_its_answer() {
    use HookKind::{PreToolUse, SessionStart};
    use PayloadForm::{Claude, Native};
    let table = [
        (PreToolUse, Native, "", "", Exit::Code(0), "{}"),
        (
            PreToolUse,
            Native,
            " {\"a\":1}\n",
            "",
            Exit::Code(0),
            "{\"a\":1}",
        ),
        (
            PreToolUse,
            Native,
            "{\"a\":",
            "",
            Exit::Code(0),
            "failed: its answer is not one JSON object but begins with `{\"a\":`",
        ),
        (
            PreToolUse,
            Native,
            r#"{"permissionDecision":"deny","permissionDecision":"allow"}"#,
            "",
            Exit::Code(0),
            "failed: its answer has the member `permissionDecision` twice",
        ),
        (
            PreToolUse,
            Native,
            "null",
            "",
            Exit::Code(0),
            "failed: its answer is not one JSON object but begins with `null`",
        ),
        (
            PreToolUse,
            Claude,
            r#"{"hookSpecificOutput":{"permissionDecision":null}}"#,
            "",
            Exit::Code(0),
            "failed: its answer has `permissionDecision` without a value; leave the member out to have no objection",
        ),
        (
            PreToolUse,
            Claude,
            "checked",
            "",
            Exit::Code(0),
            "failed: its answer is not one JSON object but begins with `checked`",
        ),
        (
            SessionStart,
            Claude,
            "be kind",
            "",
            Exit::Code(0),
            "text be kind",
        ),
        (
            SessionStart,
            Native,
            "be kind",
            "",
            Exit::Code(0),
            "failed: its answer is not one JSON object but begins with `be kind`",
        ),
        (
            PreToolUse,
            Claude,
            "",
            "no way",
            Exit::Code(2),
            "refused no way",
        ),
        (
            PreToolUse,
            Claude,
            "no way",
            "",
            Exit::Code(2),
            "refused no way",
        ),
        (
            PreToolUse,
            Native,
            "{\"permissionDecision\":\"allow\"}",
            "a\nb",
            Exit::Code(1),
            "failed: it ended with exit code 1: b",
        ),
        (
            PreToolUse,
            Native,
            "",
            "",
            Exit::Signal(9),
            "failed: it was killed by signal 9",
        ),
    ];
    for (kind, form, output, errors, exit, wanted) in table {
        assert_eq!(judged(kind, form, output, errors, exit), wanted, "{output}");
    }
}

#[test]
fn variables_are_put_in() {
    let env = BTreeMap::from([("A".to_owned(), "one".to_owned())]);
    let table = [
        ("$A/${A}x$", "one/onex$"),
        ("$B-", "-"),
        ("${A", "${A"),
        ("$$A", "$one"),
    ];
    for (text, wanted) in table {
        assert_eq!(expand(text, &env), wanted, "{text}");
    }
}

#[test]
fn a_plain_text_of_claudes_hooks_is_no_failure_unless_they_decide() {
    use HookKind::{AgentStop, PostToolUse, PreToolUse, SessionStart};
    use PayloadForm::{Claude, Native};
    let table = [
        (PostToolUse, Claude, "formatted", "{}"),
        (AgentStop, Claude, "all done", "{}"),
        (SessionStart, Claude, "be brief", "text be brief"),
        (
            PreToolUse,
            Claude,
            "fine",
            "failed: its answer is not one JSON object but begins with `fine`",
        ),
        (
            PostToolUse,
            Claude,
            "{\"updatedToolOutput\":",
            "failed: its answer is not one JSON object but begins with `{\"updatedToolOutput\":`",
        ),
        (
            PostToolUse,
            Native,
            "formatted",
            "failed: its answer is not one JSON object but begins with `formatted`",
        ),
    ];
    for (kind, form, output, meaning) in table {
        let judged = judged(kind, form, output, "", Exit::Code(0));
        assert_eq!(judged, meaning, "{kind} {output}");
    }
}
