//! Secrets stay out of what is stored of calls: their arguments, requests and diffs, large outputs in
//! files, commands of users, and addresses of providers. A call still runs with what the model wrote.

use std::path::Path;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

const SECRET: &str = "hunter2-hunter2-hunter2";

/// Starts a daemon whose launch has the secret in a variable.
async fn playing(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder()
        .script(script)
        .env("DEPLOY_TOKEN", SECRET)
        .start()
        .await
}

/// Everything that a session said and stored, in one text.
async fn all_events(session: &Session) -> String {
    let events = session.events().into_iter();
    let stored = session.messages().await.into_iter();
    let events: Vec<String> = events
        .chain(stored)
        .map(|event| event.to_string())
        .collect();
    events.join("\n")
}

/// The files below a folder that hold the secret.
fn holders(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                if bytes
                    .windows(SECRET.len())
                    .any(|at| at == SECRET.as_bytes())
                {
                    found.push(entry.path().display().to_string());
                }
            }
        }
    }
    found
}

#[tokio::test]
async fn arguments_requests_and_diffs_are_masked_and_the_call_runs_as_written() {
    let daemon = playing([
        Turn::user("go").calls([call(
            "c",
            "create",
            json!({"path": "env.txt", "file_text": format!("TOKEN={SECRET}\n")}),
        )]),
        Turn::results(["Created file"]).calls([call(
            "d",
            "bash",
            json!({"command": format!("printf %s {SECRET} > out.txt"), "description": "Write"}),
        )]),
        Turn::results([""]).says("done"),
    ])
    .await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    session.send("go").await;
    for _ in 0..2 {
        let (request, asked) = session.permission().await;
        assert!(asked.to_string().contains("[redacted]"), "{asked}");
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await;
    }
    session.next("session.idle").await;
    let said = all_events(&session).await;
    assert!(
        said.contains("[redacted]") && !said.contains(SECRET),
        "{said}"
    );
    let sent = format!("{:?}", daemon.script().last_request());
    assert!(!sent.contains(SECRET), "{sent}");
    let text = std::fs::read_to_string(daemon.file("env.txt")).unwrap();
    assert_eq!(text, format!("TOKEN={SECRET}\n"));
    let text = std::fs::read_to_string(daemon.file("out.txt")).unwrap();
    assert_eq!(text, SECRET);
    daemon.finish().await;
}

