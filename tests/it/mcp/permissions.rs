//! Who may call tools of servers: rules, plan mode, hooks.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

use super::{last_result, server, until};

fn options() -> Value {
    json!({"mcpServers": {"box": server("good", &[])}, "requestPermission": true})
}

fn echo(id: &str) -> Turn {
    Turn::any().calls([call(id, "box-echo", json!({"text": "x"}))])
}

#[tokio::test]
async fn a_person_is_asked_about_the_server_and_the_tool() {
    let daemon = Daemon::playing([
        echo("c"),
        Turn::results(["x"]).calls([call("d", "box-add", json!({"a": 1, "b": 1}))]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(options()).await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(
        asked,
        json!({"kind": "mcp", "toolCallId": "c", "serverName": "box", "toolName": "echo",
               "toolTitle": "Echo", "args": {"text": "x"}, "readOnly": true})
    );
    // The whole server may be called from now on.
    let approval = json!({"kind": "mcp", "serverName": "box", "toolName": null});
    session
        .decide(
            &request,
            json!({"kind": "approve-for-session", "approval": approval}),
        )
        .await;
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    assert_eq!(last_result(&session)["result"]["content"], "2");
    daemon.finish().await;
}

#[tokio::test]
async fn rules_allow_and_deny_servers_and_tools() {
    let daemon = Daemon::playing([
        Turn::any().calls([
            call("e", "box-echo", json!({"text": "x"})),
            call("a", "box-add", json!({"a": 1, "b": 1})),
        ]),
        Turn::any().says("ok"),
    ])
    .await;
    let mut session = daemon.client().create(options()).await;
    let rules = json!({"rules": {
        "approved": [{"kind": "mcp", "argument": "box"}],
        "denied": [{"kind": "mcp", "argument": "box/add"}],
    }});
    session.call("session.permissions.configure", rules).await;
    session.ask("go").await;
    let results = daemon.script().last_request().last_results();
    assert_eq!(results[0], "x");
    assert!(
        results[1].contains("denied") || results[1].contains("Denied"),
        "{results:?}"
    );
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn plan_mode_asks_about_tools_unless_they_only_read_and_a_rule_names_them() {
    let daemon = Daemon::playing([Turn::any().calls([
        call("e", "box-echo", json!({"text": "x"})),
        call("a", "box-add", json!({"a": 1, "b": 1})),
    ])])
    .await;
    let mut session = daemon.client().create(options()).await;
    session.approve_all().await;
    session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    let named = ["box/echo", "box/add"].map(|name| json!({"kind": "mcp", "argument": name}));
    let rules = json!({"scope": "session", "add": named});
    session.call("session.permissions.modifyRules", rules).await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    assert_eq!(asked["toolName"], "add");
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    assert_eq!(session.count("permission.requested"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn lists_of_tools_may_name_a_server_or_its_tools() {
    for (list, expected) in [
        (json!({"availableTools": ["box/echo"]}), vec!["box-echo"]),
        (
            json!({"availableTools": ["mcp__box__echo", "bash"]}),
            vec!["bash", "box-echo"],
        ),
        (json!({"availableTools": ["mcp:box-add"]}), vec!["box-add"]),
    ] {
        let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
        let mut wanted = options();
        for (name, value) in list.as_object().unwrap() {
            wanted[name] = value.clone();
        }
        let mut session = daemon.client().create(wanted).await;
        until(&mut session, "box", "connected").await;
        session.ask("go").await;
        assert_eq!(daemon.script().requests()[0].tools(), expected);
        daemon.finish().await;
    }
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let mut wanted = options();
    wanted["excludedTools"] = json!(["box/*"]);
    let mut session = daemon.client().create(wanted).await;
    session.ask("go").await;
    assert!(
        !daemon.script().requests()[0]
            .tools()
            .join(" ")
            .contains("box-")
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_hook_of_a_file_sets_the_meta_of_a_call_or_keeps_it_from_being_made() {
    for (script, expected) in [
        (
            r#"echo '{"metaToUse": {"who": "hook"}}'"#,
            r#"{"who": "hook"}"#,
        ),
        (
            "echo no >&2; exit 2",
            "A hook did not let this call be made: no",
        ),
        ("exit 1", "A hook did not let this call be made"),
    ] {
        let daemon = Daemon::playing([
            Turn::user("go").calls([call("m", "box-meta", json!({}))]),
            Turn::any().says("ok"),
        ])
        .await;
        let hook = json!({"version": 1, "hooks": {"preMcpToolCall": [{"bash": script}]}});
        let folder = daemon.home().join("hooks");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("meta.json"), hook.to_string()).unwrap();
        let mut wanted = options();
        wanted["enableFileHooks"] = json!(true);
        let mut session = daemon.client().create(wanted).await;
        session.approve_all().await;
        session.ask("go").await;
        let results = daemon.script().last_request().last_results();
        assert!(results[0].starts_with(expected), "{results:?}");
        daemon.finish().await;
    }
}
