//! Sessions by their id alone, live or stored: found, measured, ended and removed.

use std::time::Duration;

use loopd_tests::{Client, Daemon, Gate, Turn};
use serde_json::{Value, json};

fn ids(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["sessionId"].as_str().unwrap())
        .collect()
}

async fn list(client: &Client, params: Value) -> Value {
    client.call("sessions.list", params).await
}

#[tokio::test]
async fn a_session_is_saved_when_it_exists() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    assert_eq!(session.call("sessions.save", json!({})).await, json!({}));
    session.destroy().await;
    assert_eq!(session.call("sessions.save", json!({})).await, json!({}));
    let unknown = json!({"sessionId": "nobody"});
    for method in ["sessions.save", "sessions.close", "sessions.releaseLock"] {
        let error = client.refused(method, unknown.clone()).await;
        assert!(
            error.message.contains("Session not found: nobody"),
            "{error}"
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn closing_ends_a_session_for_everybody_and_keeps_its_log() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let (one, two) = (daemon.client(), daemon.client());
    let mut session = one.create(json!({})).await;
    session.ask("hello").await;
    let mut other = two.resume(&session.id, json!({})).await;
    let in_use = json!({"sessionIds": [session.id, "nobody"]});
    assert_eq!(
        one.call("sessions.checkInUse", in_use.clone()).await,
        json!({"inUse": [session.id]})
    );
    // Whoever is attached hears it, also when a stranger to the session asked for it.
    let stranger = daemon.client();
    let of = json!({"sessionId": session.id});
    assert_eq!(stranger.call("sessions.close", of.clone()).await, json!({}));
    session.next("session.shutdown").await;
    other.next("session.shutdown").await;
    let error = other
        .refused("session.send", json!({"prompt": "more"}))
        .await;
    assert!(error.message.contains("Session not found"), "{error}");
    assert_eq!(
        one.call("sessions.checkInUse", in_use).await,
        json!({"inUse": []})
    );
    assert_eq!(
        one.call("sessions.releaseLock", of.clone()).await,
        json!({})
    );
    // A second close finds it closed.
    assert_eq!(one.call("sessions.close", of).await, json!({}));
    let again = one.resume(&session.id, json!({})).await;
    let stored = again.messages().await;
    assert!(
        stored
            .iter()
            .any(|event| event["data"]["content"] == "hello")
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_session_nobody_is_attached_to_is_not_in_use() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    client.vanish().await;
    let other = daemon.client();
    let asked = other.call("sessions.checkInUse", json!({"sessionIds": [session.id]}));
    assert_eq!(asked.await, json!({"inUse": []}));
    daemon.finish().await;
}

#[tokio::test]
async fn sessions_are_listed_by_place_and_described_as_far_as_asked() {
    let daemon = Daemon::playing([Turn::user("to the first").says("hi")]).await;
    let client = daemon.client();
    let here = daemon.file("here");
    std::fs::create_dir(&here).unwrap();
    let in_here = json!({"workingDirectory": here, "clientName": "me"});
    let mut first = client.create(in_here.clone()).await;
    let second = client.create(in_here).await;
    let elsewhere = client.create(json!({})).await;
    first.ask("to the first").await;
    let filter = json!({"filter": {"cwd": here}});
    let whole = list(&client, filter.clone()).await;
    assert_eq!(ids(&whole), [&first.id, &second.id]);
    assert_eq!(whole["sessions"][0]["context"]["cwd"], json!(here));
    assert_eq!(whole["sessions"][0]["clientName"], "me");
    let mut limited = filter.clone();
    limited["metadataLimit"] = json!(1);
    let part = list(&client, limited).await;
    assert_eq!(ids(&part), [&first.id, &second.id]);
    assert_eq!(part["sessions"][0], whole["sessions"][0]);
    assert_eq!(part["sessions"][1]["context"], Value::Null);
    assert_eq!(
        part["sessions"][1]["modifiedTime"],
        whole["sessions"][1]["modifiedTime"]
    );
    assert_eq!(ids(&list(&client, json!({})).await).len(), 3);
    assert_eq!(
        ids(&list(&client, json!({"source": "remote"})).await).len(),
        0
    );
    for wrong in [
        json!({"metadataLimit": -1}),
        json!({"source": "moon"}),
        json!({"filter": 1}),
    ] {
        let error = client.refused("sessions.list", wrong.clone()).await;
        assert_eq!(error.code, -32602, "{wrong}: {error}");
    }
    let last = |params: Value| client.call("sessions.getLastForContext", params);
    assert_eq!(
        last(json!({"context": {"cwd": here}})).await["sessionId"],
        json!(first.id)
    );
    assert_eq!(
        last(json!({"context": {"cwd": "/nowhere"}})).await,
        json!({})
    );
    assert_eq!(last(json!({})).await["sessionId"], json!(first.id));
    drop(elsewhere);
    daemon.finish().await;
}

#[tokio::test]
async fn a_beginning_of_an_id_finds_the_one_session_that_has_it() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    for id in ["abcdefg-1", "abcdefg-2", "zyxwvut-1"] {
        client.create(json!({"sessionId": id})).await;
    }
    let find = |prefix: &str| client.call("sessions.findByPrefix", json!({"prefix": prefix}));
    assert_eq!(find("zyxwvut").await, json!({"sessionId": "zyxwvut-1"}));
    assert_eq!(find("abcdefg").await, json!({}), "two fit");
    assert_eq!(find("abcdefg-2").await, json!({"sessionId": "abcdefg-2"}));
    assert_eq!(find("%%%%%%%").await, json!({}));
    let error = client
        .refused("sessions.findByPrefix", json!({"prefix": "zyx"}))
        .await;
    assert_eq!(
        (error.code, error.message.contains("prefix")),
        (-32602, true)
    );
    let task = client.call("sessions.findByTaskId", json!({"taskId": "task-1"}));
    assert_eq!(
        task.await,
        json!({}),
        "no session belongs to a task elsewhere"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_client_knows_of_a_session_is_completed() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({"clientName": "me"})).await;
    session
        .call("session.name.set", json!({"name": "Mine"}))
        .await;
    let when = "2026-01-02T03:04:05.000Z";
    let given = |id: &str| json!({"sessionId": id, "startTime": when, "modifiedTime": when, "isRemote": false});
    let mut named = given(&session.id);
    named["name"] = json!("Given");
    let params = json!({"sessions": [given(&session.id), named, given("nobody")]});
    let rich = client.call("sessions.enrichMetadata", params).await;
    let [filled, named, stranger] = rich["sessions"].as_array().unwrap().as_slice() else {
        panic!("{rich}");
    };
    assert_eq!(
        (&filled["name"], &filled["clientName"], &filled["isRemote"]),
        (&json!("Mine"), &json!("me"), &json!(false))
    );
    assert!(filled["context"]["cwd"].is_string());
    assert_eq!(filled["startTime"], when);
    assert_eq!(named["name"], "Given");
    assert_eq!(stranger["context"], Value::Null);
    let mut remote = given("r");
    remote["isRemote"] = json!(true);
    let error = client
        .refused("sessions.enrichMetadata", json!({"sessions": [remote]}))
        .await;
    assert_eq!(error.code, -32602);
    daemon.finish().await;
}

#[tokio::test]
async fn sizes_count_the_log_and_the_folder() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let session = client.create(json!({})).await;
    let size = |sizes: &Value| sizes["sizes"][&session.id].as_u64().unwrap();
    let before = size(&client.call("sessions.getSizes", json!({})).await);
    assert!(before > 0);
    let note = "x".repeat(5_000);
    session.call("session.log", json!({"message": note})).await;
    session
        .call("session.plan.update", json!({"content": note}))
        .await;
    let after = size(&client.call("sessions.getSizes", json!({})).await);
    assert!(after >= before + 10_000, "{before} then {after}");
    daemon.finish().await;
}

