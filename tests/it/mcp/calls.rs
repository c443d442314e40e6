//! Tools of servers: offered, called, cancelled, and what becomes of their results.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

use super::{last_result, listed, noted, server, until};

async fn with(daemon: &Daemon, config: Value) -> Session {
    let servers = json!({"mcpServers": {"box": config}});
    let session = daemon.client().create(servers).await;
    session.approve_all().await;
    session
}

#[tokio::test]
async fn a_tool_of_a_server_is_offered_and_called_and_the_log_names_both() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "box-echo", json!({"text": "hello"}))]),
        Turn::results(["hello"]).says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    let request = daemon.script().requests()[0].clone();
    let tools = request.tools();
    assert!(
        tools.contains(&"box-echo") && tools.contains(&"bash"),
        "{tools:?}"
    );
    let told = request.body["tools"].as_array().unwrap().clone();
    let told = told
        .iter()
        .find(|it| it["function"]["name"] == "box-echo")
        .unwrap();
    let description = told["function"]["description"].as_str().unwrap();
    assert!(description.starts_with("Does echo."), "{description}");
    assert!(description.contains("MCP server `box`"), "{description}");
    let events = session.events();
    let start = events
        .iter()
        .find(|event| event["type"] == "tool.execution_start");
    let start = &start.unwrap()["data"];
    assert_eq!(start["mcpServerName"], "box");
    assert_eq!(start["mcpToolName"], "echo");
    let said = events
        .iter()
        .find(|event| event["type"] == "assistant.message")
        .unwrap();
    assert_eq!(said["data"]["toolRequests"][0]["mcpServerName"], "box");
    assert_eq!(last_result(&session)["success"], true);
    // The context tells the tools of servers apart.
    let method = "session.metadata.getContextAttribution";
    let parts = session.call(method, json!({})).await;
    let categories = &parts["contextAttribution"]["categories"];
    assert!(categories["mcpTools"].as_u64().unwrap() > 20, "{parts}");
    assert!(categories["systemTools"].as_u64().unwrap() > 100, "{parts}");
    daemon.finish().await;
}

