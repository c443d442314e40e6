//! Deny rules hold for what is typed into a shell in pieces, under a client that approves whatever
//! it is asked.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

/// Starts an interactive shell and types these inputs one call after another, each in a turn.
/// `together` are typed by calls of one message.
async fn typing(inputs: &[&str], together: &[&str]) -> Daemon {
    let type_in = |id: &str, input: &str| {
        let arguments = json!({"shellId": "i", "input": input, "delay": 0.2});
        call(id, "write_bash", arguments)
    };
    let start =
        json!({"command": "bash --norc --noprofile -i", "shellId": "i", "initial_wait": 0.5});
    let mut turns = vec![
        Turn::user("start").calls([call("s", "bash", start)]),
        Turn::any().says("ok"),
    ];
    for (at, input) in inputs.iter().enumerate() {
        let id = format!("t{at}");
        turns.push(Turn::user(&id).calls([type_in(&id, input)]));
        turns.push(Turn::any().says("ok"));
    }
    let calls = together.iter().enumerate();
    let calls: Vec<_> = calls
        .map(|(at, input)| type_in(&format!("u{at}"), input))
        .collect();
    if !calls.is_empty() {
        turns.push(Turn::user("together").calls(calls));
        turns.push(Turn::any().says("ok"));
    }
    let daemon = Daemon::playing(turns).await;
    std::fs::write(daemon.file("v"), "kept").unwrap();
    daemon
}

/// Denies `rm` and writing to `prot`, and approves everything else.
async fn deny(daemon: &Daemon, session: &Session) {
    let rules = json!({
        "rules": {
            "approved": [],
            "denied": [
                {"kind": "shell", "argument": "rm"},
                {"kind": "write", "argument": daemon.file("prot")},
            ],
        },
        "approveAllToolPermissionRequests": true,
    });
    session.call("session.permissions.configure", rules).await;
}

/// Sends a prompt, approves what is asked, and returns the results of its calls.
async fn results(session: &mut Session, prompt: &str) -> Vec<Value> {
    session.send(prompt).await;
    let mut results = Vec::new();
    loop {
        let event = session
            .next_where("a request, a result or the end", |event| {
                let kinds = [
                    "permission.requested",
                    "tool.execution_complete",
                    "session.idle",
                ];
                kinds.contains(&event["type"].as_str().unwrap_or_default())
            })
            .await;
        match event["type"].as_str().unwrap() {
            "permission.requested" => {
                let request = event["data"]["requestId"].as_str().unwrap();
                let yes = json!({"kind": "approve-once"});
                assert!(session.decide(request, yes).await);
            }
            "tool.execution_complete" => results.push(event["data"].clone()),
            _ => return results,
        }
    }
}

#[tokio::test]
async fn a_line_that_is_typed_in_pieces_is_compared_as_a_whole() {
    let inputs = [
        ("rm v{enter}", false),
        ("r", true),
        ("m v{enter}", false),
        ("{ctrl-c}", true),
        ("r\\{enter}", true),
        ("m v{enter}", false),
        ("{ctrl-c}", true),
        ("xm v{home}{delete}r{enter}", false),
        ("r{backspace}rm v{enter}", false),
        ("{up}{enter}", false),
        ("xm v{enter}", true),
        ("^x^r{enter}", false),
        ("printf x > pr", true),
        ("ot{enter}", false),
        ("{ctrl-c}", true),
        ("echo typed > free{enter}", true),
    ];
    let texts: Vec<&str> = inputs.iter().map(|(input, _)| *input).collect();
    let daemon = typing(&texts, &["r", "m v{enter}"]).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    deny(&daemon, &session).await;
    results(&mut session, "start").await;
    for (at, (input, is_typed)) in inputs.iter().enumerate() {
        let told = results(&mut session, &format!("t{at}")).await;
        let is_denied = told[0]["error"]["code"] == "denied";
        assert_eq!(is_denied, !is_typed, "{at} {input}: {told:?}");
        assert!(daemon.file("v").exists(), "{input}");
    }
    let told = results(&mut session, "together").await;
    let denied = told
        .iter()
        .filter(|told| told["error"]["code"] == "denied")
        .count();
    assert_eq!(denied, 1, "{told:?}");
    assert!(daemon.file("v").exists());
    assert!(!daemon.file("prot").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn a_line_begun_before_the_rules_is_compared_too() {
    let daemon = typing(&["{up}", "r", "{ctrl-c}", "r", "m v{enter}"], &[]).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    results(&mut session, "start").await;
    let told = results(&mut session, "t0").await;
    assert_eq!(told[0]["success"], true, "{told:?}");
    deny(&daemon, &session).await;
    let told = results(&mut session, "t1").await;
    let why = told[0]["error"]["message"].as_str().unwrap();
    assert!(why.contains("{ctrl-c}"), "{why}");
    for (prompt, is_typed) in [("t2", true), ("t3", true), ("t4", false)] {
        let told = results(&mut session, prompt).await;
        assert_eq!(told[0]["success"], is_typed, "{prompt}: {told:?}");
    }
    assert!(daemon.file("v").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn without_deny_rules_keys_are_typed_as_before() {
    let daemon = typing(&["xm v{home}{delete}r", "{enter}"], &[]).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.approve_all().await;
    for prompt in ["start", "t0", "t1"] {
        let told = results(&mut session, prompt).await;
        assert_eq!(told[0]["success"], true, "{prompt}: {told:?}");
    }
    daemon.finish().await;
}
