//! Sessions as a whole: made, listed, described, renamed, forked, deleted.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn users(events: &[Value]) -> Vec<&Value> {
    let users = events.iter().filter(|event| event["type"] == "user.message");
    users.map(|event| &event["data"]["content"]).collect()
}

#[tokio::test]
async fn a_client_names_its_session_or_gets_a_name() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let opened = client.call("session.create", json!({"sessionId": "my-own.id_1"})).await;
    assert_eq!(opened["sessionId"], "my-own.id_1");
    assert!(opened["workspacePath"].as_str().unwrap().ends_with("my-own.id_1"));
    assert_eq!(opened["capabilities"], json!({"ui": {"elicitation": false, "mcpApps": false}, "extensions": false}));
    let mut session = client.session("my-own.id_1");
    let start = session.next("session.start").await;
    assert_eq!(start["data"]["sessionId"], "my-own.id_1");
    assert_eq!(start["parentId"], Value::Null);
    let created = client.note("session.lifecycle", |note| note["type"] == "session.created").await;
    assert_eq!(created["sessionId"], "my-own.id_1");
    let other = client.create(json!({})).await;
    assert_eq!(other.id.len(), 36, "our own ids look like UUIDs: {}", other.id);
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_id_that_could_be_a_path_is_refused_by_name() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let long = "x".repeat(200);
    for id in ["", "../up", ".hidden", "a/b", "a b", "ä", long.as_str()] {
        let error = client.refused("session.create", json!({"sessionId": id})).await;
        assert_eq!(error.code, -32602, "{id:?}: {error}");
        assert!(error.message.contains("sessionId"), "{error}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_id_that_exists_is_refused_live_or_stored() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({"sessionId": "taken"})).await;
    let error = client.refused("session.create", json!({"sessionId": "taken"})).await;
    assert!(error.message.contains("already exists"), "{error}");
    session.ask("hello").await;
    session.destroy().await;
    let error = client.refused("session.create", json!({"sessionId": "taken"})).await;
    assert_eq!(error.code, -32603);
    assert!(error.message.contains("taken already exists"), "{error}");
    let session = client.resume("taken", json!({})).await;
    let stored = session.messages().await;
    assert_eq!(users(&stored), ["hello"], "the refused create changed nothing");
    daemon.finish().await;
}

#[tokio::test]
async fn two_creates_of_one_id_at_once_make_one_session() {
    let daemon = Daemon::playing([]).await;
    let (one, two) = (daemon.client(), daemon.client());
    let params = json!({"sessionId": "race"});
    let first = one.start("session.create", params.clone());
    let second = two.start("session.create", params);
    let outcomes = [first.await, second.await];
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn stored_sessions_are_listed_the_one_changed_last_first() {
    let daemon = Daemon::playing([Turn::user("to the older one").says("hi")]).await;
    let client = daemon.client();
    let elsewhere = daemon.file("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut older = client.create(json!({"sessionId": "older", "clientName": "tester"})).await;
    let place = json!({"sessionId": "newer", "workingDirectory": elsewhere});
    client.create(place).await;
    older.ask("to the older one").await;
    let listed = client.call("session.list", json!({})).await;
    let ids: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|s| &s["sessionId"]).collect();
    assert_eq!(ids, ["older", "newer"]);
    assert_eq!(client.call("session.getLastId", json!({})).await, json!({"sessionId": "older"}));
    let filter = json!({"filter": {"cwd": elsewhere}});
    let listed = client.call("session.list", filter).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    let found = client.call("session.getMetadata", json!({"sessionId": "older"})).await;
    let found = &found["session"];
    assert_eq!(found["clientName"], "tester");
    assert_eq!(found["summary"], "to the older one");
    assert_eq!(found["context"]["cwd"], daemon.work().to_str().unwrap());
    assert_eq!((&found["isRemote"], &found["isDetached"]), (&json!(false), &json!(false)));
    let none = client.call("session.getMetadata", json!({"sessionId": "nobody"})).await;
    assert_eq!(none, json!({}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_name_by_a_person_wins_and_outlives_the_session() {
    let daemon = Daemon::playing([Turn::user("first words").says("hi")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    assert_eq!(session.call("session.name.get", json!({})).await, json!({}));
    session.ask("first words").await;
    assert_eq!(session.call("session.name.get", json!({})).await["name"], "first words");
    let auto = |name: &str| json!({"summary": name});
    let applied = session.call("session.name.setAuto", auto("better words")).await;
    assert_eq!(applied, json!({"applied": true}));
    session.call("session.name.set", json!({"name": "  Mine  "})).await;
    let title = session.next_where("the person's title", |event| {
        event["type"] == "session.title_changed" && event["data"]["title"] == "Mine"
    });
    title.await;
    let applied = session.call("session.name.setAuto", auto("worse words")).await;
    assert_eq!(applied, json!({"applied": false}));
    let empty = session.refused("session.name.set", json!({"name": "  "})).await;
    assert_eq!((empty.code, empty.message.contains("name")), (-32602, true));
    session.destroy().await;
    let found = client.call("session.getMetadata", json!({"sessionId": session.id})).await;
    assert_eq!(found["session"]["name"], "Mine");
    let session = client.resume(&session.id, json!({})).await;
    assert_eq!(session.call("session.name.get", json!({})).await["name"], "Mine");
    daemon.finish().await;
}

#[tokio::test]
async fn a_deleted_session_is_gone_for_everyone() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let (client, other) = (daemon.client(), daemon.client());
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    session.call("session.plan.update", json!({"content": "a file in its folder"})).await;
    let watcher = other.resume(&session.id, json!({})).await;
    let of = json!({"sessionId": session.id});
    assert_eq!(client.call("session.delete", of.clone()).await, json!({"success": true}));
    client.note("session.lifecycle", |note| note["type"] == "session.deleted").await;
    let gone = client.call("session.delete", of.clone()).await;
    assert_eq!(gone["success"], false);
    assert_eq!(client.call("session.getMetadata", of.clone()).await, json!({}));
    for one in [&session, &watcher] {
        let error = one.refused("session.send", json!({"prompt": "anybody?"})).await;
        assert!(error.message.contains("Session not found"), "{error}");
    }
    let error = client.refused("session.resume", of).await;
    assert!(error.message.contains(&format!("Session not found: {}", session.id)), "{error}");
    assert!(!daemon.app.services.session_folder(&session.id.as_str().into()).exists());
    daemon.finish().await;
}

async fn two_turns(daemon: &Daemon) -> Session {
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    session
}

#[tokio::test]
async fn a_fork_has_the_whole_history_and_a_life_of_its_own() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let session = two_turns(&daemon).await;
    let before = session.messages().await;
    let params = json!({"sessionId": session.id, "name": "The other way"});
    let forked = session.client().call("sessions.fork", params).await;
    assert_eq!(forked["name"], "The other way");
    let id = forked["sessionId"].as_str().unwrap();
    let mut fork = session.client().resume(id, json!({})).await;
    let copied = fork.messages().await;
    assert_eq!(copied[..before.len()], before[..], "the history is the same, event by event");
    assert_eq!(fork.call("session.name.get", json!({})).await["name"], "The other way");
    fork.ask("three").await;
    let request = daemon.script().last_request();
    assert_eq!(request.messages().len(), 6);
    assert_eq!(session.messages().await, before, "the source is untouched");
    let found = session.client().call("session.getMetadata", json!({"sessionId": id})).await;
    assert_eq!(found["session"]["name"], "The other way");
    daemon.finish().await;
}

#[tokio::test]
async fn a_fork_at_an_event_ends_before_it() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("instead of two").says("3"),
    ])
    .await;
    let session = two_turns(&daemon).await;
    let history = session.messages().await;
    let two = history.iter().find(|event| event["data"]["content"] == "two").unwrap();
    let params = json!({"sessionId": session.id, "toEventId": two["id"]});
    let forked = session.client().call("sessions.fork", params).await;
    let mut fork = session.client().resume(forked["sessionId"].as_str().unwrap(), json!({})).await;
    assert_eq!(users(&fork.messages().await), ["one"]);
    fork.ask("instead of two").await;
    let request = daemon.script().last_request();
    let said: Vec<String> = request.messages()[1..].iter().map(text_of).collect();
    let wanted = ["one", "1", "instead of two"];
    let fits = said.len() == 3 && said.iter().zip(wanted).all(|(has, ends)| has.ends_with(ends));
    assert!(fits, "the model heard {said:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_fork_in_the_middle_of_a_turn_is_at_rest() {
    use loopd_tests::call;
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "bash", json!({"command": "echo x"}))]),
        Turn::results(["x"]).says("done"),
        Turn::user("go on").says("fine"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let history = session.messages().await;
    let complete = history.iter().find(|event| event["type"] == "tool.execution_complete");
    let params = json!({"sessionId": session.id, "toEventId": complete.unwrap()["id"]});
    let forked = session.client().call("sessions.fork", params).await;
    let mut fork = session.client().resume(forked["sessionId"].as_str().unwrap(), json!({})).await;
    let events = fork.messages().await;
    assert!(kinds(&events).contains(&"tool.execution_complete"), "the open call was closed");
    fork.ask("go on").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_fork_of_what_is_not_there_says_what_is_missing() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let client = session.client();
    let error = client.refused("sessions.fork", json!({"sessionId": "nobody"})).await;
    assert!(error.message.contains("nobody"), "{error}");
    let params = json!({"sessionId": session.id, "toEventId": "no-event"});
    let error = client.refused("sessions.fork", params).await;
    assert!(error.message.contains("no-event"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_headless_daemon_has_no_session_in_front() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let client = session.client();
    assert_eq!(client.call("session.getForeground", json!({})).await, json!({}));
    let set = client.call("session.setForeground", json!({"sessionId": session.id})).await;
    assert_eq!(set["success"], false);
    daemon.finish().await;
}
