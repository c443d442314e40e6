//! Relays: what they say when the daemon ends a connection, and whom they do not serve.

use std::path::Path;
use std::process::Stdio;

use loopd_proto::wire::FrameReader;
use loopd_tests::binary::Loopd;
use loopd_tests::within;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;

fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;

/// Sends bytes through a relay, reads until it ends, and returns the replies and what it said.
async fn through_a_relay(bytes: &str) -> (Vec<Value>, String) {
    let home = TempDir::new().unwrap();
    let mut child = Loopd::command(home.path())
        .args(["--headless", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(bytes.as_bytes()).await.unwrap();
    let mut frames = FrameReader::new(child.stdout.take().unwrap(), 1 << 20, 64);
    let mut replies: Vec<Value> = Vec::new();
    within("the relay to end", async {
        while let Some(frame) = frames.next().await.unwrap() {
            replies.push(serde_json::from_slice(&frame).unwrap());
        }
    })
    .await;
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    within("stderr to end", stderr.read_to_string(&mut said))
        .await
        .unwrap();
    let status = Loopd { child }.exited().await;
    assert!(!status.success(), "{said}");
    (replies, said)
}

#[tokio::test]
async fn a_relay_says_why_the_daemon_ended_the_connection() {
    let malformed = framed("{]");
    let lost = "Content-Length: nonsense\r\n\r\n";
    let bytes = [&malformed, &framed(PING), lost].concat();
    let (replies, said) = through_a_relay(&bytes).await;
    let codes: Vec<Option<i64>> = replies
        .iter()
        .map(|reply| reply["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes, [Some(-32700), None, Some(-32700)]);
    assert!(
        said.contains("header line `Content-Length: nonsense` is malformed"),
        "{said}"
    );
    assert!(!said.contains("daemon is gone"), "{said}");
}

#[tokio::test]
async fn a_relay_serves_no_other_protocol() {
    let (replies, said) = through_a_relay("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(replies.is_empty());
    assert!(said.contains("the stream starts with byte 0x47"), "{said}");
}

/// Starts `loopd` on a TCP port.
async fn on_tcp(home: &Path, more: &[&str]) -> (Child, u16) {
    let mut child = Loopd::command(home)
        .args(["--headless", "--port", "0"])
        .args(more)
        .env("COPILOT_CONNECTION_TOKEN", "open sesame")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within("the port", lines.next_line()).await.unwrap();
    let line = line.unwrap();
    let (_, port) = line.split_once("listening on port ").expect(&line);
    (child, port.parse().unwrap())
}

#[tokio::test]
async fn a_browser_is_cut_off_at_its_first_bytes() {
    for more in [&[][..], &["--private"]] {
        let home = TempDir::new().unwrap();
        let (child, port) = on_tcp(home.path(), more).await;
        let body = framed(PING);
        for method in ["GET", "POST", "OPTIONS", "PUT", "HEAD", "CONNECT", "COPY"] {
            let mut stream = TcpStream::connect(("localhost", port)).await.unwrap();
            let request = format!("{method} /a:b HTTP/1.1\r\nHost: localhost:{port}\r\n{body}");
            // The first bytes only; they are enough.
            stream.write_all(&request.as_bytes()[..8]).await.unwrap();
            let mut said = Vec::new();
            let read = stream.read_to_end(&mut said);
            // A reset is as good as an end.
            within("the end of the connection", read).await.ok();
            assert_eq!(String::from_utf8_lossy(&said), "", "{method} {more:?}");
        }
        let loopd = Loopd { child };
        loopd.terminate();
        assert!(loopd.exited().await.success());
    }
}

#[tokio::test]
async fn a_silent_tcp_client_is_cut_off_with_a_reason() {
    let home = TempDir::new().unwrap();
    let (child, port) = on_tcp(home.path(), &[]).await;
    let mut stream = TcpStream::connect(("localhost", port)).await.unwrap();
    let mut said = String::new();
    within(
        "the end of the connection",
        stream.read_to_string(&mut said),
    )
    .await
    .unwrap();
    assert!(said.contains("no request came within 5 s"), "{said}");
    let loopd = Loopd { child };
    loopd.terminate();
    assert!(loopd.exited().await.success());
}

#[tokio::test]
async fn silent_tcp_clients_keep_nobody_out() {
    let home = TempDir::new().unwrap();
    let (child, port) = on_tcp(home.path(), &[]).await;
    let connect = || TcpStream::connect(("localhost", port));
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(connect().await.unwrap());
    }
    let mut stream = connect().await.unwrap();
    stream.write_all(framed(PING).as_bytes()).await.unwrap();
    let mut frames = FrameReader::new(stream, 1 << 20, 64);
    let reply = within("the reply", frames.next()).await.unwrap().unwrap();
    let reply: Value = serde_json::from_slice(&reply).unwrap();
    assert_eq!(
        reply["error"]["code"], -32002,
        "the token is wanted: {reply}"
    );
    // The oldest one made room, the last one still waits.
    let mut byte = [0];
    let ended = within("the end of the oldest", silent[0].read(&mut byte)).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    let waits = silent[299].try_read(&mut byte);
    assert!(
        waits.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock),
        "the last one was cut off"
    );
    let loopd = Loopd { child };
    loopd.terminate();
    assert!(loopd.exited().await.success());
}
