//! A client that does not read: it is cut off, harms nobody, and catches up when it comes back.

use loopd_tests::{Daemon, Session, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// A connection that asks to hear a session and then never reads.
async fn deaf_listener(daemon: &Daemon, session: &mut Session) -> DuplexStream {
    let mut stream = daemon.raw_connection();
    let params = json!({"sessionId": session.id});
    let resume = json!({"jsonrpc": "2.0", "id": 1, "method": "session.resume", "params": params});
    stream
        .write_all(format!("{resume}\n").as_bytes())
        .await
        .unwrap();
    session.next("session.resume").await;
    stream
}

#[tokio::test]
async fn it_is_cut_off_and_the_others_hear_everything() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let mut deaf = deaf_listener(&daemon, &mut session).await;
    let line = "x".repeat(1024 * 1024);
    for _ in 0..24 {
        session
            .call("session.log", json!({ "message": line }))
            .await;
        session.next("session.info").await;
    }
    let mut heard = Vec::new();
    let rest = deaf.read_to_end(&mut heard);
    within("the deaf connection to be cut", rest).await.unwrap();
    assert!(heard.len() < 24 * 1024 * 1024, "it was not cut off");
    assert_eq!(session.count("session.info"), 24);
    daemon.finish().await;
}

#[tokio::test]
async fn it_is_told_from_where_on_it_missed_events() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let mut deaf = deaf_listener(&daemon, &mut session).await;
    let line = "x".repeat(1024 * 1024 - 8);
    // The last but one of them is too much. The reader wakes up right after that.
    for number in 0..18 {
        let message = format!("{number} {line}");
        session
            .call("session.log", json!({ "message": message }))
            .await;
        session.next("session.info").await;
    }
    let mut heard = String::new();
    let rest = deaf.read_to_string(&mut heard);
    within("the deaf connection to be cut", rest).await.unwrap();
    let messages: Vec<Value> = heard
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let number = |event: &Value| {
        let text = event["data"]["message"].as_str()?;
        text.split_once(' ')?.0.parse::<u64>().ok()
    };
    let last = messages.last().unwrap();
    assert_eq!(last["method"], "loopd.lagged", "{last}");
    assert_eq!(last["params"]["sessions"][0]["sessionId"], session.id);
    let cursor = &last["params"]["sessions"][0]["cursor"];
    let seen = messages
        .iter()
        .filter_map(|message| number(&message["params"]["event"]));
    let mut seen: Vec<u64> = seen.collect();
    let params = json!({"cursor": cursor, "max": 100});
    let missed = session.call("session.eventLog.read", params).await;
    let missed = missed["events"].as_array().unwrap();
    seen.extend(missed.iter().filter_map(number));
    assert_eq!(seen, (0..18).collect::<Vec<u64>>());
    daemon.finish().await;
}

#[tokio::test]
async fn it_catches_up_from_where_it_was() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let late = daemon.client();
    let before = late.resume(&session.id, json!({})).await;
    let cursor = before.call("session.eventLog.tail", json!({})).await["cursor"].clone();
    late.vanish().await;
    // More than is kept in memory.
    for number in 0..600 {
        let message = format!("line {number}");
        session
            .call("session.log", json!({ "message": message }))
            .await;
    }
    let again = daemon
        .client()
        .resume(&session.id, json!({"disableResume": true}))
        .await;
    let mut lines = Vec::new();
    let mut at = cursor;
    loop {
        let read = again
            .call("session.eventLog.read", json!({"cursor": at, "max": 100}))
            .await;
        for event in read["events"].as_array().unwrap() {
            if event["type"] == "session.info" {
                lines.push(event["data"]["message"].clone());
            }
        }
        at = read["cursor"].clone();
        if read["hasMore"] == false {
            break;
        }
    }
    let expected: Vec<Value> = (0..600)
        .map(|number| json!(format!("line {number}")))
        .collect();
    assert_eq!(lines, expected, "no gaps and no repeats");
    session
        .next_where("the last line", |event| {
            event["data"]["message"] == "line 599"
        })
        .await;
    daemon.finish().await;
}
