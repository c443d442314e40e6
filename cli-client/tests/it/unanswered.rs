//! Questions that are left unanswered, runs that a hook ends, and a stdout that nobody reads: none of them
//! ends as if all was well.

use std::process::Stdio;

use crate::home::{Home, RunOutput};
use crate::terminal::OnTerminal;

const END_OF_INPUT: &str = "\u{4}";

fn write_hooks(home: &Home, kind: &str, answer: &str) {
    let folder = home.path("home/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let answer = answer.replace('"', "\\\"");
    let text = format!(r#"{{"version":1,"hooks":{{"{kind}":[{{"bash":"echo '{answer}'"}}]}}}}"#);
    std::fs::write(folder.join("guard.json"), text).unwrap();
}

#[test]
fn a_permission_that_is_not_answered_is_denied_and_the_run_says_so() {
    let home = Home::new();
    let mut run = OnTerminal::start(home.command(&["run touch made"]));
    run.read_until("[y/a/n] ");
    run.types(END_OF_INPUT);
    run.read_until("was denied: the question was not answered");
    assert_eq!(run.ends(), Some(3));
    assert!(!home.path("made").exists());
}

#[test]
fn a_question_to_a_person_that_is_not_answered_stays_open() {
    let home = Home::new();
    let mut run = OnTerminal::start(home.command(&["ask which colour?"]));
    run.read_until("which colour?\u{1b}");
    run.read_until("  > ");
    run.types(END_OF_INPUT);
    run.read_until("a question waits for an answer; to give it: loop attach ");
    assert_eq!(run.ends(), Some(130));
    let id = home.last_session();
    let mut attach = OnTerminal::start(home.command(&["attach", &id]));
    attach.read_until("which colour?\u{1b}");
    attach.read_until("  > ");
    attach.types("blue\n");
    attach.read_until("Done.");
    crate::home::interrupt(attach.child());
    assert_eq!(attach.ends(), Some(0));
}

#[test]
fn a_conversation_that_is_left_at_a_question_says_so() {
    let home = Home::new();
    let mut chat = OnTerminal::start(home.command(&[]));
    chat.read_until("> ");
    chat.types("ask which colour?\n");
    chat.read_until("which colour?\u{1b}");
    chat.read_until("  > ");
    chat.types(END_OF_INPUT);
    chat.read_until("a question waits for an answer; to give it: loop attach ");
    assert_eq!(chat.ends(), Some(130));
}

#[test]
fn a_run_that_a_hook_ends_is_denied() {
    for (kind, answer, told) in [
        (
            "permissionRequest",
            r#"{"behavior": "deny", "interrupt": true, "message": "never"}"#,
            "never",
        ),
        (
            "preToolUse",
            r#"{"continue": false, "stopReason": "not today"}"#,
            "not today",
        ),
        (
            "postToolUse",
            r#"{"continue": false, "stopReason": "seen enough"}"#,
            "seen enough",
        ),
    ] {
        let home = Home::new();
        write_hooks(&home, kind, answer);
        let mut args = vec!["-p", "run touch made"];
        if kind == "postToolUse" {
            args.push("--yolo");
        }
        let said = home.run(&args);
        assert_eq!(said.code, 3, "{kind}: {said:?}");
        for part in [told, "guard.json:1"] {
            assert!(said.err.contains(part), "{kind}: {said:?}");
        }
        assert_eq!(home.path("made").exists(), kind == "postToolUse");
    }
}

#[test]
fn a_call_that_a_hook_denies_ends_no_run() {
    let home = Home::new();
    write_hooks(&home, "preToolUse", r#"{"permissionDecision": "deny"}"#);
    let said = home.run(&["-p", "run touch made"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_hook_that_wants_a_person_is_named_with_its_reason_where_nobody_is() {
    let home = Home::new();
    let answer =
        r#"{"permissionDecision": "ask", "permissionDecisionReason": "touches production"}"#;
    write_hooks(&home, "preToolUse", answer);
    let said = home.run(&["--yolo", "-p", "run touch made"]);
    assert_eq!(said.code, 3, "{said:?}");
    for part in [
        "preToolUse hook",
        "guard.json:1",
        "touches production",
        "at a terminal",
    ] {
        assert!(said.err.contains(part), "{said:?}");
    }
    assert!(!home.path("made").exists());
}

#[test]
fn a_stdout_that_nobody_reads_stops_the_run() {
    let home = Home::new();
    let mut child = home
        .command(&["--yolo", "run echo one; echo two"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said: RunOutput = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("nobody reads the output any more"),
        "{said:?}"
    );
}
