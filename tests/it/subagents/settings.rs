//! Settings of an agent's own session: what it has from its parent is refused with the session to change
//! it in, and nothing says that it worked and does nothing.

use loopd_tests::{Gate, Session, Turn};
use serde_json::{Value, json};

use super::{background, daemon, says};

async fn own_session(session: &Session, id: &str) -> String {
    let read = session.call("loopd.taskRead", json!({"id": id})).await;
    read["node"]["sessionId"].as_str().unwrap().to_owned()
}

/// Every method that sets what an agent has from its parent.
fn inherited() -> Vec<(&'static str, Value)> {
    let rule = json!({"kind": "shell", "argument": null});
    vec![
        ("session.options.update", json!({"excludedTools": []})),
        (
            "session.permissions.setApproveAll",
            json!({"enabled": true}),
        ),
        ("session.permissions.setMode", json!({"mode": "allow-all"})),
        (
            "session.permissions.configure",
            json!({"rules": {"approved": [rule], "denied": []}}),
        ),
        (
            "session.permissions.modifyRules",
            json!({"scope": "session", "add": [{"kind": "shell"}]}),
        ),
        (
            "session.permissions.setRequired",
            json!({"required": false}),
        ),
        ("session.permissions.resetSessionApprovals", json!({})),
        ("session.permissions.paths.add", json!({"path": "/tmp"})),
        (
            "session.permissions.paths.updatePrimary",
            json!({"path": "/tmp"}),
        ),
        (
            "session.permissions.urls.setUnrestrictedMode",
            json!({"enabled": true}),
        ),
        (
            "session.permissions.locations.apply",
            json!({"workingDirectory": "/tmp"}),
        ),
        (
            "session.metadata.setWorkingDirectory",
            json!({"workingDirectory": "/tmp"}),
        ),
        ("session.mode.set", json!({"mode": "autopilot"})),
        (
            "session.tools.updateSubagentSettings",
            json!({"subagents": {"agents": {"explore": {"model": "other"}}}}),
        ),
        ("session.tools.set", json!({"tools": []})),
        (
            "session.provider.add",
            json!({"providers": [{"name": "x", "type": "openai", "baseUrl": "http://127.0.0.1:9"}]}),
        ),
        ("session.agent.select", json!({"name": "plan"})),
        ("session.agent.deselect", json!({})),
        ("loopd.hooks.lift", json!({})),
        ("loopd.autopilot.pause", json!({"paused": true})),
    ]
}

#[tokio::test]
async fn what_an_agent_has_from_its_parent_is_not_set_in_its_own_session() {
    let gate = Gate::new();
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([background("t", "dig", "digger")]),
                Turn::results(["agent_id: digger"]).says("it digs"),
                Turn::user("\"digger\"").says("rich"),
            ],
        ),
        super::worker("dig", "gold", &gate),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    says(&mut session, "it digs").await;
    let own = own_session(&session, "digger").await;
    for rests in [false, true] {
        if rests {
            gate.open();
            says(&mut session, "rich").await;
        }
        let child = daemon.client().resume(&own, json!({})).await;
        let before = daemon.state(&own).await;
        let mut wrong = Vec::new();
        // Who opens an agent that rests brings handlers, tools and providers of its own.
        let own_things = [
            "session.permissions.setRequired",
            "session.tools.set",
            "session.provider.add",
        ];
        for (method, params) in inherited() {
            if rests && own_things.contains(&method) {
                continue;
            }
            match child.try_call(method, params).await {
                Err(error)
                    if error.message.contains("sub-agent")
                        && error.message.contains(&session.id) => {}
                other => wrong.push(format!("{method}, rests: {rests}: {other:?}")),
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        let after = daemon.state(&own).await;
        assert_eq!(before.permissions, after.permissions);
        assert_eq!(before.options, after.options);
        assert_eq!((before.mode, before.agent), (after.mode, after.agent));
        child.destroy().await;
    }
    daemon.finish().await;
}
