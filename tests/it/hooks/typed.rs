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
