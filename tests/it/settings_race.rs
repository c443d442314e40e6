//! Settings that are sent at once: each one that is accepted has its effect exactly once, whoever
//! else changes something at the same moment.
//!
//! Nobody waits for a reply before the next request is sent. A request says what changes, and the
//! session decides it against the state of that moment; a handler that reads the state, changes it
//! and writes it back loses what others changed in between.

mod random;

use futures::future::join_all;
use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

/// How many changes are sent at once.
const MANY: usize = 30;

/// Sends requests without waiting for a reply in between; all have to work.
async fn at_once(session: &Session, requests: impl IntoIterator<Item = (&'static str, Value)>) {
    let started: Vec<_> = requests
        .into_iter()
        .map(|(method, params)| (method, session.start(method, params)))
        .collect();
    for (method, answer) in started {
        if let Err(error) = answer.await {
            panic!("{method} was refused: {error}");
        }
    }
}

fn tool_name(number: usize) -> String {
    format!("tool-{number}")
}

/// Tools of a client that need leave to run.
fn tools() -> Vec<Value> {
    let tool = |number| {
        json!({"name": tool_name(number), "description": "Does something",
               "parameters": {"type": "object", "properties": {}}})
    };
    (0..MANY).map(tool).collect()
}

/// The model calls every tool once.
fn calls_all() -> Turn {
    let calls = (0..MANY).map(|number| call(&format!("c{number}"), &tool_name(number), json!({})));
    Turn::user("use them").calls(calls.collect::<Vec<_>>())
}

/// Lets the model call every tool, and counts the calls that came through without a question.
async fn allowed(session: &mut Session) -> usize {
    session.send("use them").await;
    for asked in 0..MANY {
        let what = format!("call {asked} to be allowed or asked about");
        session
            .next_where(&what, |event| {
                event["type"] == "external_tool.requested"
                    || event["type"] == "permission.requested"
            })
            .await;
    }
    session.call("session.abort", json!({})).await;
    session.next("session.idle").await;
    session.count("external_tool.requested")
}

fn rule(number: usize) -> Value {
    json!({"kind": "custom-tool", "argument": tool_name(number)})
}

#[tokio::test]
async fn every_rule_is_in_force() {
    let daemon = Daemon::playing([calls_all()]).await;
    let offer = json!({"tools": tools(), "requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    let add = |number| json!({"scope": "session", "add": [rule(number)]});
    let requests = (0..MANY).map(|number| ("session.permissions.modifyRules", add(number)));
    at_once(&session, requests).await;
    assert_eq!(allowed(&mut session).await, MANY, "rules that are in force");
    daemon.finish().await;
}

#[tokio::test]
async fn every_rule_of_many_clients_is_in_force() {
    let daemon = Daemon::playing([calls_all()]).await;
    let offer = json!({"tools": tools(), "requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(daemon.client().resume(&session.id, json!({})).await);
    }
    let parts = others.iter().enumerate().map(|(at, other)| {
        let numbers = (0..MANY).filter(move |number| number % 4 == at);
        let add = |number| json!({"scope": "session", "add": [rule(number)]});
        at_once(
            other,
            numbers.map(move |number| ("session.permissions.modifyRules", add(number))),
        )
    });
    join_all(parts).await;
    assert_eq!(allowed(&mut session).await, MANY, "rules that are in force");
    daemon.finish().await;
}

#[tokio::test]
async fn every_directory_is_allowed() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let folders: Vec<_> = (0..MANY).map(|n| daemon.file(&format!("d{n}"))).collect();
    for folder in &folders {
        std::fs::create_dir(folder).unwrap();
    }
    let requests = folders.iter().map(|folder| {
        let params = json!({"path": folder});
        ("session.permissions.paths.add", params)
    });
    at_once(&session, requests).await;
    let listed = session.call("session.permissions.paths.list", json!({}));
    let listed = listed.await["directories"].as_array().unwrap().clone();
    let missing = folders.iter().filter(|it| !listed.contains(&json!(it)));
    assert_eq!(missing.count(), 0, "directories that were lost");
    daemon.finish().await;
}

#[tokio::test]
async fn settings_of_different_kinds_leave_each_other_alone() {
    let daemon = Daemon::playing([calls_all()]).await;
    let offer = json!({"tools": tools(), "requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    let folder = |name: &str| {
        let folder = daemon.file(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };
    let (primary, added) = (folder("primary"), folder("added"));
    let rules: Vec<Value> = (0..MANY).map(rule).collect();
    let requests = [
        ("session.permissions.setMode", json!({"mode": "allow-all"})),
        (
            "session.permissions.modifyRules",
            json!({"scope": "session", "add": rules}),
        ),
        ("session.permissions.paths.add", json!({"path": added})),
        (
            "session.permissions.paths.updatePrimary",
            json!({"path": primary}),
        ),
        (
            "session.permissions.urls.setUnrestrictedMode",
            json!({"enabled": true}),
        ),
    ];
    at_once(&session, requests).await;
    let mode = session.call("session.permissions.getMode", json!({})).await;
    let paths = session
        .call("session.permissions.paths.list", json!({}))
        .await;
    let state = daemon.state(&session.id).await;
    let seen = json!({
        "mode": mode["mode"], "primary": paths["primary"],
        "added": paths["directories"].as_array().unwrap().contains(&json!(added)),
        "urls": state.permissions.unrestricted_urls, "rules": state.permissions.approved.len(),
    });
    let expected = json!({
        "mode": "allow-all", "primary": primary, "added": true, "urls": true, "rules": MANY,
    });
    assert_eq!(seen, expected);
    assert_eq!(allowed(&mut session).await, MANY);
    daemon.finish().await;
}

#[tokio::test]
async fn configuring_one_thing_keeps_what_another_request_configures() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let denied = json!({"denied": [{"kind": "shell", "argument": "rm"}], "approved": []});
    let requests = [
        ("session.permissions.configure", json!({"rules": denied})),
        (
            "session.permissions.configure",
            json!({"approveAllReadPermissionRequests": true}),
        ),
        (
            "session.permissions.configure",
            json!({"urls": {"unrestricted": true}}),
        ),
        (
            "session.permissions.setApproveAll",
            json!({"enabled": true}),
        ),
    ];
    at_once(&session, requests).await;
    let permissions = daemon.state(&session.id).await.permissions;
    let seen = (
        permissions.denied.len(),
        permissions.approve_all_reads,
        permissions.unrestricted_urls,
        permissions.approve_all,
    );
    assert_eq!(seen, (1, true, true, true));
    daemon.finish().await;
}

#[tokio::test]
async fn a_rule_does_not_take_back_what_a_person_allows_at_the_same_moment() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([call("c", "tool-0", json!({}))]),
        Turn::results(["done"]).says("ok"),
    ])
    .await;
    let offer = json!({"tools": tools(), "requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    session.send("one").await;
    let (request, _) = session.permission().await;
    let decision = json!({"requestId": request, "result": {"kind": "approve-for-session"}});
    let requests = [
        (
            "session.permissions.handlePendingPermissionRequest",
            decision,
        ),
        (
            "session.permissions.modifyRules",
            json!({"scope": "session", "add": [rule(1)]}),
        ),
    ];
    at_once(&session, requests).await;
    let (request, _) = session.tool_call().await;
    assert!(session.give(&request, json!({"result": "done"})).await);
    session.next("session.idle").await;
    let approved = daemon.state(&session.id).await.permissions.approved;
    let mut approved: Vec<_> = approved
        .iter()
        .filter_map(|rule| rule.argument.clone())
        .collect();
    approved.sort();
    assert_eq!(approved, ["tool-0", "tool-1"]);
    daemon.finish().await;
}

#[tokio::test]
async fn every_approval_of_a_location_is_kept_for_the_next_session() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let here = json!({"workingDirectory": daemon.work()});
    let resolve = "session.permissions.locations.resolve";
    let location = session.call(resolve, here.clone()).await["locationKey"].clone();
    let requests = (0..MANY).map(|number| {
        let approval = json!({"kind": "custom-tool", "toolName": tool_name(number)});
        let params = json!({"locationKey": location, "approval": approval});
        ("session.permissions.locations.addToolApproval", params)
    });
    at_once(&session, requests).await;
    let own = daemon.state(&session.id).await.permissions.approved.len();
    let next = daemon.client().create(json!({})).await;
    let applied = next.call("session.permissions.locations.apply", here).await;
    let kept = applied["appliedRuleCount"].as_u64().unwrap();
    assert_eq!((own, kept), (MANY, MANY as u64), "in the session and kept");
    daemon.finish().await;
}

#[tokio::test]
async fn approvals_of_an_earlier_version_hold_beside_new_ones() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let here = json!({"workingDirectory": daemon.work()});
    let resolve = "session.permissions.locations.resolve";
    let location = session.call(resolve, here.clone()).await["locationKey"].clone();
    let approval = |number| json!({"kind": "custom-tool", "toolName": tool_name(number)});
    let store = &daemon.app.services.store;
    let kept = json!([approval(0), approval(1)]);
    let key = location.as_str().unwrap();
    store.put_fact("approval", key, Some(kept)).await.unwrap();
    for number in [1, 2] {
        let params = json!({"locationKey": location, "approval": approval(number)});
        let add = "session.permissions.locations.addToolApproval";
        session.call(add, params).await;
    }
    let next = daemon.client().create(json!({})).await;
    let applied = next.call("session.permissions.locations.apply", here).await;
    let rules: Vec<Value> = (0..3).map(rule).collect();
    let seen = (&applied["appliedRules"], &applied["changed"]);
    // The session has had them from its beginning.
    assert_eq!(seen, (&json!(rules), &json!(false)));
    daemon.finish().await;
}

#[tokio::test]
async fn an_effort_does_not_take_back_the_model_that_is_chosen_at_the_same_moment() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let requests = [
        (
            "session.model.setReasoningEffort",
            json!({"reasoningEffort": "high"}),
        ),
        ("session.model.switchTo", json!({"modelId": "another"})),
    ];
    at_once(&session, requests).await;
    let current = session.call("session.model.getCurrent", json!({})).await;
    assert_eq!(current["modelId"], "another");
    daemon.finish().await;
}

