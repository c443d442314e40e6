//! Secrets stay out of what tools say: towards the model, the clients and the log. Also who keeps
//! the files of sessions.

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

const SECRET: &str = "hunter2-hunter2-hunter2";

async fn playing(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder().script(script).yolo().start().await
}

/// Everything that a session said and stored, and what the model was sent, in one text.
async fn all_that_was_said(daemon: &Daemon, session: &Session) -> String {
    let events = session.events().into_iter().filter(|event| {
        // The model's own words, and the command it chose, are not a tool's.
        !matches!(
            event["type"].as_str(),
            Some("assistant.message" | "tool.execution_start" | "permission.requested")
        )
    });
    let stored = session.messages().await.into_iter().filter(|event| {
        !matches!(
            event["type"].as_str(),
            Some("assistant.message" | "tool.execution_start" | "permission.requested")
        )
    });
    let results = daemon.script().last_request().last_results();
    let said: Vec<String> = events
        .chain(stored)
        .map(|event| event.to_string())
        .collect();
    said.join("\n") + &results.join("\n")
}

#[tokio::test]
async fn a_value_is_masked_from_the_moment_it_is_named() {
    let daemon = playing([
        Turn::user("show").calls([call(
            "c",
            "bash",
            json!({"command": "cat secret.txt; echo; echo tail"}),
        )]),
        Turn::results(["before [redacted] after\ntail"]).says("ok"),
    ])
    .await;
    std::fs::write(daemon.file("secret.txt"), format!("before {SECRET} after")).unwrap();
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    let values = json!({"values": [SECRET, "", "ab"]});
    assert_eq!(
        client.call("secrets.addFilterValues", values).await,
        json!({"ok": true})
    );
    session.ask("show").await;
    let said = all_that_was_said(&daemon, &session).await;
    assert!(said.contains("[redacted]"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_value_that_comes_in_pieces_is_masked_in_partial_output_too() {
    let command =
        "printf 'go hunter2-'; sleep 0.2; printf 'hunter2-hun'; sleep 0.2; printf 'ter2 end'";
    let daemon = playing([
        Turn::user("show").calls([call("c", "bash", json!({"command": command}))]),
        Turn::results(["go [redacted] end"]).says("ok"),
    ])
    .await;
    let client = daemon.client();
    let values = json!({"values": [SECRET]});
    client.call("secrets.addFilterValues", values).await;
    let mut session = client.create(json!({})).await;
    session.ask("show").await;
    let partial: String = session
        .events()
        .iter()
        .filter(|event| event["type"] == "tool.execution_partial_result")
        .map(|event| event["data"]["partialOutput"].as_str().unwrap())
        .collect();
    assert!(!partial.contains("hunter2"), "{partial}");
    assert!(partial.starts_with("go "), "{partial:?}");
    let said = all_that_was_said(&daemon, &session).await;
    assert!(!said.contains("hunter2"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_clients_own_tool_returns_is_masked_as_well() {
    let daemon = playing([
        Turn::user("look").calls([call("c", "lookup", json!({}))]),
        Turn::results(["it is [redacted]."]).says("ok"),
    ])
    .await;
    let client = daemon.client();
    let values = json!({"values": [SECRET]});
    client.call("secrets.addFilterValues", values).await;
    let tool = json!({"name": "lookup", "description": "Looks up", "skipPermission": true});
    let mut session = client.create(json!({"tools": [tool]})).await;
    session.send("look").await;
    let (request, _) = session.tool_call().await;
    let answer = json!({"result": format!("it is {SECRET}.")});
    assert!(session.give(&request, answer).await);
    session.next("session.idle").await;
    let said = all_that_was_said(&daemon, &session).await;
    assert!(!said.contains("hunter2"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn the_keys_of_the_session_are_masked_without_being_named() {
    let script = Script::play([
        Turn::user("show").calls([call("c", "bash", json!({"command": "cat keys.txt"}))]),
        Turn::results(["[redacted] [redacted] 100000 true"]).says("ok"),
    ])
    .await;
    let url = script.url().to_owned();
    let daemon = Daemon::builder()
        .script(script)
        .env("DEPLOY_TOKEN", "deploy-token-4711")
        .env("MAX_TOKENS", "100000")
        .env("USE_SECRETS", "true")
        .yolo()
        .start()
        .await;
    let keys = "deploy-token-4711 provider-key-0815 100000 true";
    std::fs::write(daemon.file("keys.txt"), keys).unwrap();
    let provider = json!({"type": "openai", "baseUrl": url, "apiKey": "provider-key-0815"});
    let client = daemon.client();
    let mut session = client.create(json!({"provider": provider})).await;
    session.ask("show").await;
    let said = all_that_was_said(&daemon, &session).await;
    assert!(
        !said.contains("token-4711") && !said.contains("key-0815"),
        "{said}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_key_that_the_configuration_names_is_masked_whatever_its_variable_is_called() {
    let script = Script::play([
        Turn::user("show").calls([call(
            "c",
            "bash",
            json!({"command": "cat keys.txt; echo; echo \"<$MKEY>\""}),
        )]),
        Turn::results(["[redacted]\n<>"]).says("ok"),
    ])
    .await;
    let url = script.url().to_owned();
    let daemon = Daemon::builder()
        .script(script)
        .env("MKEY", "kkkk-kkkk")
        .config(&format!(
            "[provider.m]\ntype = \"openai\"\nbase_url = \"{url}/v1\"\napi_key_env = \"MKEY\"\n"
        ))
        .yolo()
        .start()
        .await;
    std::fs::write(daemon.file("keys.txt"), "kkkk-kkkk").unwrap();
    let mut session = daemon.client().create(json!({"model": "m/scripted"})).await;
    session.ask("show").await;
    let said = all_that_was_said(&daemon, &session).await;
    assert!(!said.contains("kkkk"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn another_launchs_values_are_not_masked() {
    let daemon = playing([
        Turn::user("show").calls([call(
            "c",
            "bash",
            json!({"command": "echo hunter2-hunter2-hunter2"}),
        )]),
        Turn::results([SECRET]).says("ok"),
    ])
    .await;
    let other = daemon.client_of(daemon.new_launch());
    let values = json!({"values": [SECRET]});
    other.call("secrets.addFilterValues", values).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("show").await;
    daemon.finish().await;
}

#[tokio::test]
async fn more_values_than_can_be_searched_for_are_refused_without_naming_them() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let many: Vec<String> = (0..2_000)
        .map(|number| format!("{SECRET}-{number}"))
        .collect();
    for wrong in [json!({"values": many}), json!({"values": [1]}), json!({})] {
        let error = client.refused("secrets.addFilterValues", wrong).await;
        assert_eq!(error.code, -32602, "{error}");
        assert!(!error.message.contains("hunter2"), "{error}");
    }
    daemon.finish().await;
}

fn files() -> Value {
    json!({"initialCwd": "/", "sessionStatePath": "/state", "conventions": "posix", "capabilities": {"sqlite": true}})
}

#[tokio::test]
async fn a_client_that_keeps_session_files_is_told_that_it_cannot_yet() {
    let daemon = Daemon::playing([]).await;
    let stored = daemon.client().create(json!({})).await;
    let launch = daemon.new_launch();
    let client = daemon.client_of(launch.clone());
    let set = client.call("sessionFs.setProvider", files()).await;
    assert_eq!(set, json!({"success": true}));
    // Once more by the same connection is no change.
    client.call("sessionFs.setProvider", files()).await;
    let resume = json!({"sessionId": stored.id});
    for (method, params) in [("session.create", json!({})), ("session.resume", resume)] {
        let error = client.refused(method, params).await;
        assert!(
            error
                .message
                .contains("kept by the client are not supported"),
            "{error}"
        );
    }
    let second = daemon.client_of(launch);
    let error = second.refused("sessionFs.setProvider", files()).await;
    assert!(error.message.contains("Another client"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn session_files_are_settled_before_the_first_session() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let error = client.refused("sessionFs.setProvider", files()).await;
    assert!(error.message.contains("before the first one"), "{error}");
    session.call("session.mode.get", json!({})).await;
    let mut wrong = files();
    wrong["conventions"] = json!("vms");
    let mut empty = files();
    empty["initialCwd"] = json!("");
    for wrong in [wrong, empty] {
        let error = client.refused("sessionFs.setProvider", wrong).await;
        assert_eq!(error.code, -32602, "{error}");
    }
    daemon.finish().await;
}
