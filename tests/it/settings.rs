//! The daemon's own facts, and the small settings of a session: mode, model, agent, plan.

use loopd_tests::{Daemon, Script, Session, Turn};
use serde_json::{Value, json};

#[tokio::test]
async fn the_daemon_tells_who_it_is() {
    let daemon = Daemon::builder().start().await;
    let client = daemon.client();
    let version = env!("CARGO_PKG_VERSION");
    let connected = client.call("connect", json!({})).await;
    assert_eq!(
        connected,
        json!({"ok": true, "protocolVersion": 3, "version": version})
    );
    let pong = client.call("ping", json!({"message": "hello"})).await;
    assert_eq!(
        (&pong["message"], &pong["protocolVersion"]),
        (&json!("pong: hello"), &json!(3))
    );
    let status = client.call("status.get", json!({})).await;
    assert_eq!(status, json!({"version": version, "protocolVersion": 3}));
    let auth = client.call("auth.getStatus", json!({})).await;
    assert_eq!(auth["isAuthenticated"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_launch_with_a_token_is_authenticated() {
    let daemon = Daemon::builder().env("GITHUB_TOKEN", "t").start().await;
    let auth = daemon.client().call("auth.getStatus", json!({})).await;
    assert_eq!(
        (&auth["isAuthenticated"], &auth["authType"]),
        (&json!(true), &json!("env"))
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_mode_is_set_once_and_told_to_all() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    assert_eq!(
        session.call("session.mode.get", json!({})).await,
        "interactive"
    );
    let set = session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    assert_eq!(set, json!({"status": "applied", "modelChanged": false}));
    let changed = session.next("session.mode_changed").await;
    assert_eq!(
        changed["data"],
        json!({"previousMode": "interactive", "newMode": "plan"})
    );
    let again = session
        .call("session.mode.set", json!({"mode": "plan"}))
        .await;
    assert_eq!(again["status"], "unchanged");
    let error = session
        .refused("session.mode.set", json!({"mode": "turbo"}))
        .await;
    assert_eq!(
        (error.code, error.message.contains("mode")),
        (-32602, true),
        "{error}"
    );
    session.destroy().await;
    let session = session.client().resume(&session.id, json!({})).await;
    assert_eq!(session.call("session.mode.get", json!({})).await, "plan");
    daemon.finish().await;
}

#[tokio::test]
async fn the_model_can_be_switched_between_turns() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    let current = session.call("session.model.getCurrent", json!({})).await;
    assert_eq!(current, json!({"modelId": "scripted"}));
    let params = json!({"modelId": "scripted-small", "reasoningEffort": "low"});
    let switched = session.call("session.model.switchTo", params).await;
    assert_eq!(
        switched,
        json!({"modelId": "scripted-small", "deferred": false})
    );
    let changed = session.next("session.model_change").await;
    assert_eq!(changed["data"]["previousModel"], "scripted");
    session.ask("two").await;
    let request = daemon.script().last_request();
    assert_eq!(request.body["model"], "scripted-small");
    assert_eq!(request.body["reasoning_effort"], "low");
    let listed = session.call("session.model.list", json!({})).await;
    let ids: Vec<&Value> = listed["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"])
        .collect();
    assert_eq!(ids, ["scripted", "scripted-small"]);
    daemon.finish().await;
}

/// What the session says of its model, and what the next request asks for.
async fn model_in_use(daemon: &Daemon, session: &mut Session, prompt: &str) -> Value {
    let current = session.call("session.model.getCurrent", json!({})).await;
    session.ask(prompt).await;
    let asked = daemon.script().last_request().body["model"].clone();
    assert_eq!(current["modelId"], asked);
    asked
}

#[tokio::test]
async fn the_model_that_was_chosen_last_answers_after_a_resume() {
    let answers = ["one", "two", "three"].map(|prompt| Turn::user(prompt).says("ok"));
    let daemon = Daemon::playing(answers).await;
    let session = daemon.client().create(json!({"model": "scripted"})).await;
    let small =
        json!({"modelId": "scripted-small", "modelCapabilities": {"supports": {"vision": true}}});
    session.call("session.model.switchTo", small).await;
    session.destroy().await;
    // A plain resume keeps the model that somebody switched to, and says so.
    let plain = json!({"model": null});
    let mut session = session.client().resume(&session.id, plain).await;
    let resumed = session.next("session.resume").await;
    assert_eq!(resumed["data"]["selectedModel"], "scripted-small");
    assert_eq!(session.count("session.model_change"), 0);
    let used = model_in_use(&daemon, &mut session, "one").await;
    assert_eq!(used, "scripted-small");
    let known = daemon.state(&session.id).await.options.model_capabilities;
    assert_eq!(known.and_then(|known| known.vision()), Some(true));
    session.destroy().await;
    // One that names a model switches to it, also to the one that the session was created with.
    let named = json!({"model": "scripted", "reasoningEffort": "low"});
    let mut session = session.client().resume(&session.id, named).await;
    let changed = session.next("session.model_change").await;
    let changed = (
        &changed["data"]["previousModel"],
        &changed["data"]["newModel"],
    );
    assert_eq!(changed, (&json!("scripted-small"), &json!("scripted")));
    let resumed = session.next("session.resume").await;
    assert_eq!(resumed["data"]["selectedModel"], "scripted");
    let used = model_in_use(&daemon, &mut session, "two").await;
    assert_eq!(used, "scripted");
    let effort = &daemon.script().last_request().body["reasoning_effort"];
    assert_eq!(effort, "low");
    // Who only joins again after a broken connection takes back nothing.
    let again = json!({"model": "scripted-small", "reasoningEffort": "high", "loopdReturns": true});
    daemon.client().resume(&session.id, again).await;
    let used = model_in_use(&daemon, &mut session, "three").await;
    assert_eq!(used, "scripted");
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_without_any_provider_still_opens() {
    let daemon = Daemon::builder().start().await;
    let mut session = daemon.client().create(json!({})).await;
    let idle = session.ask("hello").await;
    assert_eq!(idle["data"].get("aborted"), None);
    assert_eq!(
        session.count("assistant.message"),
        1,
        "the offline model answers"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_that_the_client_defined_answers_when_it_is_selected() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let agents = json!([{"name": "reviewer", "displayName": "Reviewer", "description": "Reviews",
        "prompt": "You review and nothing else.", "tools": ["view"]}]);
    let mut session = daemon
        .client()
        .create(json!({"customAgents": agents}))
        .await;
    let info = json!({"id": "reviewer", "name": "reviewer", "displayName": "Reviewer",
        "description": "Reviews", "tools": ["view"]});
    let listed = session.call("session.agent.list", json!({})).await;
    assert_eq!(listed, json!({"agents": [info]}));
    assert_eq!(
        session.call("session.agent.getCurrent", json!({})).await,
        json!({"agent": null})
    );
    let error = session
        .refused("session.agent.select", json!({"name": "nobody"}))
        .await;
    assert!(
        error.message.contains("reviewer"),
        "it lists who there is: {error}"
    );
    let selected = session
        .call("session.agent.select", json!({"name": "reviewer"}))
        .await;
    assert_eq!(selected, json!({"agent": info}));
    session.next("subagent.selected").await;
    session.ask("one").await;
    let request = daemon.script().last_request();
    assert_eq!(request.tools(), ["view"]);
    let system = request.messages()[0]["content"].as_str().unwrap();
    assert!(system.contains("You review and nothing else."), "{system}");
    assert_eq!(
        session.call("session.agent.getCurrent", json!({})).await,
        json!({"agent": info})
    );
    session.call("session.agent.deselect", json!({})).await;
    session.next("subagent.deselected").await;
    session.ask("two").await;
    assert!(daemon.script().last_request().tools().contains(&"bash"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_plan_is_written_read_and_removed() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let plan = session.call("session.plan.read", json!({})).await;
    assert_eq!(
        (&plan["exists"], &plan["content"]),
        (&json!(false), &Value::Null)
    );
    for (content, operation) in [("# First", "create"), ("# Second", "update")] {
        session
            .call("session.plan.update", json!({"content": content}))
            .await;
        let changed = session.next("session.plan_changed").await;
        assert_eq!(changed["data"]["operation"], operation);
        let plan = session.call("session.plan.read", json!({})).await;
        assert_eq!(
            (&plan["exists"], &plan["content"]),
            (&json!(true), &json!(content))
        );
    }
    session.call("session.plan.delete", json!({})).await;
    let changed = session.next("session.plan_changed").await;
    assert_eq!(changed["data"]["operation"], "delete");
    session.call("session.plan.delete", json!({})).await;
    assert_eq!(
        session.count("session.plan_changed"),
        3,
        "there was nothing left to remove"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_system_message_is_built_as_the_client_wants_it() {
    let cases = [
        (
            json!({"mode": "replace", "content": "Only this."}),
            "Only this.",
            true,
        ),
        (
            json!({"mode": "append", "content": "And this."}),
            "And this.",
            false,
        ),
        (
            json!({"content": "By default appended."}),
            "By default appended.",
            false,
        ),
    ];
    for (config, text, alone) in cases {
        let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
        let mut session = daemon
            .client()
            .create(json!({"systemMessage": config}))
            .await;
        session.ask("hello").await;
        let request = daemon.script().last_request();
        let system = request.messages()[0]["content"].as_str().unwrap();
        assert!(system.ends_with(text), "{system}");
        assert_eq!(system == text, alone);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_client_may_rewrite_a_section_of_the_system_message() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let sections = json!({"identity": {"action": "transform"}});
    let config = json!({"mode": "customize", "sections": sections});
    let mut session = daemon
        .client()
        .create(json!({"systemMessage": config}))
        .await;
    session.send("hello").await;
    let asked = session.client().request("systemMessage.transform").await;
    let before = asked.params["sections"]["identity"]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(!before.is_empty());
    asked.answer(json!({"sections": {"identity": {"content": "You are a teapot."}}}));
    session.next("session.idle").await;
    let request = daemon.script().last_request();
    let system = request.messages()[0]["content"].as_str().unwrap();
    assert!(
        system.contains("You are a teapot.") && !system.contains(&before),
        "{system}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_models_list_that_cannot_be_had_is_an_error_and_not_a_crash() {
    let mut script = Script::play([]).await;
    script.finish();
    let url = script.url().to_owned();
    drop(script);
    let daemon = Daemon::builder().env("COPILOT_API_URL", &url).start().await;
    let client = daemon.client();
    let error = client.refused("models.list", json!({})).await;
    assert_eq!(error.code, -32603);
    client.call("ping", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_mode_is_switched_only_from_the_mode_that_is_expected() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    for (expected, status, now) in [
        ("autopilot", "unchanged", "interactive"),
        ("interactive", "applied", "plan"),
        ("interactive", "unchanged", "plan"),
    ] {
        let params = json!({"mode": "plan", "expectedMode": expected});
        let set = session.call("session.mode.set", params).await;
        assert_eq!(set["status"], status, "{expected}");
        assert_eq!(session.call("session.mode.get", json!({})).await, now);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_that_joins_others_does_not_change_their_model() {
    let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
    let mut one = daemon.client().create(json!({})).await;
    let params = json!({"model": "another"});
    let two = daemon.client().resume(&one.id, params).await;
    let now = two.call("session.model.getCurrent", json!({})).await;
    assert_eq!(now["modelId"], "scripted");
    one.ask("go").await;
    daemon.finish().await;
}
