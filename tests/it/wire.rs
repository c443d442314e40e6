//! The wire as strangers see it: broken frames, unknown methods, bad parameters, tokens.

use loopd_proto::wire::FrameReader;
use loopd_tests::{Client, Daemon, Gate, Turn, within};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// Reads everything until the daemon closes the connection.
async fn rest(mut stream: DuplexStream) -> String {
    let mut bytes = Vec::new();
    within(
        "the daemon to close the connection",
        stream.read_to_end(&mut bytes),
    )
    .await
    .unwrap();
    String::from_utf8(bytes).unwrap()
}

fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

/// Whether the daemon still works for everybody else.
async fn still_serves(client: &Client) {
    client.call("ping", json!({})).await;
}

#[tokio::test]
async fn a_lost_framing_closes_only_its_own_connection() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let frames = [
        "Content-Length: nonsense\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n{}",
        "Content-Length: 99999999999999\r\n\r\n{}",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "CONNECT localhost:80 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        "\u{0}\u{1}\u{2}",
    ];
    for frame in frames {
        let mut stream = daemon.raw_connection();
        // The daemon may hang up before it has read everything.
        stream.write_all(frame.as_bytes()).await.ok();
        let answer = rest(stream).await;
        assert_eq!(
            answer.contains("error"),
            frame.starts_with("Content"),
            "{answer}"
        );
        still_serves(session.client()).await;
    }
    session.ask("hello").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_malformed_message_is_answered_and_the_connection_goes_on() {
    let daemon = Daemon::playing([]).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{deep}}}"#);
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    let old = r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#;
    let cases: [(&[u8], i64, Value); 8] = [
        (b"{oops", -32700, Value::Null),
        (b"\xff\xfe{}", -32700, Value::Null),
        (b"", -32700, Value::Null),
        (batch.as_bytes(), -32600, Value::Null),
        (br#"{"jsonrpc":"2.0"}"#, -32600, Value::Null),
        (br#""ping""#, -32600, Value::Null),
        (old.as_bytes(), -32600, json!(4)),
        (deep.as_bytes(), -32700, json!(5)),
    ];
    let stream = daemon.raw_connection();
    let (read, mut write) = tokio::io::split(stream);
    let mut frames = FrameReader::new(read, 1 << 20, 128);
    for (number, (message, code, id)) in cases.into_iter().enumerate() {
        let number = number + 100;
        let mut bytes = format!("Content-Length: {}\r\n\r\n", message.len()).into_bytes();
        bytes.extend_from_slice(message);
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping","params":{{}}}}"#);
        bytes.extend_from_slice(framed(&ping).as_bytes());
        write.write_all(&bytes).await.unwrap();
        let mut next = async || -> Value {
            let frame = within("a reply", frames.next()).await.unwrap().unwrap();
            serde_json::from_slice(&frame).unwrap()
        };
        let refused = next().await;
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&id, &json!(code))
        );
        assert_eq!(next().await["id"], number);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_frame_is_just_gone() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let mut stream = daemon.raw_connection();
    stream
        .write_all(b"Content-Length: 1000\r\n\r\n{\"jsonrpc\"")
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(rest(stream).await, "");
    still_serves(&client).await;
    daemon.finish().await;
}

#[tokio::test]
async fn lines_work_like_frames() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let stream = daemon.raw_connection();
    let mut stream = BufReader::new(stream);
    let provider = json!({"type": "openai", "baseUrl": daemon.script().url()});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "session.create",
            "params": {"sessionId": "by-line", "model": "scripted", "provider": provider}}),
        json!({"jsonrpc": "2.0", "id": "two", "method": "session.send",
            "params": {"sessionId": "by-line", "prompt": "hello"}}),
    ];
    let mut replies = Vec::new();
    for request in requests {
        let id = request["id"].clone();
        stream
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        replies.push(line_where(&mut stream, |message| message["id"] == id).await);
    }
    assert_eq!(replies[0]["result"]["sessionId"], "by-line");
    assert!(replies[1]["result"]["messageId"].is_string());
    line_where(&mut stream, |message| {
        message["params"]["event"]["type"] == "session.idle"
    })
    .await;
    daemon.finish().await;
}

/// Reads lines until one fits; every line is one JSON text.
async fn line_where(stream: &mut BufReader<DuplexStream>, fits: impl Fn(&Value) -> bool) -> Value {
    loop {
        let mut line = String::new();
        within("a line from the daemon", stream.read_line(&mut line))
            .await
            .unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if fits(&message) {
            return message;
        }
    }
}

