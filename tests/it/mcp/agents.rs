//! Servers that agents bring, and servers that they cannot work without.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{is_alive, last_result, listed, noted, server, until};

/// Lets a session start the agent `worker`, which uses a server of its own.
async fn script(server: &str) -> Script {
    let tool = format!("{server}-echo");
    Script::voices([
        ("go", starts()),
        (
            "work hard",
            vec![
                Turn::any().calls([call("c", &tool, json!({"text": "below"}))]),
                Turn::results(["below"]).says("did it"),
            ],
        ),
    ])
    .await
}

/// The model starts the agent `worker`.
fn starts() -> Vec<Turn> {
    let order = json!({"description": "d", "prompt": "work hard", "agent_type": "worker"});
    let task = call("t", "task", order);
    vec![Turn::user("go").calls([task]), Turn::any().says("ok")]
}

fn options(servers: &Value) -> Value {
    json!({"customAgents": [{"name": "worker", "prompt": "Work.", "mcpServers": servers}]})
}

#[tokio::test]
async fn a_server_of_an_agent_lives_with_the_agent() {
    let daemon = Daemon::builder().script(script("own").await).start().await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let own = json!({"own": server("good", &["--mark", &mark_text])});
    let mut session = daemon.client().create(options(&own)).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(
        last_result(&session)["result"]["content"]
            .as_str()
            .unwrap()
            .contains("did it")
    );
    let started = noted(&mark);
    assert_eq!(started.lines().count(), 1, "{started}");
    assert!(!is_alive(started.trim()), "it ends with the agent");
    let requests = daemon.script().requests();
    let above = requests
        .iter()
        .filter(|it| it.first_user_text().contains("go"));
    for request in above {
        assert!(
            !request.tools().contains(&"own-echo"),
            "the session above does not have it"
        );
    }
    assert_eq!(listed(&session, "own").await, Value::Null);
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_of_an_agent_stands_before_one_of_the_session_with_its_name() {
    let daemon = Daemon::builder().script(script("box").await).start().await;
    let (above, below) = (daemon.file("above"), daemon.file("below"));
    let mark = |file: &std::path::Path| server("good", &["--seen", &file.display().to_string()]);
    let mut options = options(&json!({"box": mark(&below)}));
    options["mcpServers"] = json!({"box": mark(&above)});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    session.ask("go").await;
    assert!(noted(&below).contains("tools/call"));
    assert!(!noted(&above).contains("tools/call"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_selected_agent_brings_its_servers_as_long_as_it_is_selected() {
    let turns = ["one", "two", "three"].map(|text| Turn::user(text).says("ok"));
    let daemon = Daemon::playing(turns).await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let own = json!({"own": server("good", &["--mark", &mark_text])});
    let mut session = daemon.client().create(options(&own)).await;
    session.ask("one").await;
    let worker = json!({"name": "worker"});
    session.call("session.agent.select", worker).await;
    session.ask("two").await;
    session.call("session.agent.deselect", json!({})).await;
    session.ask("three").await;
    let offered: Vec<bool> = daemon
        .script()
        .requests()
        .iter()
        .map(|request| request.tools().contains(&"own-echo"))
        .collect();
    assert_eq!(offered, [false, true, false]);
    assert!(
        !is_alive(noted(&mark).trim()),
        "it ends when the agent is left"
    );
    daemon.finish().await;
}

fn file(required: &str) -> String {
    format!("---\nname: worker\ndescription: Works.\nrequiredMcpServers: {required}\n---\nWork.\n")
}

/// Starts a daemon whose folder has an agent that needs these servers.
async fn needing(required: &str, wait: f64, turns: Script) -> Daemon {
    let daemon = Daemon::builder()
        .script(turns)
        .config(&format!(
            "[mcp]\nrequired_wait = {wait:?}\nfirst_wait = 0.0\n"
        ))
        .start()
        .await;
    let folder = daemon.work().join(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("worker.md"), file(required)).unwrap();
    daemon
}

#[tokio::test]
async fn servers_that_an_agent_needs_are_waited_for_and_named_when_they_do_not_come() {
    for (config, required, wait, why) in [
        (
            server("silent", &[]),
            "box",
            0.3,
            "did not start within 0.3 s",
        ),
        (server("dies", &[]), "box", 20.0, "no key was given"),
        (
            server("good", &[]),
            "docs",
            20.0,
            "the session has only box",
        ),
    ] {
        let daemon = needing(required, wait, Script::play(starts()).await).await;
        let options = json!({"mcpServers": {"box": config}, "enableConfigDiscovery": true});
        let mut session = daemon.client().create(options).await;
        let trust = "session.permissions.folderTrust.addTrusted";
        session.call(trust, json!({"path": daemon.work()})).await;
        session.ask("go").await;
        let result = last_result(&session).to_string();
        let named = format!("needs the MCP server `{required}`");
        assert!(result.contains(&named) && result.contains(why), "{result}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn an_agent_whose_servers_are_there_works_and_the_wait_is_as_long_as_needed() {
    let script = script("box").await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nfirst_wait = 0.0\n")
        .start()
        .await;
    let folder = daemon.work().join(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("worker.md"), file("BOX")).unwrap();
    let slow = server("slow-start", &[]);
    let options = json!({"mcpServers": {"box": slow}, "enableConfigDiscovery": true});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    let trust = "session.permissions.folderTrust.addTrusted";
    session.call(trust, json!({"path": daemon.work()})).await;
    session.ask("go").await;
    assert!(
        last_result(&session)["result"]["content"]
            .as_str()
            .unwrap()
            .contains("did it")
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_selected_agent_without_a_server_that_it_needs_fails_by_name() {
    let daemon = needing("docs", 20.0, Script::play([]).await).await;
    let options = json!({"enableConfigDiscovery": true});
    let mut session = daemon.client().create(options).await;
    let trust = "session.permissions.folderTrust.addTrusted";
    session.call(trust, json!({"path": daemon.work()})).await;
    let worker = json!({"name": "worker"});
    session.call("session.agent.select", worker).await;
    session.send("go").await;
    let error = session.next("session.error").await;
    let message = error["data"]["message"].as_str().unwrap();
    assert!(message.contains("needs the MCP server `docs`"), "{message}");
    assert!(message.contains("the session has no servers"), "{message}");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_a_client_starts_first_has_the_servers_of_its_session() {
    let echo = call("c", "box-echo", json!({"text": "below"}));
    let works = vec![
        Turn::any().calls([echo]),
        Turn::results(["below"]).says("did it"),
    ];
    let told = vec![Turn::any().says("heard of it")];
    let script = Script::voices([("work hard", works), ("<system_notification>", told)]).await;
    let daemon = Daemon::builder().script(script).start().await;
    let options = json!({"mcpServers": {"box": server("good", &[])}});
    let mut session = daemon.client().create(options).await;
    session.approve_all().await;
    let order = json!({"agentType": "general-purpose", "prompt": "work hard", "name": "a",
                       "description": "d"});
    session.call("session.tasks.startAgent", order).await;
    session
        .next_where("the tool of the server answers", |event| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == "c"
        })
        .await;
    until(&mut session, "box", "connected").await;
    session
        .next_where("the session has heard of its end", |event| {
            event["type"] == "assistant.message" && event["data"]["content"] == "heard of it"
        })
        .await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_changed_script_costs_the_agent_of_a_project_its_trust() {
    let daemon = Daemon::playing([]).await;
    let script = daemon.file("run.py");
    std::fs::write(&script, "print()\n").unwrap();
    let folder = daemon.work().join(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: worker\ndescription: Works.\nmcpServers:\n  own:\n    command: python3\n    \
                args: [run.py]\n---\nWork.\n";
    std::fs::write(folder.join("worker.md"), text).unwrap();
    let client = daemon.client();
    let options = json!({"enableConfigDiscovery": true});
    let session = client.create(options).await;
    let servers = async || {
        let found = session.call("session.agent.reload", json!({})).await;
        found["agents"][0]["mcpServers"].clone()
    };
    assert_eq!(servers().await, Value::Null);
    let shown = json!({"path": daemon.work()});
    let shown = client.call("loopd.trust.show", shown).await;
    let params = json!({"path": daemon.work(), "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
    assert!(servers().await["own"].is_object());
    std::fs::write(&script, "print('changed')\n").unwrap();
    assert_eq!(servers().await, Value::Null);
    daemon.finish().await;
}
