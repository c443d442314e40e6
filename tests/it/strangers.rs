//! Clients that have not shown their token: small frames, little time, slow answers.

use std::time::Duration;

use loopd_tests::{Daemon, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

const TOKEN: &str = "open sesame";

async fn guarded() -> Daemon {
    Daemon::builder().token(TOKEN).start().await
}

fn framed(message: &Value) -> Vec<u8> {
    let message = message.to_string();
    format!("Content-Length: {}\r\n\r\n{message}", message.len()).into_bytes()
}

fn request(id: u64, method: &str, params: Value) -> Vec<u8> {
    framed(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Reads everything until the daemon closes the connection.
async fn rest(mut stream: DuplexStream) -> String {
    let mut said = String::new();
    within("the daemon to close", stream.read_to_string(&mut said))
        .await
        .unwrap();
    said
}

#[tokio::test]
async fn a_stranger_sends_at_most_64_kib() {
    let daemon = guarded().await;
    let mut stream = daemon.raw_connection();
    stream
        .write_all(b"Content-Length: 65537\r\n\r\n")
        .await
        .unwrap();
    let said = rest(stream).await;
    assert!(said.contains("the limit is 65536"), "{said}");
    // With the token, the same connection may send much more.
    let client = daemon.client();
    client.call("connect", json!({"token": TOKEN})).await;
    let long = "x".repeat(1024 * 1024);
    client.call("ping", json!({"message": long})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_malformed_message_of_a_stranger_ends_the_connection() {
    let daemon = guarded().await;
    let mut stream = daemon.raw_connection();
    stream
        .write_all(b"Content-Length: 2\r\n\r\n{]")
        .await
        .unwrap();
    let said = rest(stream).await;
    assert!(said.contains("-32700"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_stranger_has_five_seconds() {
    let daemon = guarded().await;
    let friend = daemon.client();
    friend.call("connect", json!({"token": TOKEN})).await;
    let ping = request(1, "ping", json!({}));
    let cut = [&b""[..], b"Content-Len", &ping].map(|first| {
        let mut stream = daemon.raw_connection();
        async move {
            let started = Instant::now();
            stream.write_all(first).await.unwrap();
            (rest(stream).await, started.elapsed())
        }
    });
    for (said, time) in futures::future::join_all(cut).await {
        assert!(said.contains("came within 5 s"), "{said}");
        assert_eq!(time.as_secs(), 5);
    }
    friend.call("ping", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn wrong_tokens_are_answered_later_and_later_and_right_ones_at_once() {
    let daemon = guarded().await;
    let mut waits = Vec::new();
    for _ in 0..4 {
        let started = Instant::now();
        let client = daemon.client();
        let error = client.refused("connect", json!({"token": "sesame"})).await;
        assert_eq!(error.code, -32002);
        waits.push(started.elapsed());
    }
    let least = [50, 100, 200, 400].map(Duration::from_millis);
    let late = waits.iter().zip(&least).all(|(wait, least)| wait >= least);
    assert!(late, "{waits:?}");
    let started = Instant::now();
    let friend = daemon.client();
    friend.call("connect", json!({"token": TOKEN})).await;
    assert!(started.elapsed() < Duration::from_millis(400));
    daemon.finish().await;
}

#[tokio::test]
async fn many_wrong_tokens_end_the_connection() {
    let daemon = guarded().await;
    let mut stream = daemon.raw_connection();
    for id in 0..50 {
        // The daemon may hang up before it has read everything.
        let guess = json!({"token": format!("guess {id}")});
        stream.write_all(&request(id, "connect", guess)).await.ok();
    }
    let said = rest(stream).await;
    assert!(said.contains("5 wrong tokens were shown"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn there_are_only_so_many_strangers_at_a_time() {
    let daemon = guarded().await;
    let mut strangers: Vec<DuplexStream> = (0..256).map(|_| daemon.raw_connection()).collect();
    // Each of them is known as soon as the daemon answers.
    for stream in &mut strangers {
        stream
            .write_all(&request(1, "ping", json!({})))
            .await
            .unwrap();
        let mut byte = [0];
        within("an answer", stream.read_exact(&mut byte))
            .await
            .unwrap();
    }
    let said = rest(daemon.raw_connection()).await;
    assert!(
        said.contains("256 connections have not said who they are"),
        "{said}"
    );
    strangers.pop();
    // The daemon notices at its own pace that one has left.
    within("a free place", async {
        loop {
            let mut stream = daemon.raw_connection();
            stream
                .write_all(&request(1, "ping", json!({})))
                .await
                .unwrap();
            let mut head = vec![0; 200];
            let read = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            if head.contains("AUTHENTICATION_FAILED") {
                return;
            }
        }
    })
    .await;
    daemon.finish().await;
}