#[tokio::test]
async fn an_unknown_method_is_said_to_be_unknown() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    for method in ["session.fly", "", "SESSION.CREATE", "loopd.secret"] {
        let error = client.refused(method, json!({})).await;
        assert_eq!(
            (error.code, error.message),
            (-32601, format!("Unhandled method {method}"))
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_refused_and_the_field_is_named() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let client = session.client();
    let id = session.id.as_str();
    let cases = [
        ("session.send", json!({"sessionId": id}), "prompt"),
        (
            "session.send",
            json!({"sessionId": id, "prompt": 7}),
            "prompt",
        ),
        (
            "session.send",
            json!({"sessionId": 7, "prompt": "x"}),
            "sessionId",
        ),
        (
            "session.send",
            json!({"sessionId": id, "prompt": "x", "mode": "soon"}),
            "mode",
        ),
        (
            "session.send",
            json!({"sessionId": id, "prompt": "x", "attachments": "x"}),
            "attachments",
        ),
        ("session.destroy", json!({}), "sessionId"),
        ("session.create", json!({"streaming": "yes"}), "streaming"),
        (
            "session.create",
            json!({"provider": {"baseUrl": 7}}),
            "baseUrl",
        ),
        ("session.create", json!({"tools": "none"}), "tools"),
        (
            "session.resume",
            json!({"sessionId": id, "continuePendingWork": "maybe"}),
            "continuePendingWork",
        ),
        (
            "session.eventLog.read",
            json!({"sessionId": id, "max": -1}),
            "max",
        ),
        (
            "session.permissions.handlePendingPermissionRequest",
            json!({"sessionId": id, "requestId": "r", "result": {"kind": "perhaps"}}),
            "result",
        ),
    ];
    let mut wrong = Vec::new();
    for (method, params, field) in cases {
        let error = client.refused(method, params.clone()).await;
        let names = error.message.contains(method) && error.message.contains(field);
        if error.code != -32602 || !names {
            wrong.push(format!("{method} {params} should name {field}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    daemon.finish().await;
}

#[tokio::test]
async fn parameters_by_position_are_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let error = session
        .client()
        .refused("session.send", json!([session.id, "hello"]))
        .await;
    assert_eq!(
        error.code, -32602,
        "parameters are one object with names: {error}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn unknown_members_are_no_reason_to_refuse() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi")]).await;
    let params = json!({"fromTheFuture": {"deep": [1, 2, 3]}});
    let mut session = daemon.client().create(params).await;
    let params = json!({"prompt": "hello", "alsoNew": true});
    session.call("session.send", params).await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_request_id_that_is_used_twice_at_once_is_refused() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("hello").says("hi").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    let mut stream = BufReader::new(daemon.raw_connection());
    let resume = json!({"jsonrpc": "2.0", "id": 1, "method": "session.resume", "params": {"sessionId": session.id}});
    stream
        .write_all(format!("{resume}\n").as_bytes())
        .await
        .unwrap();
    line_where(&mut stream, |message| message["id"] == 1).await;
    let wait = json!({"jsonrpc": "2.0", "id": 2, "method": "session.eventLog.read", "params": {
        "sessionId": session.id, "cursor": null, "waitMs": 60_000, "types": ["session.idle"]}});
    stream
        .write_all(format!("{wait}\n{wait}\n").as_bytes())
        .await
        .unwrap();
    let refused = line_where(&mut stream, |message| message["id"] == 2).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    session.send("hello").await;
    gate.open();
    let answered = line_where(&mut stream, |message| message["id"] == 2).await;
    assert_eq!(answered["result"]["events"][0]["type"], "session.idle");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_cancelled_request_ends_the_waiting_and_nothing_else() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("hello").says("hi").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.send("hello").await;
    gate.reached().await;
    let params = json!({"sessionId": session.id, "waitMs": 60_000, "types": ["session.idle"]});
    drop(session.client().pending("session.eventLog.read", params));
    still_serves(session.client()).await;
    gate.open();
    let idle = session.next("session.idle").await;
    assert_eq!(idle["data"].get("aborted"), None, "the turn went on");
    daemon.finish().await;
}

#[tokio::test]
async fn without_the_token_nothing_is_answered() {
    let daemon = Daemon::builder().token("open sesame").start().await;
    let client = daemon.client();
    for method in [
        "ping",
        "session.create",
        "session.list",
        "status.get",
        "runtime.shutdown",
        "models.list",
    ] {
        let error = client.refused(method, json!({})).await;
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32002, "AUTHENTICATION_FAILED"),
            "{method}"
        );
    }
    for params in [
        json!({}),
        json!({"token": ""}),
        json!({"token": "open sesam"}),
        json!({"token": "open sesame "}),
    ] {
        let error = client.refused("connect", params).await;
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32002, "AUTHENTICATION_FAILED")
        );
    }
    let error = client.refused("ping", json!({})).await;
    assert_eq!(error.code, -32002, "a wrong token opens nothing");
    let connected = client
        .call("connect", json!({"token": "open sesame"}))
        .await;
    assert_eq!(connected["ok"], true);
    still_serves(&client).await;
    let stranger = daemon.client();
    let error = stranger.refused("ping", json!({})).await;
    assert_eq!(error.code, -32002, "another connection shows its own token");
    daemon.finish().await;
}

#[tokio::test]
async fn a_flood_of_requests_is_answered_one_by_one() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let answers =
        (0..1_000).map(|number| client.start("ping", json!({"message": number.to_string()})));
    for (number, answer) in futures::future::join_all(answers)
        .await
        .into_iter()
        .enumerate()
    {
        // Refused for now or answered, but never mixed up and never dropped.
        match answer {
            Ok(pong) => assert_eq!(pong["message"], format!("pong: {number}")),
            Err(error) => assert_eq!(error.code, -32001, "{error}"),
        }
    }
    still_serves(&client).await;
    daemon.finish().await;
}