#[tokio::test]
async fn results_are_texts_pictures_data_and_failures() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("p", "box-picture", json!({})),
            call("a", "box-add", json!({"a": 1, "b": 2})),
            call("f", "box-fail", json!({})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    let of = |id: &str| {
        let events = session.events();
        let mut events = events.into_iter();
        let found = events.find(|event| {
            event["type"] == "tool.execution_complete" && event["data"]["toolCallId"] == id
        });
        found.unwrap()["data"].clone()
    };
    assert_eq!(of("p")["result"]["content"], "a picture\nembedded");
    assert_eq!(of("f")["error"]["message"], "it did not work");
    assert_eq!(
        of("p")["result"]["binaryResultsForLlm"][0]["mimeType"],
        "image/png"
    );
    assert_eq!(of("a")["result"]["structuredContent"], json!({"total": 3}));
    assert_eq!(of("f")["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn progress_is_shown_while_a_call_runs() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "box-slow", json!({"steps": 3, "ms": 20}))]),
        Turn::results(["done slowly"]).says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.send("go").await;
    let progress = session.next("tool.execution_progress").await;
    assert_eq!(
        progress["data"],
        json!({"toolCallId": "c", "progressMessage": "working (1/3)"})
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_cancels_the_call_on_the_server() {
    let daemon = Daemon::playing([Turn::user("go").calls([call(
        "c",
        "box-slow",
        json!({"steps": 100, "ms": 100}),
    )])])
    .await;
    let seen = daemon.file("seen");
    let seen = seen.display().to_string();
    let mut session = with(&daemon, server("good", &["--seen", &seen])).await;
    session.send("go").await;
    session.next("tool.execution_progress").await;
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    let params = json!({"serverName": "box"});
    // The server answers after it has read the cancellation.
    session.call("session.mcp.listTools", params).await;
    let seen = noted(seen.as_ref());
    assert!(seen.contains("notifications/cancelled"), "{seen}");
    assert_eq!(last_result(&session)["success"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_fails_and_progress_gives_it_more_time() {
    let mut quick = server("good", &[]);
    quick["timeout"] = json!(1500);
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call(
                "s",
                "box-slow",
                json!({"steps": 1, "ms": 60_000, "progress": false}),
            ),
            call("p", "box-slow", json!({"steps": 8, "ms": 300})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = with(&daemon, quick).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert!(
        results[0].contains("answered nothing for 1.5 s"),
        "{results:?}"
    );
    assert_eq!(results[1], "done slowly");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_crashes_in_a_call_comes_back() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "box-crash", json!({}))]),
        Turn::any().calls([call("e", "box-echo", json!({"text": "back"}))]),
        Turn::results(["back"]).says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    let told = daemon.script().requests()[1].last_results();
    assert!(
        told[0].contains("what it did until then is unknown"),
        "{told:?}"
    );
    let failed = session.events().into_iter().find(|event| {
        event["type"] == "session.mcp_server_status_changed" && event["data"]["status"] == "failed"
    });
    let error = failed.unwrap()["data"]["error"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(error.contains("exit code 7: about to crash"), "{error}");
    assert_eq!(listed(&session, "box").await["status"], "connected");
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_after_the_output_ended_waits_for_the_next_process() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "box-close", json!({}))]),
        Turn::any().calls([call("e", "box-echo", json!({"text": "anew"}))]),
        Turn::results(["anew"]).says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    let told = daemon.script().requests()[1].last_results();
    assert!(
        told[0].contains("what it did until then is unknown"),
        "{told:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn secrets_of_a_server_are_masked_wherever_it_repeats_them() {
    let mut config = server("good", &[]);
    config["env"] = json!({"LEAK": "plain-word", "LEAK_TOKEN": "hidden-token-1234"});
    let mut dead = server("dies", &[]);
    dead["env"] = json!({"LEAK_TOKEN": "hidden-token-1234"});
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("s", "box-env", json!({"name": "LEAK_TOKEN"})),
            call("p", "box-env", json!({"name": "LEAK"})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let servers = json!({"mcpServers": {"box": config, "dead": dead}});
    let mut session = daemon.client().create(servers).await;
    session.approve_all().await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert_eq!(results, ["[redacted]", "plain-word"]);
    let failed = until(&mut session, "dead", "failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("no key was given [redacted]"), "{error}");
    let named = json!({"serverName": "dead"});
    let log = session.call("loopd.mcpLog", named.clone()).await;
    let tested = session.call("loopd.mcpTest", named).await;
    let said = format!("{log}{tested}{:?}", session.events());
    assert!(!said.contains("hidden-token"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_sees_its_own_variables_and_not_the_secrets_of_the_launch() {
    let mut config = server("good", &[]);
    config["env"] = json!({"GIVEN": "literal $HOME"});
    let turns = [
        Turn::user("go").calls([
            call("g", "box-env", json!({"name": "GIVEN"})),
            call("e", "box-environment", json!({})),
            call("w", "box-where", json!({})),
        ]),
        Turn::any().says("ok"),
    ];
    let script = loopd_tests::Script::play(turns).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("MY_SECRET_TOKEN", "abcdefgh12345678")
        .env("SOMETHING_ELSE", "x")
        .start()
        .await;
    let mut session = with(&daemon, config).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert_eq!(results[0], "literal $HOME");
    let names: Vec<&str> = results[1].split(' ').collect();
    assert!(
        names.contains(&"PATH") && names.contains(&"GIVEN"),
        "{names:?}"
    );
    assert!(!names.contains(&"MY_SECRET_TOKEN") && !names.contains(&"SOMETHING_ELSE"));
    let work = daemon.work().canonicalize().unwrap();
    assert_eq!(results[2], work.display().to_string());
    daemon.finish().await;
}

#[tokio::test]
async fn secrets_in_a_result_are_masked() {
    let mut config = server("good", &[]);
    config["env"] = json!({"LEAK": "abcdefgh12345678"});
    let turns = [
        Turn::user("go").calls([call("s", "box-secret", json!({}))]),
        Turn::any().says("ok"),
    ];
    let script = loopd_tests::Script::play(turns).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("MY_SECRET_TOKEN", "abcdefgh12345678")
        .start()
        .await;
    let mut session = with(&daemon, config).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert!(!results[0].contains("abcdefgh12345678"), "{results:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn tools_that_come_later_are_offered_with_the_next_request() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("g", "box-grow", json!({"times": 50}))]),
        Turn::results(["grown"]).says("ok"),
        Turn::user("more").calls([call("n", "box-grown", json!({}))]),
        Turn::results(["I am new"]).says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    assert!(!daemon.script().requests()[0].tools().contains(&"box-grown"));
    let changed = |event: &Value| event["type"] == "mcp.tools.list_changed";
    // One report is of the first list.
    while session
        .events()
        .iter()
        .filter(|event| changed(event))
        .count()
        < 2
    {
        session.next("mcp.tools.list_changed").await;
    }
    session.ask("more").await;
    assert!(daemon.script().requests()[2].tools().contains(&"box-grown"));
    daemon.finish().await;
}

#[tokio::test]
async fn resources_are_listed_and_read_by_tools() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("l", "box-list_resources", json!({})),
            call("r", "box-read_resource", json!({"uri": "test://a"})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = with(&daemon, server("good", &[])).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert!(
        results[0].contains("test://a") && results[0].contains("test://{x}"),
        "{results:?}"
    );
    assert_eq!(results[1], "content of test://a");
    daemon.finish().await;
}

#[tokio::test]
async fn long_and_colliding_names_are_told_apart() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let mut session = with(&daemon, server("long-names", &[])).await;
    session.ask("go").await;
    let request = daemon.script().requests()[0].clone();
    let tools: Vec<&str> = request
        .tools()
        .into_iter()
        .filter(|it| it.starts_with("box-"))
        .collect();
    let different: std::collections::BTreeSet<&&str> = tools.iter().collect();
    // Four tools and the two for resources.
    assert_eq!((tools.len(), different.len()), (6, 6), "{tools:?}");
    assert!(tools.iter().all(|name| name.len() <= 64), "{tools:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_call_for_a_server_that_still_starts_waits_for_it() {
    let script = loopd_tests::Script::play([
        Turn::user("go").calls([call("c", "box-echo", json!({"text": "late"}))]),
        Turn::results(["late"]).says("ok"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nfirst_wait = 0.0\n")
        .start()
        .await;
    let mut session = with(&daemon, server("slow-start", &[])).await;
    session.ask("go").await;
    assert!(!daemon.script().requests()[0].tools().contains(&"box-echo"));
    until(&mut session, "box", "connected").await;
    daemon.finish().await;
}

#[tokio::test]
async fn sub_agents_use_the_servers_of_their_parent() {
    let script = loopd_tests::Script::voices([
        (
            "go",
            vec![
                Turn::user("go").calls([call(
                    "t",
                    "task",
                    json!({"description": "d", "prompt": "work hard", "agent_type": "general-purpose"}),
                )]),
                Turn::any().says("ok"),
            ],
        ),
        (
            "work hard",
            vec![
                Turn::any().calls([call("c", "box-echo", json!({"text": "below"}))]),
                Turn::results(["below"]).says("did it"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::builder().script(script).start().await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let mut session = with(&daemon, server("good", &["--mark", &mark_text])).await;
    session.ask("go").await;
    assert_eq!(noted(&mark).lines().count(), 1, "one process per tree");
    daemon.finish().await;
}
