//! Clients that reach for the session of an agent: they may watch it, and change nothing.

use loopd_tests::{Gate, Session, Turn, call};
use serde_json::{Value, json};

use super::{background, daemon, last_said, says, task};

/// The session that an agent works in.
async fn own_session(session: &Session, id: &str) -> String {
    let read = session.call("loopd.taskRead", json!({"id": id})).await;
    read["node"]["sessionId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn who_resumes_the_session_of_a_working_agent_watches_it() {
    let gate = Gate::new();
    let look = call("g", "glob", json!({"pattern": "*"}));
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([task("t", json!({"prompt": "dig", "name": "digger"}))]),
                Turn::results(["gold"]).says("rich"),
            ],
        ),
        (
            "dig",
            vec![
                Turn::user("dig")
                    .says_and_calls("half a hole", [look])
                    .held_by(&gate),
                Turn::results([""]).says("gold"),
            ],
        ),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.send("begin").await;
    gate.reached().await;
    let own = own_session(&session, "digger").await;
    let child = client
        .resume(
            &own,
            json!({"model": "another", "systemMessage": {"content": "be rude"}}),
        )
        .await;
    let other = daemon.client().resume(&own, json!({})).await;
    let state = daemon.state(&own).await;
    assert!(state.is_busy(), "it goes on");
    assert_ne!(state.options.model.as_deref(), Some("another"));
    assert_eq!(state.options.system_message, None);
    // Leaving does not end it either.
    child.destroy().await;
    other.destroy().await;
    gate.open();
    session.next("session.idle").await;
    assert_eq!(last_said(&session), "rich");
    daemon.finish().await;
}

#[tokio::test]
async fn the_tools_and_permissions_of_an_agent_are_those_of_its_parent() {
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
    let mut session = client.create(json!({"excludedTools": ["bash"]})).await;
    session.send("begin").await;
    gate.reached().await;
    says(&mut session, "it digs").await;
    let own = own_session(&session, "digger").await;
    let child = client.resume(&own, json!({})).await;
    let refused = |what: &'static str, params: Value| {
        let child = &child;
        let top = session.id.clone();
        async move {
            let error = child.refused(what, params).await;
            assert!(
                error.message.contains("sub-agent") && error.message.contains(&top),
                "{what}: {}",
                error.message
            );
        }
    };
    refused("session.options.update", json!({"excludedTools": []})).await;
    refused(
        "session.permissions.setApproveAll",
        json!({"enabled": true}),
    )
    .await;
    refused(
        "session.permissions.modifyRules",
        json!({"scope": "session", "add": [{"kind": "shell"}]}),
    )
    .await;
    let filters = json!({"availableTools": ["bash"]});
    let mut joiner = daemon.client().resume(&own, filters).await;
    let kept = joiner.next("session.info").await;
    assert_eq!(kept["data"]["infoType"], "settings_kept");
    gate.open();
    says(&mut session, "rich").await;
    // An idle agent keeps its tools, too: it may work again.
    let child = daemon.client().resume(&own, json!({})).await;
    let error = child
        .refused("session.options.update", json!({"excludedTools": []}))
        .await;
    assert!(error.message.contains("sub-agent"), "{}", error.message);
    let state = daemon.state(&own).await;
    assert_eq!(state.options.excluded_tools, Some(vec!["bash".to_owned()]));
    assert_eq!(state.options.available_tools, None);
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_agents_in_the_background() {
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
    let mut session = daemon.client().create(json!({})).await;
    let waiting = session.start("session.sendAndWait", json!({"prompt": "begin"}));
    gate.reached().await;
    says(&mut session, "it digs").await;
    let idle = session.next("assistant.idle").await;
    assert!(idle["data"]["aborted"].is_null());
    session.call("session.abort", json!({})).await;
    let done = loopd_tests::within("the wait to end", waiting)
        .await
        .unwrap();
    assert_eq!(done["aborted"], true, "{done}");
    let boundary = session.next("session.idle").await;
    assert_eq!(boundary["data"]["aborted"], true);
    assert_eq!(done["completionEventId"], boundary["id"]);
    gate.open();
    says(&mut session, "rich").await;
    daemon.finish().await;
}