#[tokio::test]
async fn a_clients_tool_and_the_log_get_masked_arguments() {
    let daemon = playing([
        Turn::user("go").calls([call("c", "deploy", json!({"with": SECRET}))]),
        Turn::results(["ok"]).says("done"),
    ])
    .await;
    let tool = json!({"name": "deploy", "description": "Deploys", "skipPermission": true});
    let mut session = daemon.client().create(json!({"tools": [tool]})).await;
    session.send("go").await;
    let (request, asked) = session.tool_call().await;
    assert!(asked.to_string().contains("[redacted]"), "{asked}");
    assert!(session.give(&request, json!({"result": "ok"})).await);
    session.next("session.idle").await;
    for event in session.messages().await {
        assert!(!event.to_string().contains(SECRET), "{event}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn what_users_run_and_large_outputs_are_masked_in_events_and_files() {
    let daemon = playing([
        Turn::user("go").calls([call(
            "c",
            "bash",
            json!({"command": "yes \"$(cat s.txt)\" | head -n 4000"}),
        )]),
        Turn::results(["Output too large"]).says("done"),
    ])
    .await;
    std::fs::write(daemon.file("s.txt"), format!("line {SECRET} end")).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let ran = session
        .call(
            "session.shell.executeUserRequested",
            json!({"requestId": "r", "command": "yes \"$(cat s.txt)\" | head -n 4000"}),
        )
        .await;
    assert!(ran.to_string().contains("[redacted]"), "{ran}");
    assert!(!ran.to_string().contains(SECRET), "{ran}");
    let short = json!({"requestId": "s", "command": format!("cat s.txt; echo {SECRET}")});
    let ran = session
        .call("session.shell.executeUserRequested", short)
        .await;
    assert!(!ran.to_string().contains(SECRET), "{ran}");
    let said = all_events(&session).await;
    assert!(!said.contains(SECRET), "{said}");
    // Earlier versions of the user's own files are kept as they are.
    let mut holders = holders(&daemon.app.services.home);
    holders.retain(|file| !file.ends_with("/rewind/workspace/pack"));
    assert_eq!(holders, [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_long_result_of_a_clients_tool_is_masked_in_its_file() {
    let daemon = playing([
        Turn::user("go").calls([call("c", "lookup", json!({}))]),
        Turn::results(["Output too large"]).says("done"),
    ])
    .await;
    let tool = json!({"name": "lookup", "description": "Looks up", "skipPermission": true});
    let mut session = daemon.client().create(json!({"tools": [tool]})).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    let long = format!("{SECRET} ").repeat(5_000);
    assert!(session.give(&request, json!({"result": long})).await);
    session.next("session.idle").await;
    assert_eq!(holders(&daemon.app.services.home), [""; 0]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_key_in_the_address_of_a_provider_is_not_stored() {
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", json!({"command": "cat keys.txt"}))]),
        Turn::results(["[redacted] [redacted] 2024-10-21"]).says("done"),
    ])
    .await;
    let url = format!(
        "{}?api_key=query-key-4711&api-version=2024-10-21",
        script.url()
    );
    let url = url.replace("http://", "http://someone:password-0815@");
    let daemon = Daemon::builder().script(script).yolo().start().await;
    std::fs::write(
        daemon.file("keys.txt"),
        "query-key-4711 password-0815 2024-10-21",
    )
    .unwrap();
    let provider = json!({"type": "openai", "baseUrl": url});
    let mut session = daemon.client().create(json!({"provider": provider})).await;
    session.ask("go").await;
    let said = all_events(&session).await;
    assert!(
        !said.contains("key-4711") && !said.contains("word-0815"),
        "{said}"
    );
    let store = &daemon.app.services.store;
    let id = loopd_proto::id::SessionId::from(session.id.as_str());
    let (_, events) = store.load(&id).await.unwrap().unwrap();
    let stored: Vec<&str> = events.iter().map(|event| &*event.json).collect();
    let stored = stored.join("\n");
    assert!(stored.contains("api-version=2024-10-21"), "{stored}");
    assert!(
        !stored.contains("key-4711") && !stored.contains("word-0815"),
        "{stored}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_not_told() {
    let script =
        Script::play([Turn::user("go").fails(400, "no such route: /v1?api_key=query-key-4711")])
            .await;
    let url = format!("{}?api_key=query-key-4711", script.url());
    let daemon = Daemon::builder().script(script).start().await;
    let provider = json!({"type": "openai", "baseUrl": url});
    let mut session = daemon.client().create(json!({"provider": provider})).await;
    session.send("go").await;
    let failure = session.next("model.call_failure").await;
    let message = failure["data"]["errorMessage"].as_str().unwrap();
    assert!(message.contains("[redacted]"), "{message}");
    session.next("session.idle").await;
    let said = all_events(&session).await;
    assert!(!said.contains("key-4711"), "{said}");
    daemon.finish().await;
}

/// What a person is asked about, and what the model reads, hides nothing.
#[tokio::test]
async fn hidden_characters_are_shown_and_an_edit_still_finds_them() {
    let line = "let a\u{202e}b = \"\u{1b}[2J\";";
    let shown = "let a\\u{202e}b = \"\\x1b[2J\";";
    let daemon = playing([
        Turn::user("go").calls([call("v", "view", json!({"path": "a.rs"}))]),
        Turn::results([shown]).calls([call(
            "g",
            "grep",
            json!({"pattern": "let", "output_mode": "content"}),
        )]),
        Turn::results([shown]).calls([call(
            "e",
            "edit",
            json!({"path": "a.rs", "old_str": shown, "new_str": "let a\\u{202e}c = 1;"}),
        )]),
        Turn::results(["updated with changes"]).calls([call(
            "p",
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: a.rs\n@@\n-let a\\u{202e}c = 1;\n+let d = 2;\n*** End Patch\n"}),
        )]),
        Turn::results(["Patch applied"]).calls([call(
            "b",
            "bash",
            json!({"command": "echo a\u{1b}[2K\u{9b}b", "description": "\u{202e}harmless"}),
        )]),
        Turn::results([""]).says("done"),
    ])
    .await;
    std::fs::write(daemon.file("a.rs"), format!("{line}\nlet z = 0;\n")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let rule = json!({"scope": "session", "add": [{"kind": "read", "argument": null}]});
    session.call("session.permissions.modifyRules", rule).await;
    session.send("go").await;
    for number in 0..3 {
        let (request, asked) = session.permission().await;
        let texts = texts_of(&asked);
        for hidden in ['\u{1b}', '\u{9b}', '\u{202e}'] {
            assert!(!texts.contains(hidden), "{number}: {asked}");
        }
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await;
        if number == 0 {
            session.next("tool.execution_complete").await;
            let text = std::fs::read_to_string(daemon.file("a.rs")).unwrap();
            assert_eq!(text, "let a\u{202e}c = 1;\nlet z = 0;\n");
        }
    }
    session.next("session.idle").await;
    let text = std::fs::read_to_string(daemon.file("a.rs")).unwrap();
    assert_eq!(text, "let d = 2;\nlet z = 0;\n");
    daemon.finish().await;
}

#[tokio::test]
async fn what_agents_are_told_is_masked() {
    let told = "use [redacted] twice";
    let again = "and [redacted] again";
    let script = Script::voices([
        (
            "go",
            vec![
                Turn::user("go").calls([call(
                    "t",
                    "task",
                    json!({
                        "agent_type": "explore",
                        "name": "worker",
                        "description": format!("Try {SECRET}"),
                        "prompt": format!("use {SECRET} twice"),
                        "mode": "sync",
                    }),
                )]),
                Turn::results(["once"]).calls([call(
                    "w",
                    "write_agent",
                    json!({"agent_id": "worker", "message": format!("and {SECRET} again")}),
                )]),
                Turn::results(["goes on in the background"]).says("sent"),
                Turn::user("worker").says("heard"),
            ],
        ),
        (
            told,
            vec![
                Turn::user(told).says("once"),
                Turn::user(again).says("twice"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .env("DEPLOY_TOKEN", SECRET)
        .yolo()
        .start()
        .await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("go").await;
    session
        .next_where("heard", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "heard"
        })
        .await;
    session.next("session.idle").await;
    assert!(!all_events(&session).await.contains(SECRET));
    assert_eq!(holders(&daemon.app.services.home), [""; 0]);
    daemon.finish().await;
}

/// All texts of a JSON value.
fn texts_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts_of).collect(),
        Value::Object(members) => members.values().map(texts_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
