//! What a command sets for its own turn, and for no other.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{EXECUTE, INVOKE, command, session, session_of, write};

#[tokio::test]
async fn allowed_tools_restrict_the_turn_and_only_that() {
    let bash = call("a", "bash", json!({"command": "echo hi"}));
    let daemon = Daemon::playing([
        Turn::user("Look.").calls([bash]),
        Turn::any().says("seen"),
        Turn::user("go on").says("ok"),
    ])
    .await;
    command(
        &daemon,
        "look",
        "---\nallowed-tools: Read, Grep\n---\nLook.",
    );
    let mut session = session(&daemon).await;
    session.approve_all().await;
    session
        .call(EXECUTE, json!({"commandName": "look", "args": ""}))
        .await;
    session.next("session.idle").await;
    session.ask("go on").await;
    let requests = daemon.script().requests();
    let tools: Vec<Vec<&str>> = requests.iter().map(|request| request.tools()).collect();
    let allowed = ["view", "grep"];
    assert!(
        allowed.iter().all(|tool| tools[0].contains(tool)),
        "{tools:?}"
    );
    assert_eq!(tools[0].len(), 2, "{tools:?}");
    assert_eq!(tools[1], tools[0]);
    assert!(
        requests[1].last_results()[0].contains("does not exist"),
        "{:?}",
        requests[1].last_results()
    );
    assert!(
        tools[2].contains(&"bash") && tools[2].contains(&"edit"),
        "{tools:?}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn allowed_tools_add_nothing_to_what_the_session_has() {
    let daemon = Daemon::playing([Turn::user("Look.").says("seen")]).await;
    command(
        &daemon,
        "look",
        "---\nallowed-tools: Read, Grep\n---\nLook.",
    );
    let mut session = session_of(&daemon.client(), json!({"excludedTools": ["view"]})).await;
    session
        .call(EXECUTE, json!({"commandName": "look", "args": ""}))
        .await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().last_request().tools(), ["grep"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_does_not_know_scopes_does_not_lose_them() {
    let daemon = Daemon::playing([
        Turn::user("Look.").says("seen"),
        Turn::user("Look.").says("seen again"),
    ])
    .await;
    command(&daemon, "look", "---\nallowed-tools: Read\n---\nLook.");
    let mut session = session(&daemon).await;
    let invoked = session.call(INVOKE, json!({"name": "look"})).await;
    assert_eq!(invoked["kind"], "completed");
    let said = session.next("user.message").await;
    assert_eq!(said["data"]["messageId"], invoked["messageId"]);
    session.next("session.idle").await;
    assert_eq!(daemon.script().last_request().tools(), ["view"]);

    let kept = session
        .call(INVOKE, json!({"name": "look", "keepsScope": true}))
        .await;
    assert_eq!(
        kept["runScope"],
        json!({"command": "look", "tools": ["Read"]})
    );
    let message = json!({"prompt": kept["prompt"], "runScope": kept["runScope"]});
    session.call("session.send", message).await;
    session.next("session.idle").await;
    assert_eq!(daemon.script().last_request().tools(), ["view"]);
    daemon.finish().await;
}

#[tokio::test]
async fn model_and_agent_answer_in_this_turn_only() {
    let daemon = Daemon::playing([
        Turn::user("one").says("ok"),
        Turn::user("Write about the sea.").says("verses"),
        Turn::user("two").says("ok"),
    ])
    .await;
    let agent = "---\nname: poet\ndescription: Writes verses\ntools: [grep]\n---\nYou are a poet of the sea.";
    write(&daemon.work().join(".claude/agents/poet.md"), agent);
    command(
        &daemon,
        "verse",
        "---\nmodel: verse-model\nagent: poet\n---\nWrite about $ARGUMENTS.",
    );
    let mut session = session_of(&daemon.client(), json!({"model": "usual-model"})).await;
    session.ask("one").await;
    session
        .call(EXECUTE, json!({"commandName": "verse", "args": "the sea"}))
        .await;
    session.next("session.idle").await;
    session.ask("two").await;
    let requests = daemon.script().requests();
    let models: Vec<&Value> = requests
        .iter()
        .map(|request| &request.body["model"])
        .collect();
    assert_eq!(models, ["usual-model", "verse-model", "usual-model"]);
    let poets: Vec<bool> = requests
        .iter()
        .map(|request| {
            request.messages()[0]
                .to_string()
                .contains("a poet of the sea")
        })
        .collect();
    assert_eq!(poets, [false, true, false]);
    assert_eq!(requests[1].tools(), ["grep"]);
    assert!(requests[2].tools().contains(&"bash"));
    assert_eq!(session.count("session.model_change"), 0);
    let current = session.call("session.model.getCurrent", json!({})).await;
    assert_eq!(current["modelId"], "usual-model");
    let agent = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(agent["agent"], Value::Null);
    daemon.finish().await;
}

#[tokio::test]
async fn a_scope_survives_the_daemon_with_its_message() {
    let gate = loopd_tests::Gate::new();
    let mut daemon = Daemon::playing([
        Turn::user("first").says("ok").held_by(&gate),
        Turn::user("Look.").says("seen"),
    ])
    .await;
    command(&daemon, "look", "---\nallowed-tools: Read\n---\nLook.");
    let session = session(&daemon).await;
    session.send("first").await;
    session
        .call(EXECUTE, json!({"commandName": "look", "args": ""}))
        .await;
    let waits = |state: &loopd_kernel::state::State| state.queue.len() == 1;
    daemon
        .until(&session.id, "the message to wait", waits)
        .await;
    gate.open();
    daemon
        .until(&session.id, "both answers", |state| state.ended.len() == 2)
        .await;
    assert_eq!(daemon.script().last_request().tools(), ["view"]);
    daemon.restart().await;
    daemon.finish().await;
}

/// What narrows a turn narrows every agent that is started in it, and those below; also when such an
/// agent gets another message later.
#[tokio::test]
async fn agents_of_a_restricted_turn_are_restricted_like_it() {
    let task = |id: &str, prompt: &str| {
        call(
            id,
            "task",
            json!({"name": id, "agent_type": "general-purpose", "description": "d", "prompt": prompt}),
        )
    };
    let script = Script::answering(move |request| {
        let first = request.first_user_text();
        let answered = !request.last_results().is_empty();
        match first.as_str() {
            text if text.contains("INNER") => Turn::any().says("inner"),
            text if text.contains("OUTER") && !answered => Turn::any().calls([task("in", "INNER")]),
            text if text.contains("OUTER") => Turn::any().says("outer"),
            _ if answered => Turn::any().says("done"),
            _ => Turn::any().calls([task("out", "OUTER")]),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    command(
        &daemon,
        "look",
        "---\nallowed-tools: Task, Read\n---\nLook.",
    );
    let mut session = session(&daemon).await;
    session
        .call(EXECUTE, json!({"commandName": "look", "args": ""}))
        .await;
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    for who in ["OUTER", "INNER"] {
        let mut of = requests
            .iter()
            .filter(|request| request.first_user_text().contains(who));
        let tools = of.next().unwrap().tools();
        assert!(tools.contains(&"view"), "{who}: {tools:?}");
        for tool in ["bash", "create", "edit", "grep", "sql"] {
            assert!(!tools.contains(&tool), "{who}: {tools:?}");
        }
    }
    daemon.finish().await;
}

/// A wide agent that was started before goes on for the next message, but not in a narrowed run; nor
/// does the sub-agent of a sub-agent.
#[tokio::test]
async fn a_narrowed_run_does_not_let_an_agent_with_other_tools_go_on() {
    let start = json!({"description": "dig", "prompt": "DIG", "agent_type": "general-purpose", "name": "digger"});
    let write = |id: &str| {
        call(
            id,
            "write_agent",
            json!({"agent_id": "digger", "message": "MORE"}),
        )
    };
    let mut rounds = 0;
    let script = Script::answering(move |request| {
        let first = request.first_user_text();
        if first.contains("DIG") {
            return Turn::any().says("dug");
        }
        rounds += 1;
        match rounds {
            1 => Turn::any().calls([call("start", "task", start.clone())]),
            3 => Turn::any().calls([write("narrow")]),
            5 => Turn::any().calls([write("wide")]),
            _ => Turn::any().says("ok"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    command(
        &daemon,
        "look",
        "---\nallowed-tools: Read, write_agent\n---\nLook.",
    );
    let mut session = session(&daemon).await;
    session.ask("begin").await;
    session
        .call(EXECUTE, json!({"commandName": "look", "args": ""}))
        .await;
    session.next("session.idle").await;
    session.ask("and now").await;
    let events = session.events();
    let result = |id: &str| {
        let mut ends = events
            .iter()
            .filter(|it| it["type"] == "tool.execution_complete");
        let end = ends.find(|it| it["data"]["toolCallId"] == id);
        end.unwrap_or_else(|| panic!("{id} has no result"))["data"].clone()
    };
    let refused = result("narrow");
    assert_eq!(refused["success"], false, "{refused}");
    let why = refused["error"]["message"].as_str().unwrap();
    assert!(why.contains("only some tools"), "{why}");
    assert_eq!(result("wide")["success"], true);
    daemon.finish().await;
}
