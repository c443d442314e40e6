//! Hooks that are addresses.

use loopd_tests::{Daemon, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::support::{bash, end_of, one_call, warning, without_hooks, write_hooks};

/// A server that answers each request the same; `None` never answers.
async fn server(answer: Option<(u16, String)>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        let mut silent = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut seen = Vec::new();
            let mut buffer = [0; 4096];
            while !String::from_utf8_lossy(&seen).contains("toolName") {
                match stream.read(&mut buffer).await {
                    Ok(count) if count > 0 => seen.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let Some((status, body)) = &answer else {
                silent.push(stream);
                continue;
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} So\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.ok();
            stream.write_all(body.as_bytes()).await.ok();
            stream.shutdown().await.ok();
        }
    });
    (address, task)
}

async fn daemon(result: &str, hooks: &Value) -> Daemon {
    let script = Script::play(one_call(bash("c", "echo hi"), result)).await;
    let builder = Daemon::builder().script(script);
    let daemon = builder.env("COPILOT_HOOK_ALLOW_LOCALHOST", "1").start();
    let daemon = daemon.await;
    write_hooks(&daemon, hooks);
    daemon
}

fn hook(kind: &str, url: &str) -> Value {
    let mut hooks = json!({});
    hooks[kind] = json!([{"type": "http", "url": url, "timeoutSec": 1}]);
    hooks
}

#[tokio::test]
async fn the_answer_of_an_address_is_read_like_that_of_a_command() {
    let answer = json!({"additionalContext": "told by the address"}).to_string();
    let (address, server) = server(Some((200, answer))).await;
    let hooks = hook("postToolUse", &format!("http://{address}/hook"));
    let daemon = daemon("told by the address", &hooks).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.ask("go").await;
    server.abort();
    daemon.finish().await;
}

#[tokio::test]
async fn an_address_that_fails_is_reported() {
    let nonsense = Some((200, "well".to_owned()));
    let table = [
        (Some((500, "{}".to_owned())), "/hook has the status 500"),
        (nonsense, "not one JSON object"),
        (
            Some((200, "x".repeat(2_000_000))),
            "more than 1048576 bytes",
        ),
        (None, "did not answer within 1 s"),
    ];
    for (answer, cause) in table {
        let (address, server) = server(answer).await;
        let hooks = hook("postToolUse", &format!("http://{address}/hook"));
        let daemon = daemon("hi", &hooks).await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.approve_all().await;
        session.send("go").await;
        let told = warning(&mut session, "hook_failed").await;
        assert!(told.contains(cause), "{told}");
        session.next("session.idle").await;
        server.abort();
        daemon.finish().await;
    }
}

/// A guard may be asked over TLS only; a server without a certificate, or none at all, denies.
#[tokio::test]
async fn an_address_that_cannot_prove_who_it_is_guards_by_denying() {
    let allow = json!({"permissionDecision": "allow"}).to_string();
    let (address, server) = server(Some((200, allow))).await;
    for address in [address.as_str(), "127.0.0.1:1"] {
        let hooks = hook("preToolUse", &format!("https://{address}/hook"));
        let daemon = daemon("Denied by preToolUse hook", &hooks).await;
        let mut session = daemon.client().create(without_hooks()).await;
        session.approve_all().await;
        session.send("go").await;
        let end = end_of(&mut session, "c").await;
        assert_eq!(end["error"]["code"], "denied");
        let message = end["error"]["message"].as_str().unwrap();
        assert!(message.contains("onFailure"), "{message}");
        let named = format!("because https://{address}/hook ");
        assert!(message.contains(&named), "{message}");
        assert!(!message.contains("model provider"), "{message}");
        session.next("session.idle").await;
        daemon.finish().await;
    }
    server.abort();
}

#[tokio::test]
async fn an_address_without_encryption_cannot_guard_and_people_are_told() {
    let hooks = hook("preToolUse", "http://127.0.0.1:1/hook");
    let daemon = daemon("hi", &hooks).await;
    let mut session = daemon.client().create(without_hooks()).await;
    session.approve_all().await;
    session.send("go").await;
    let told = warning(&mut session, "hook_file").await;
    assert!(told.contains("https://"), "{told}");
    session.next("session.idle").await;
    daemon.finish().await;
}
