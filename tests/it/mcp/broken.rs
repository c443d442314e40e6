//! Servers that misbehave: none of them holds up a session or another server.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{is_alive, listed, noted, server, until};

async fn impatient(turns: impl IntoIterator<Item = Turn>) -> Daemon {
    let script = Script::play(turns).await;
    Daemon::builder()
        .script(script)
        .config("[mcp]\nfirst_wait = 0.2\n")
        .start()
        .await
}

#[tokio::test]
async fn four_broken_servers_of_five_hold_up_nobody_and_leave_nothing_behind() {
    let daemon = impatient([
        Turn::user("go").calls([call("c", "good-echo", json!({"text": "fine"}))]),
        Turn::results(["fine"]).says("ok"),
    ])
    .await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let kinds = ["good", "silent", "half", "dies", "floods"];
    let servers = kinds.map(|kind| {
        let name = if kind == "floods" { "loud" } else { kind };
        (name.to_owned(), server(kind, &["--mark", &mark_text]))
    });
    let servers: serde_json::Map<String, Value> = servers.into_iter().collect();
    let mut session = daemon.client().create(json!({"mcpServers": servers})).await;
    // The session is there before any of them has begun to start.
    assert_eq!(noted(&mark), "");
    session.approve_all().await;
    session.ask("go").await;
    until(&mut session, "dies", "failed").await;
    let error = listed(&session, "dies").await["error"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        error.contains("exit code 3") && error.contains("no key was given"),
        "{error}"
    );
    until(&mut session, "loud", "connected").await;
    for name in ["silent", "half"] {
        assert_eq!(listed(&session, name).await["status"], "pending", "{name}");
    }
    let log = session
        .call("loopd.mcpLog", json!({"serverName": "loud"}))
        .await;
    assert!(log["dropped"].as_u64().unwrap() > 0);
    let bytes: usize = log["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.to_string().len())
        .sum();
    assert!(bytes < 200_000, "{bytes}");
    let pids: Vec<String> = noted(&mark).lines().map(str::to_owned).collect();
    assert!(pids.len() >= 5, "{pids:?}");
    session.destroy().await;
    let left: Vec<&String> = pids.iter().filter(|pid| is_alive(pid)).collect();
    assert!(left.is_empty(), "these are still there: {left:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_no_message_is_skipped_and_counted() {
    let daemon = impatient([
        Turn::user("go").calls([call("c", "box-echo", json!({"text": "clear"}))]),
        Turn::results(["clear"]).says("ok"),
    ])
    .await;
    let servers = json!({"mcpServers": {"box": server("noise", &[])}});
    let mut session = daemon.client().create(servers).await;
    session.approve_all().await;
    until(&mut session, "box", "connected").await;
    session.ask("go").await;
    let noise = listed(&session, "box").await["loopdNoise"]
        .as_u64()
        .unwrap();
    // Three lines before each of the answers: the greeting, the tools, the prompts and the call.
    assert_eq!(noise, 12);
    daemon.finish().await;
}

#[tokio::test]
async fn odd_behaviour_does_not_break_the_connection() {
    for kind in ["long-line", "wrong-id", "pages", "odd-tools"] {
        let daemon = impatient([
            Turn::user("go").calls([call("c", "box-echo", json!({"text": "still here"}))]),
            Turn::results(["still here"]).says("ok"),
        ])
        .await;
        let servers = json!({"mcpServers": {"box": server(kind, &[])}});
        let mut session = daemon.client().create(servers).await;
        session.approve_all().await;
        let now = until(&mut session, "box", "connected").await;
        if kind == "odd-tools" {
            assert_eq!(now["loopdProblems"].as_array().unwrap().len(), 3, "{now}");
        }
        session.ask("go").await;
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_server_that_reads_nothing_fails_by_its_timeout() {
    let daemon = impatient([]).await;
    let mut deaf = server("deaf", &[]);
    // Long enough for the program to start and to answer the greeting on a busy machine.
    deaf["timeout"] = json!(2_000);
    let mut session = daemon
        .client()
        .create(json!({"mcpServers": {"box": deaf}}))
        .await;
    let failed = until(&mut session, "box", "failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("its tools could not be listed"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_asks_without_end_is_not_read_and_holds_up_no_other() {
    let daemon = impatient([
        Turn::user("go").calls([call("c", "good-echo", json!({"text": "fine"}))]),
        Turn::results(["fine"]).says("ok"),
    ])
    .await;
    let servers = json!({"mcpServers": {
        "good": server("good", &[]), "endless": server("asks-without-end", &[])}});
    let mut session = daemon.client().create(servers).await;
    session.approve_all().await;
    session.ask("go").await;
    assert_eq!(listed(&session, "endless").await["status"], "pending");
    session.destroy().await;
    daemon.finish().await;
}

#[tokio::test]
async fn prompts_that_are_never_listed_hold_up_no_tools() {
    let daemon = impatient([
        Turn::user("go").calls([call("c", "box-echo", json!({"text": "here"}))]),
        Turn::results(["here"]).says("ok"),
    ])
    .await;
    let servers = json!({"mcpServers": {"box": server("no-prompts", &[])}});
    let mut session = daemon.client().create(servers).await;
    session.approve_all().await;
    until(&mut session, "box", "connected").await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn of_a_list_of_tools_that_is_too_large_a_part_is_used() {
    let daemon = impatient([Turn::user("go").says("ok")]).await;
    let servers = json!({"mcpServers": {"box": server("huge-tools", &[])}});
    let mut session = daemon.client().create(servers).await;
    let now = until(&mut session, "box", "connected").await;
    let problem = now["loopdProblems"][0].as_str().unwrap();
    assert!(problem.contains("the tools after it are left out"), "{now}");
    session.ask("go").await;
    let request = daemon.script().requests()[0].clone();
    let tools = request.tools().join(" ").matches("box-tool").count();
    assert!((60..300).contains(&tools), "{tools}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_server_started_ends_with_the_session() {
    for kind in ["good", "stays"] {
        let daemon = impatient([
            Turn::user("go").calls([call("f", "box-fork", json!({}))]),
            Turn::any().says("ok"),
        ])
        .await;
        let mark = daemon.file("mark");
        let mark_text = mark.display().to_string();
        let servers = json!({"mcpServers": {"box": server(kind, &["--mark", &mark_text])}});
        let mut session = daemon.client().create(servers).await;
        session.approve_all().await;
        session.ask("go").await;
        let child = daemon.script().last_request().last_results().remove(0);
        assert!(is_alive(&child));
        session.destroy().await;
        assert!(
            !is_alive(&child),
            "{kind}: a child of the server is still there"
        );
        assert!(
            !is_alive(&noted(&mark)),
            "{kind}: the server is still there"
        );
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_by_name() {
    let daemon = impatient([]).await;
    let missing = json!({"command": "no-such-program-anywhere", "args": []});
    let mut session = daemon
        .client()
        .create(json!({"mcpServers": {"box": missing}}))
        .await;
    let failed = until(&mut session, "box", "failed").await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("no-such-program-anywhere"), "{error}");
    daemon.finish().await;
}
