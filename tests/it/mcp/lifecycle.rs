//! When servers start and end, and what is known of them before they are there.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{listed, noted, server, until};

#[tokio::test]
async fn nothing_starts_before_it_is_needed() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let servers = json!({"mcpServers": {"box": server("good", &["--mark", &mark_text])}});
    let mut session = daemon.client().create(servers).await;
    session.call("session.metadata.snapshot", json!({})).await;
    let running = session
        .call("session.mcp.isServerRunning", json!({"serverName": "box"}))
        .await;
    assert_eq!(running["running"], false);
    assert_eq!(noted(&mark), "");
    session.ask("go").await;
    until(&mut session, "box", "connected").await;
    assert_eq!(noted(&mark).lines().count(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn the_tools_of_last_time_are_offered_before_the_server_is_there() {
    let script = Script::play([
        Turn::user("first").says("ok"),
        Turn::user("second").says("ok"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nfirst_wait = 0.0\n")
        .start()
        .await;
    let config = json!({"mcpServers": {"box": server("slow-start", &[])}});
    let mut session = daemon.client().create(config.clone()).await;
    session.ask("first").await;
    assert!(!daemon.script().requests()[0].tools().contains(&"box-echo"));
    until(&mut session, "box", "connected").await;
    session.destroy().await;
    let mut session = daemon.client().create(config).await;
    session.ask("second").await;
    assert!(daemon.script().requests()[1].tools().contains(&"box-echo"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_did_not_come_in_time_is_waited_for_once() {
    let script = Script::play([
        Turn::user("first").says("ok"),
        Turn::user("second").says("ok"),
    ])
    .await;
    // Nothing in this test lasts so long.
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nfirst_wait = 60.0\n")
        .start()
        .await;
    let config = json!({"mcpServers": {"box": server("silent", &[])}});
    let mut session = daemon.client().create(config.clone()).await;
    session.send("first").await;
    session.next("session.mcp_servers_loaded").await;
    let method = "session.mcp.moveLoadingToBackground";
    while session.call(method, json!({})).await["movedToBackground"] == false {
        tokio::task::yield_now().await;
    }
    session.next("session.idle").await;
    let mut session = daemon.client().create(config).await;
    session.ask("second").await;
    assert_eq!(listed(&session, "box").await["status"], "pending");
    daemon.finish().await;
}

#[tokio::test]
async fn a_server_that_nobody_uses_is_ended_and_starts_again_when_it_is_called() {
    let script = Script::play([
        Turn::user("go").calls([call("c", "box-echo", json!({"text": "again"}))]),
        Turn::results(["again"]).says("ok"),
    ])
    .await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nidle_timeout = 1\n")
        .start()
        .await;
    let mark = daemon.file("mark");
    let mark_text = mark.display().to_string();
    let servers = json!({"mcpServers": {"box": server("good", &["--mark", &mark_text])}});
    let mut session = daemon.client().create(servers).await;
    session.approve_all().await;
    until(&mut session, "box", "connected").await;
    session
        .next_where("the server is ended", |event| {
            event["type"] == "session.mcp_server_status_changed"
                && event["data"]["status"] == "pending"
        })
        .await;
    session.ask("go").await;
    assert_eq!(noted(&mark).lines().count(), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn servers_are_stopped_started_switched_and_reloaded() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let servers = json!({"mcpServers": {"box": server("good", &[])}});
    let mut session = daemon.client().create(servers).await;
    let named = json!({"serverName": "box"});
    until(&mut session, "box", "connected").await;
    let tools = session.call("session.mcp.listTools", named.clone()).await;
    assert!(
        tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "echo")
    );
    session.call("session.mcp.stopServer", named.clone()).await;
    until(&mut session, "box", "stopped").await;
    let refused = session
        .refused("session.mcp.listTools", named.clone())
        .await;
    assert!(refused.message.contains("not connected"), "{refused:?}");
    session.call("session.mcp.startServer", named.clone()).await;
    until(&mut session, "box", "connected").await;
    session
        .call("session.mcp.restartServer", named.clone())
        .await;
    session.call("session.mcp.reload", json!({})).await;
    until(&mut session, "box", "connected").await;
    session.call("session.mcp.disable", named.clone()).await;
    assert_eq!(listed(&session, "box").await["status"], "disabled");
    session.ask("go").await;
    let tools = daemon.script().requests()[0].tools().join(" ");
    assert!(!tools.contains("box-"), "{tools}");
    session.call("session.mcp.enable", named).await;
    until(&mut session, "box", "connected").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_brings_a_server_for_a_session() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let params = json!({"serverName": "later", "config": server("good", &[])});
    session.call("session.mcp.startServer", params).await;
    until(&mut session, "later", "connected").await;
    let wrong = json!({"serverName": "x", "config": {"args": []}});
    let refused = session.refused("session.mcp.startServer", wrong).await;
    assert!(
        refused.message.contains("neither a `command` nor a `url`"),
        "{refused:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_switched_off_server_stays_off_when_the_session_is_opened_again() {
    let mut daemon = Daemon::playing([]).await;
    let config = json!({"mcpServers": {"box": server("good", &[])}});
    let client = daemon.client();
    let session = client.create(config.clone()).await;
    let id = session.id.clone();
    listed(&session, "box").await;
    session
        .call("session.mcp.disable", json!({"serverName": "box"}))
        .await;
    daemon.restart().await;
    let session = daemon.client().resume(&id, config).await;
    assert_eq!(listed(&session, "box").await["status"], "disabled");
    daemon.finish().await;
}

#[tokio::test]
async fn the_configuration_can_turn_servers_off() {
    let script = Script::play([Turn::user("go").says("ok")]).await;
    let daemon = Daemon::builder()
        .script(script)
        .config("[mcp]\nenabled = false\n")
        .start()
        .await;
    let servers = json!({"mcpServers": {"box": server("good", &[])}});
    let mut session = daemon.client().create(servers).await;
    session.ask("go").await;
    assert_eq!(listed(&session, "box").await, json!(null));
    assert!(
        !daemon.script().requests()[0]
            .tools()
            .join(" ")
            .contains("box-")
    );
    daemon.finish().await;
}
