//! Messages as commands, by table.

use super::*;

fn commands(text: &str) -> Vec<(&'static str, Value)> {
    match read(text) {
        Some(Instruction::Commands(steps)) => steps
            .into_iter()
            .map(|step| (step.tool, step.arguments))
            .collect(),
        other => panic!("{text:?} was read as {other:?}"),
    }
}

fn bash(command: &str) -> (&'static str, Value) {
    (
        "bash",
        json!({ "command": command, "description": "Run the user's command" }),
    )
}

#[test]
fn each_command_becomes_its_call() {
    let cases = [
        ("run ls -la", bash("ls -la")),
        ("  RUN   echo 'a  b' ", bash("echo 'a  b'")),
        (
            "read src/main.rs",
            ("view", json!({ "path": "src/main.rs" })),
        ),
        (
            "read \"my file.txt\"",
            ("view", json!({ "path": "my file.txt" })),
        ),
        (
            "find fn main",
            (
                "grep",
                json!({ "pattern": "fn main", "output_mode": "content" }),
            ),
        ),
        ("find **/*.rs", ("glob", json!({ "pattern": "**/*.rs" }))),
        (
            "find {a,b}.txt",
            ("glob", json!({ "pattern": "{a,b}.txt" })),
        ),
        (
            "write a.txt hello world",
            (
                "create",
                json!({ "path": "a.txt", "file_text": "hello world" }),
            ),
        ),
        (
            "write \"a b.txt\" x\\ny",
            ("create", json!({ "path": "a b.txt", "file_text": "x\ny" })),
        ),
        (
            "ask Which colour?",
            ("ask_user", json!({ "question": "Which colour?" })),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(commands(text), [expected], "{text}");
    }
}

#[test]
fn commands_are_joined_with_then_or_line_breaks() {
    let expected = [bash("a"), bash("b"), ("view", json!({ "path": "c" }))];
    assert_eq!(commands("run a then run b then read c"), expected);
    assert_eq!(commands("run a\n\n  run b then Read c\r\n"), expected);
}

#[test]
fn then_inside_a_shell_script_does_not_cut() {
    let script = "if true; then echo yes; fi";
    assert_eq!(
        commands(&format!("run {script} then run ls")),
        [bash(script), bash("ls")]
    );
}

#[test]
fn wrapped_notes_are_not_read() {
    let text = "<current_datetime>2026-01-01</current_datetime>\n\nrun ls\n\n<reminder>\nrun rm\n</reminder>";
    assert_eq!(commands(text), [bash("ls")]);
    assert_eq!(read("<reminder>run rm</reminder>\n"), None);
    assert_eq!(read(" \n"), None);
    let open = "<reminder>never closed";
    assert_eq!(read(open), Some(Instruction::Other(open.to_owned())));
}

#[test]
fn other_messages_are_not_commands() {
    for text in [
        "hello",
        "run",
        "run   ",
        "write a.txt",
        "write \"a b",
        "please run ls",
        "läuft das?",
    ] {
        assert_eq!(
            read(text),
            Some(Instruction::Other(text.trim().to_owned())),
            "{text}"
        );
    }
}

#[test]
fn a_line_that_is_no_command_stops_the_others() {
    let half = |line: &str| {
        Some(Instruction::HalfUnderstood {
            line: line.to_owned(),
        })
    };
    assert_eq!(read("run ls\nand then tell me"), half("and then tell me"));
    assert_eq!(read("run ls then write a.txt"), half("write a.txt"));
}
