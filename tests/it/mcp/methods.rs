//! Methods about servers that are not about starting them: resources, user interfaces, logins.

use loopd_tests::{Daemon, Session};
use serde_json::{Value, json};

use super::{server, until};

async fn session(daemon: &Daemon, apps: bool) -> Session {
    let options = json!({"mcpServers": {"box": server("good", &[])}, "requestMcpApps": apps});
    let mut session = daemon.client().create(options).await;
    until(&mut session, "box", "connected").await;
    session
}

#[tokio::test]
async fn resources_are_read_over_the_wire() {
    let daemon = Daemon::playing([]).await;
    let session = session(&daemon, false).await;
    let of = |more: Value| {
        let mut params = json!({"serverName": "box"});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let listed = session
        .call("session.mcp.resources.list", of(json!({})))
        .await;
    assert_eq!(listed["resources"][0]["uri"], "test://a");
    let templates = session
        .call("session.mcp.resources.listTemplates", of(json!({})))
        .await;
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "test://{x}"
    );
    let uri = of(json!({"uri": "test://a"}));
    let read = session
        .call("session.mcp.resources.read", uri.clone())
        .await;
    assert_eq!(read["contents"][0]["text"], "content of test://a");
    let refused = session.refused("session.mcp.apps.readResource", uri).await;
    assert!(refused.message.contains("mcp-apps"), "{refused:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn user_interfaces_use_the_tools_of_their_own_server() {
    let daemon = Daemon::playing([]).await;
    let mut session = session(&daemon, true).await;
    let context = json!({"context": {"theme": "dark"}});
    session
        .call("session.mcp.apps.setHostContext", context.clone())
        .await;
    assert_eq!(
        session
            .call("session.mcp.apps.getHostContext", json!({}))
            .await,
        context
    );
    let diagnosis = session
        .call("session.mcp.apps.diagnose", json!({"serverName": "box"}))
        .await;
    assert_eq!(diagnosis["capability"]["sessionHasMcpApps"], true);
    let own = json!({"serverName": "box", "originServerName": "box"});
    let tools = session.call("session.mcp.apps.listTools", own).await;
    assert!(!tools["tools"].as_array().unwrap().is_empty());
    let mut call = json!({"serverName": "box", "originServerName": "box", "toolName": "echo",
                          "arguments": {"text": "ui"}});
    let called = session
        .call("session.mcp.apps.callTool", call.clone())
        .await;
    assert_eq!(called["content"][0]["text"], "ui");
    let told = session.next("mcp_app.tool_call_complete").await;
    assert_eq!(told["data"]["success"], true);
    call["originServerName"] = json!("other");
    let refused = session.refused("session.mcp.apps.callTool", call).await;
    assert!(refused.message.contains("may not use"), "{refused:?}");
    let app = json!({"serverName": "box", "uri": "test://a"});
    session.call("session.mcp.apps.readResource", app).await;
    daemon.finish().await;
}

#[tokio::test]
async fn logins_are_for_remote_servers() {
    let daemon = Daemon::playing([]).await;
    let none = daemon.client().create(json!({})).await;
    let login = |name: &str| json!({"serverName": name});
    let refused = none.refused("session.mcp.oauth.login", login("x")).await;
    assert!(
        refused.message.contains("MCP host is not available"),
        "{refused:?}"
    );
    let session = session(&daemon, false).await;
    for (name, word) in [("x", "is not configured"), ("box", "not a remote server")] {
        let refused = session
            .refused("session.mcp.oauth.login", login(name))
            .await;
        assert!(refused.message.contains(word), "{refused:?}");
    }
    let late = json!({"requestId": "gone", "result": {"kind": "token", "accessToken": "t"}});
    let answer = session
        .call("session.mcp.oauth.handlePendingRequest", late)
        .await;
    assert_eq!(answer["success"], false);
    let sampling = json!({"requestId": "r", "serverName": "box", "mcpRequestId": 1, "request": {}});
    let sampled = session.call("session.mcp.executeSampling", sampling).await;
    assert_eq!(sampled["action"], "failure");
    let cancelled = session
        .call(
            "session.mcp.cancelSamplingExecution",
            json!({"requestId": "r"}),
        )
        .await;
    assert_eq!(cancelled["cancelled"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_without_servers_says_so() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let named = json!({"serverName": "x"});
    for (method, word) in [
        ("session.mcp.enable", "No MCP host initialized"),
        ("session.mcp.disable", "No MCP host initialized"),
        ("session.mcp.listTools", "not connected"),
        ("session.mcp.stopServer", "not configured"),
        ("loopd.mcpLog", "not configured"),
    ] {
        let refused = session.refused(method, named.clone()).await;
        assert!(refused.message.contains(word), "{method}: {refused:?}");
    }
    let refused = session.refused("session.mcp.reload", json!({})).await;
    assert!(
        refused.message.contains("MCP config reload not available"),
        "{refused:?}"
    );
    daemon.finish().await;
}
