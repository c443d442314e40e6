//! Reading a session's events: everything stored, or from a cursor on.

use loopd_tests::{Daemon, Gate, Session, Turn};
use serde_json::{Value, json};

async fn read(session: &Session, params: Value) -> (Vec<Value>, Value) {
    let read = session.call("session.eventLog.read", params).await;
    assert_eq!(read["cursorStatus"], "ok");
    (read["events"].as_array().unwrap().clone(), read)
}

async fn tail(session: &Session) -> Value {
    session.call("session.eventLog.tail", json!({})).await["cursor"].clone()
}

#[tokio::test]
async fn the_stored_events_are_those_that_were_sent() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("hello").await;
    let sent: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|event| event["ephemeral"] != true)
        .collect();
    assert_eq!(session.messages().await, sent);
    daemon.finish().await;
}

#[tokio::test]
async fn a_log_is_read_page_by_page_without_gaps_or_repeats() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let mut all = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut params = json!({"max": 3});
        if !cursor.is_null() {
            params["cursor"] = cursor.clone();
        }
        let (events, read) = read(&session, params).await;
        assert!(events.len() <= 3);
        all.extend(events);
        cursor = read["cursor"].clone();
        if read["hasMore"] == false {
            break;
        }
    }
    assert_eq!(all, session.messages().await);
    assert_eq!(cursor, tail(&session).await);
    daemon.finish().await;
}

#[tokio::test]
async fn a_follower_gets_what_is_told_in_passing_too() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let cursor = tail(&session).await;
    session.ask("hello").await;
    let (events, _) = read(&session, json!({"cursor": cursor})).await;
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert!(kinds.contains(&&json!("session.idle")), "{kinds:?}");
    assert!(kinds.contains(&&json!("assistant.message")), "{kinds:?}");
    let (events, _) = read(&session, json!({"cursor": cursor, "types": ["assistant.message"]})).await;
    assert_eq!(events.len(), 1);
    let (events, _) = read(&session, json!({"cursor": cursor, "types": "user.message"})).await;
    assert_eq!(events.len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn a_read_that_waits_ends_with_the_event_it_waited_for() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("hello").says("hi").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    gate.reached().await;
    let cursor = tail(&session).await;
    let params = json!({"cursor": cursor, "waitMs": 60_000, "types": ["assistant.turn_end"]});
    let waiting = session.start("session.eventLog.read", params);
    gate.open();
    let read = waiting.await.unwrap();
    assert_eq!(read["events"][0]["type"], "assistant.turn_end");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_read_that_waits_in_vain_ends_empty() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let cursor = tail(&session).await;
    let (events, read) = read(&session, json!({"cursor": cursor, "waitMs": 1})).await;
    assert_eq!((events, &read["hasMore"]), (vec![], &json!(false)));
    daemon.finish().await;
}

#[tokio::test]
async fn a_cursor_outlives_the_session_it_was_taken_from() {
    let turns = ["one", "two", "three"].map(|text| Turn::user(text).says("ok"));
    let daemon = Daemon::playing(turns).await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("one").await;
    let cursor = tail(&session).await;
    let known = session.messages().await.len();
    session.destroy().await;
    let mut session = client.resume(&session.id, json!({})).await;
    session.ask("two").await;
    session.ask("three").await;
    let (events, _) = read(&session, json!({"cursor": cursor, "max": 1000})).await;
    let durable: Vec<Value> = events.into_iter().filter(|event| event["ephemeral"] != true).collect();
    let missed = session.messages().await[known..].to_vec();
    assert_eq!(durable, missed, "a client that comes back gets all that it missed");
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_not_a_cursor_is_refused_by_name() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    for cursor in ["", "yesterday", "1", "1.x", "-1.0"] {
        let error = session.refused("session.eventLog.read", json!({"cursor": cursor})).await;
        assert_eq!((error.code, error.message.contains("cursor")), (-32602, true), "{error}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_interest_is_registered_and_released() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let params = json!({"eventType": "mcp.oauth_required"});
    let interest = session.call("session.eventLog.registerInterest", params).await;
    let handle = json!({"handle": interest["handle"]});
    let released = session.call("session.eventLog.releaseInterest", handle).await;
    assert_eq!(released, json!({"success": true}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_line_in_the_log_is_an_event_for_people() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    for (level, kind) in [("info", "session.info"), ("warning", "session.warning"), ("error", "session.error")] {
        let params = json!({"message": "look here", "level": level, "url": "https://example.com"});
        let logged = session.call("session.log", params).await;
        let event = session.next(kind).await;
        assert_eq!(event["id"], logged["eventId"]);
        assert_eq!(event["data"]["message"], "look here");
    }
    let params = json!({"message": "only now", "ephemeral": true});
    session.call("session.log", params).await;
    let event = session.next("session.info").await;
    assert_eq!(event["ephemeral"], true);
    let stored = session.messages().await;
    assert_eq!(stored.len(), 4, "the ephemeral line is not stored: {stored:?}");
    daemon.finish().await;
}
