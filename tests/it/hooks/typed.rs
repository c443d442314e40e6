//! Guards of `bash` are asked about what is typed into a shell, too: it runs there.

use loopd_tests::script::Call;
use loopd_tests::{Turn, call};
use serde_json::json;

use super::support::{bash, end_of, with_files};

fn shell() -> Call {
    let line = "bash --norc --noprofile -i";
    let arguments = json!({"command": line, "shellId": "i", "initial_wait": 0.5});
    call("a", "bash", arguments)
}

fn typed() -> Call {
    let arguments = json!({"shellId": "i", "input": "touch made{enter}", "delay": 0.2});
    call("b", "write_bash", arguments)
}

#[tokio::test]
async fn a_guard_of_bash_decides_about_what_is_typed_into_a_shell() {
    // It denies a call whose command makes the file.
    let guard = r#"grep -q '"command":"touch made' && exit 2; exit 0"#;
    let claude = |matcher: &str| {
        let command = json!({"type": "command", "command": guard});
        json!({"PreToolUse": [{"matcher": matcher, "hooks": [command]}]})
    };
    for hooks in [
        json!({"preToolUse": [{"bash": guard, "matcher": "bash"}]}),
        json!({"preToolUse": [{"bash": guard, "matcher": "bash|edit"}]}),
        json!({"permissionRequest": [{"bash": guard, "matcher": "bash"}]}),
        claude("Bash"),
        claude("(Bash|Edit)"),
    ] {
        let is_asked = hooks.get("permissionRequest").is_some();
        let (daemon, mut session) = with_files(
            hooks,
            [
                Turn::user("go").calls([shell()]),
                Turn::any().calls([typed()]),
                Turn::any().calls([bash("c", "echo other")]),
                Turn::any().says("done"),
            ],
        )
        .await;
        if is_asked {
            session.send("go").await;
            super::support::permit(&mut session).await;
        } else {
            session.approve_all().await;
            session.send("go").await;
        }
        assert_eq!(end_of(&mut session, "a").await["success"], true);
        let end = end_of(&mut session, "b").await;
        assert_eq!(end["error"]["code"], "denied", "{end}");
        if is_asked {
            super::support::permit(&mut session).await;
        }
        assert_eq!(end_of(&mut session, "c").await["success"], true);
        session.next("session.idle").await;
        assert!(!daemon.file("made").exists());
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_guard_of_bash_may_change_what_is_typed_into_a_shell() {
    let changed = json!({"modifiedArgs": {"shellId": "i", "input": "touch made{enter}", "delay": 0.2,
                                          "command": "touch other"}});
    let guard = format!("grep -q write_bash && echo '{changed}'; exit 0");
    let (daemon, mut session) = with_files(
        json!({"preToolUse": [{"bash": guard, "matcher": "bash"}]}),
        [
            Turn::user("go").calls([shell()]),
            Turn::any().calls([typed()]),
            Turn::any().calls([bash("c", "until [ -e other ]; do :; done")]),
            Turn::any().says("done"),
        ],
    )
    .await;
    session.approve_all().await;
    session.send("go").await;
    let end = end_of(&mut session, "b").await;
    assert_eq!(end["success"], true, "{end}");
    assert_eq!(end_of(&mut session, "c").await["success"], true);
    session.next("session.idle").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

/// Types a text in pieces, each by a message of its own, under a guard, and returns what came of each piece.
async fn in_pieces(pieces: &[&str], hooks: serde_json::Value) -> (Vec<String>, bool) {
    let mut turns = vec![Turn::user("go").calls([shell()])];
    for (at, piece) in pieces.iter().enumerate() {
        let arguments = json!({"shellId": "i", "input": piece, "delay": 0.2});
        turns.push(Turn::any().calls([call(&format!("p{at}"), "write_bash", arguments)]));
    }
    turns.push(Turn::any().says("done"));
    let (daemon, mut session) = with_files(hooks, turns).await;
    session.approve_all().await;
    session.send("go").await;
    let mut ends = Vec::new();
    loop {
        let event = session
            .next_where("a question, a result or the end", |event| {
                let kinds = [
                    "permission.requested",
                    "tool.execution_complete",
                    "session.idle",
                ];
                kinds.contains(&event["type"].as_str().unwrap_or_default())
            })
            .await;
        let data = &event["data"];
        match event["type"].as_str().unwrap() {
            "permission.requested" => {
                ends.push("asked".to_owned());
                let id = data["requestId"].as_str().unwrap();
                session
                    .decide(id, json!({"kind": "user-not-available"}))
                    .await;
            }
            "tool.execution_complete" if data["toolCallId"] != "a" => {
                let code = data["error"]["code"].as_str().unwrap_or("done");
                ends.push(code.to_owned());
            }
            "tool.execution_complete" => {}
            _ => break,
        }
    }
    let made = daemon.file("made").exists();
    daemon.finish().await;
    (ends, made)
}

#[tokio::test]
async fn a_guard_sees_a_line_that_is_typed_in_pieces_as_a_whole() {
    let guard = r#"grep -q '"command":"touch made' && exit 2; exit 0"#;
    let command = json!({"type": "command", "command": guard});
    let claude = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [command]}]});
    let native = json!({"preToolUse": [{"bash": guard, "matcher": "bash"}]});
    for hooks in [native, claude] {
        for (pieces, expected) in [
            (
                &["tou", "ch ma", "de", "{enter}"][..],
                &["done", "done", "denied", "done"][..],
            ),
            (&["touch", "{space}made{enter}"], &["done", "denied"]),
            (&["touch \\{enter}", "made{enter}"], &["done", "denied"]),
        ] {
            let (ends, made) = in_pieces(pieces, hooks.clone()).await;
            assert_eq!(ends, expected, "{pieces:?} {hooks}");
            assert!(!made, "{pieces:?} {hooks}");
        }
    }
}

#[tokio::test]
async fn a_person_is_asked_about_a_line_that_no_guard_can_be_told() {
    let guard = json!({"preToolUse": [{"bash": "exit 0", "matcher": "bash"}]});
    for (pieces, expected) in [
        (
            &["touch madX", "{backspace}e{enter}"][..],
            &["done", "asked", "denied"][..],
        ),
        (&["{up}{enter}"], &["asked", "denied"]),
        (&["!!{enter}"], &["asked", "denied"]),
        (
            &["touch made", "{ctrl-c}", "true{enter}"],
            &["done", "done", "done"],
        ),
    ] {
        let (ends, made) = in_pieces(pieces, guard.clone()).await;
        assert_eq!(ends, expected, "{pieces:?}");
        assert!(!made, "{pieces:?}");
    }
}