/// What the events of one kind say that was done.
async fn operations(session: &Session, kind: &str) -> Vec<String> {
    let events = session.messages().await.into_iter();
    let of_kind = events.filter(|event| event["type"] == kind);
    of_kind
        .map(|event| event["data"]["operation"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_plan_is_created_once() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let requests = (0..8).map(|number| {
        let content = format!("plan {number}");
        ("session.plan.update", json!({"content": content}))
    });
    at_once(&session, requests).await;
    let told = operations(&session, "session.plan_changed").await;
    assert_eq!(told.len(), 8);
    let created = told.iter().filter(|operation| *operation == "create");
    assert_eq!(created.count(), 1, "{told:?}");
    assert_eq!(told[0], "create");
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_of_a_session_is_created_once() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let requests = (0..8).map(|number| {
        let params = json!({"path": "notes.md", "content": format!("note {number}")});
        ("session.workspaces.createFile", params)
    });
    at_once(&session, requests).await;
    let told = operations(&session, "session.workspace_file_changed").await;
    assert_eq!(told.len(), 8);
    let created = told.iter().filter(|operation| *operation == "create");
    assert_eq!(created.count(), 1, "{told:?}");
    assert_eq!(told[0], "create");
    daemon.finish().await;
}

/// Options, names and modes are decided in the session today; this keeps it so.
#[tokio::test]
async fn options_names_modes_and_agents_leave_each_other_alone() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let requests = [
        ("session.options.update", json!({"excludedTools": ["bash"]})),
        ("session.options.update", json!({"clientName": "mine"})),
        (
            "session.options.update",
            json!({"sessionLimits": {"maxAiCredits": 5.0}}),
        ),
        (
            "session.tools.updateSubagentSettings",
            json!({"subagents": {"maxDepth": 2}}),
        ),
        ("session.name.set", json!({"name": "ours"})),
        ("session.name.setAuto", json!({"summary": "theirs"})),
        ("session.mode.set", json!({"mode": "plan"})),
        ("session.agent.select", json!({"name": "plan"})),
    ];
    at_once(&session, requests).await;
    let state = daemon.state(&session.id).await;
    let name = session.call("session.name.get", json!({})).await;
    let mode = session.call("session.mode.get", json!({})).await;
    let agent = session.call("session.agent.getCurrent", json!({})).await;
    let seen = json!({
        "excluded": state.options.excluded_tools, "client": state.options.client_name,
        "limited": state.options.session_limits.is_some(),
        "depth": state.options.subagents.and_then(|settings| settings.max_depth),
        "name": name["name"], "mode": mode, "agent": agent["agent"]["name"],
    });
    let expected = json!({
        "excluded": ["bash"], "client": "mine", "limited": true, "depth": 2,
        "name": "ours", "mode": "plan", "agent": "plan",
    });
    assert_eq!(seen, expected);
    daemon.finish().await;
}
