//! Commands on a real terminal: state that lasts, questions that are answered.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

async fn daemon(turns: Vec<Turn>) -> Daemon {
    let script = Script::play(turns).await;
    let daemon = Daemon::builder().script(script).yolo();
    daemon.env("LOOPD_SHELL_BACKEND", "terminal").start().await
}

#[tokio::test]
async fn a_named_shell_keeps_its_state_and_a_fresh_one_has_none() {
    let run = |id: &str, command: &str, shell: Option<&str>| {
        let mut arguments = json!({"command": command});
        if let Some(shell) = shell {
            arguments["shellId"] = shell.into();
        }
        call(id, "bash", arguments)
    };
    let daemon = daemon(vec![
        Turn::user("go").calls([run(
            "a",
            "cd /; MINE=kept; say() { echo said $1; }",
            Some("s"),
        )]),
        Turn::results(["<exited with exit code 0>"]).calls([run("b", "pwd; say $MINE", Some("s"))]),
        Turn::results(["/\nsaid kept\n<exited with exit code 0>"]).calls([run(
            "c",
            "X=1; cd /",
            None,
        )]),
        Turn::results(["<exited with exit code 0>"]).calls([run(
            "d",
            "echo [$X] [$MINE]; test -t 0 && echo tty",
            None,
        )]),
        Turn::results(["[] []\ntty\n<exited with exit code 0>"]).calls([run(
            "e",
            "exit 7",
            Some("s"),
        )]),
        Turn::results(["<exited with exit code 7>"]).calls([run("f", "echo [$MINE]", Some("s"))]),
        Turn::results(["[]\n<exited with exit code 0>"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_waits_for_input_returns_and_is_answered() {
    let command = "read -r -p 'Name? ' name; echo hello $name";
    let answer = json!({"shellId": "1", "input": "Bob{enter}", "delay": 20});
    let daemon = daemon(vec![
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": command, "initial_wait": 600}),
        )]),
        Turn::results(["Name? \n<the command waits for input: a line of text. It goes on in the background as shellId 1."])
            .calls([call("b", "write_bash", answer)]),
        Turn::results(["hello Bob\n<shellId: 1 completed with exit code 0>"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    let waits = session.next("loopd.shell_waiting").await;
    assert_eq!(waits["data"]["shellId"], "1");
    assert_eq!(waits["data"]["command"], command);
    assert_eq!(waits["data"]["shown"], "Name? ");
    session.next("session.idle").await;
    assert_eq!(session.count("system.notification"), 0, "it was read");
    daemon.finish().await;
}

#[tokio::test]
async fn typing_asks_for_permission_with_the_exact_text() {
    let script = Script::play([
        Turn::user("go").calls([call(
            "a",
            "bash",
            json!({"command": "cat", "mode": "async", "shellId": "s"}),
        )]),
        Turn::results(["shellId s"]).calls([call(
            "b",
            "write_bash",
            json!({"shellId": "s", "input": "rm -rf /{enter}"}),
        )]),
    ])
    .await;
    let daemon = Daemon::with(script).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    session
        .decide(&request, json!({"kind": "approve-for-session"}))
        .await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["kind"], "shell");
    assert_eq!(asked["fullCommandText"], "rm -rf /{enter}");
    assert_eq!(asked["canOfferSessionApproval"], false);
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    let cancelled = session
        .call("session.tasks.cancel", json!({"id": "s"}))
        .await;
    assert_eq!(cancelled, json!({"cancelled": true}));
    daemon.finish().await;
}