#[tokio::test]
async fn deleting_many_ends_the_live_ones_and_leaves_nothing() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let mut live = client.create(json!({})).await;
    let stored = client.create(json!({})).await;
    stored
        .call("session.plan.update", json!({"content": "a plan"}))
        .await;
    stored.destroy().await;
    let kept = client.create(json!({})).await;
    let params = json!({"sessionIds": [live.id, stored.id, "../nobody"]});
    let freed = client.call("sessions.bulkDelete", params).await["freedBytes"].clone();
    assert!(freed[&live.id].as_u64().unwrap() > 0, "{freed}");
    assert!(freed[&stored.id].as_u64().unwrap() > 0, "{freed}");
    assert_eq!(freed["../nobody"], 0);
    live.next("session.shutdown").await;
    assert_eq!(ids(&list(&client, json!({})).await), [&kept.id]);
    let gone = client
        .note("session.lifecycle", |note| {
            note["type"] == "session.deleted"
        })
        .await;
    assert_eq!(gone["sessionId"], json!(live.id));
    let error = client
        .refused("session.resume", json!({"sessionId": stored.id}))
        .await;
    assert!(error.message.contains("Session not found"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn pruning_takes_old_sessions_but_no_live_or_named_ones() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let client = daemon.client();
    let mut old = client.create(json!({"sessionId": "old"})).await;
    // The title of a first message is not a name that somebody gave.
    old.ask("hello").await;
    let named = client.create(json!({"sessionId": "named"})).await;
    named
        .call("session.name.set", json!({"name": "Mine"}))
        .await;
    let spared = client.create(json!({"sessionId": "spared"})).await;
    for session in [&old, &named, &spared] {
        session.destroy().await;
    }
    let live = client.create(json!({"sessionId": "live"})).await;
    let prune = |params: Value| client.call("sessions.pruneOld", params);
    let recent = prune(json!({"olderThanDays": 1})).await;
    assert_eq!(
        (&recent["deleted"], &recent["skipped"]),
        (&json!([]), &json!([]))
    );
    let mut params = json!({"olderThanDays": 0, "dryRun": true, "excludeSessionIds": ["spared"]});
    let planned = prune(params.clone()).await;
    assert_eq!(planned["candidates"], json!(["old"]));
    assert_eq!(planned["skipped"], json!(["live", "named"]));
    assert_eq!(
        (&planned["deleted"], &planned["dryRun"]),
        (&json!([]), &json!(true))
    );
    let bytes = planned["freedBytes"].as_u64().unwrap();
    assert!(bytes > 0);
    params["dryRun"] = json!(false);
    let done = prune(params.clone()).await;
    assert_eq!(
        (&done["deleted"], &done["freedBytes"], &done["candidates"]),
        (&json!(["old"]), &json!(bytes), &json!([]))
    );
    params["includeNamed"] = json!(true);
    assert_eq!(prune(params).await["deleted"], json!(["named"]));
    let mut left = ids(&list(&client, json!({})).await)
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    left.sort();
    assert_eq!(left, ["live", "spared"]);
    let error = client
        .refused("sessions.pruneOld", json!({"olderThanDays": -1}))
        .await;
    assert_eq!(error.code, -32602);
    live.destroy().await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_close_in_the_middle_of_a_turn_stops_it() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("take long").held_by(&gate).says("late")]).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.send("take long").await;
    gate.reached().await;
    let closed = session.call("sessions.close", json!({}));
    let closed = tokio::time::timeout(Duration::from_secs(20), closed).await;
    assert_eq!(closed.unwrap(), json!({}));
    session.next("session.shutdown").await;
    daemon.finish().await;
}
