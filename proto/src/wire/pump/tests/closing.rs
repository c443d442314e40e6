//! The ways a connection ends, and what the other side still gets to read.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::*;
use crate::wire::{CallError, Closed};

/// Sends raw bytes and returns everything that comes back, and why the connection ended.
async fn send_raw(bytes: &[u8]) -> (Vec<Value>, CloseReason) {
    let limits = Limits {
        frame_limit: 1000,
        depth_limit: 10,
        ..Limits::default()
    };
    let mut answers = Vec::new();
    let reason = connected(silent(), limits, async |mut client| {
        client.raw(bytes).await;
        client.write.shutdown().await.unwrap();
        while let Some(answer) = client.next().await {
            answers.push(answer);
        }
    })
    .await;
    (answers, reason)
}

async fn check_refused(bytes: &[u8], code: i64, message: &str) {
    let (answers, reason) = send_raw(bytes).await;
    assert_eq!(answers, [error(Value::Null, code, message)]);
    assert_eq!(reason, CloseReason::Malformed(message.to_owned()));
}

#[tokio::test]
async fn a_lost_framing_is_answered_and_ends_the_connection() {
    check_refused(
        b"Content-Length: 9999999999\r\n\r\n",
        INVALID_REQUEST,
        "the frame has 9999999999 bytes or more, the limit is 1000",
    )
    .await;
    check_refused(
        b"Content-Length: x\r\n\r\n",
        PARSE_ERROR,
        "the header line `Content-Length: x` is malformed",
    )
    .await;
    check_refused(
        b"Content-Length: 2\r\nPOST /a:b HTTP/1.1\r\n\r\n{}",
        PARSE_ERROR,
        "the header line `POST /a:b HTTP/1.1` is malformed",
    )
    .await;
    check_refused(
        b"Content-Type: x\r\n\r\n{}",
        PARSE_ERROR,
        "the header block has no Content-Length",
    )
    .await;
}

/// Sends a frame that cannot be read and a good request, and returns the error of the first.
async fn go_on_after(frame: &[u8]) -> Value {
    let limits = Limits {
        frame_limit: 1000,
        depth_limit: 10,
        ..Limits::default()
    };
    let mut refused = Value::Null;
    let reason = connected(echo(), limits, async |mut client| {
        client.raw(frame).await;
        client.request(7, "m").await;
        refused = client.receive().await;
        assert_eq!(client.receive().await, result(7, Value::Null));
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
    refused
}

fn framed(message: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    Framing::ContentLength.encode(message.as_bytes(), &mut frame);
    frame
}

#[tokio::test]
async fn the_connection_goes_on_after_a_malformed_message() {
    let not_json = "the message is not valid JSON: key must be a string at line 1 column 2";
    let batch = "batches are not supported: send each message in a frame of its own";
    let neither = "the message is not a JSON-RPC 2.0 message: it has neither `method` nor `id`";
    let deep = "the message nests deeper than 10 levels";
    for (message, id, code, text) in [
        ("{]", json!(null), PARSE_ERROR, not_json),
        ("[]", json!(null), INVALID_REQUEST, batch),
        ("{}", json!(null), INVALID_REQUEST, neither),
        ("[[[[[[[[[[[", json!(null), PARSE_ERROR, deep),
        (
            r#"{"id":"a","method":"m","params":[[[[[[[[[[1]]]]]]]]]]}"#,
            json!("a"),
            PARSE_ERROR,
            deep,
        ),
    ] {
        let refused = go_on_after(&framed(message)).await;
        assert_eq!(refused, error(id, code, text), "{message}");
    }
    let refused = go_on_after(b"Content-Length: 2\r\n\r\n\xff\xfe").await;
    assert_eq!(refused.pointer("/error/code"), Some(&json!(PARSE_ERROR)));
}

#[tokio::test]
async fn a_frame_over_the_limit_is_answered_by_its_id_and_skipped() {
    let long = "x".repeat(100_000);
    let large = framed(&format!(
        r#"{{"jsonrpc": "2.0", "id" : 3 , "method":"m","params":["{long}"]}}"#
    ));
    let refused = go_on_after(&large).await;
    let text = "the frame has 100057 bytes or more and was not read, the limit is 1000";
    assert_eq!(refused, error(3, INVALID_REQUEST, text));
    // The id comes after a member that is too long to be looked at.
    let late = framed(&format!(r#"{{"params":["{long}"],"id":3,"method":"m"}}"#));
    assert_eq!(go_on_after(&late).await.get("id"), Some(&Value::Null));
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped() {
    let limits = Limits {
        frame_limit: 1000,
        ..Limits::default()
    };
    let (near, mut far) = tokio::io::duplex(4096);
    let serving = serve(near, echo(), limits, |_| {});
    let client = async {
        let long = "x".repeat(100_000);
        let lines = format!("{{\"id\":1,\"method\":\"{long}\"}}\n{{\"id\":2,\"method\":\"m\"}}\n");
        far.write_all(lines.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let mut replies = String::new();
        far.read_to_string(&mut replies).await.unwrap();
        let outcome = |line: &str| {
            let reply: Value = serde_json::from_str(line).unwrap();
            (reply.get("id").cloned(), reply.get("error").is_some())
        };
        let outcomes: Vec<_> = replies.lines().map(outcome).collect();
        assert_eq!(outcomes, [(Some(json!(1)), true), (Some(json!(2)), false)]);
    };
    let (reason, ()) = tokio::join!(serving, client);
    assert_eq!(reason, CloseReason::EndOfStream);
}

#[tokio::test]
async fn a_stranger_sends_small_frames_and_no_malformed_one() {
    for (frame, admitted) in [
        (framed("{]"), false),
        (b"Content-Length: 101\r\n\r\n".to_vec(), false),
        (framed(r#"{"id":1,"method":"m"}"#), true),
    ] {
        let (near, far) = tokio::io::duplex(4096);
        let service = script(|peer, request| {
            peer.admit();
            futures::future::ready(Reply::result(&request.id, &())).boxed()
        });
        let (peer, driving) = connect(near, service, Limits::default());
        peer.restrict(100);
        let (read, mut write) = tokio::io::split(far);
        let mut frames = FrameReader::new(read, 1 << 20, 64);
        let client = async {
            write.write_all(&frame).await.unwrap();
            let reply: Value =
                serde_json::from_slice(&frames.next().await.unwrap().unwrap()).unwrap();
            assert_eq!(reply.get("error").is_none(), admitted, "{reply}");
            if admitted {
                let large = json!({"id": 2, "method": "m", "params": ["x".repeat(1000)]});
                write.write_all(&framed(&large.to_string())).await.unwrap();
                write.write_all(&framed("{]")).await.unwrap();
                frames.next().await.unwrap().unwrap();
                frames.next().await.unwrap().unwrap();
                peer.close(CloseReason::Done);
            }
            assert!(frames.next().await.unwrap().is_none());
        };
        let (reason, ()) = tokio::join!(driving, client);
        assert_eq!(reason == CloseReason::Done, admitted, "{reason}");
    }
}

#[tokio::test]
async fn another_protocol_gets_no_answer() {
    let (answers, reason) = send_raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answers.is_empty());
    assert!(matches!(reason, CloseReason::Malformed(text) if text.contains("0x47")));
}

#[tokio::test]
async fn half_a_frame_is_the_end_of_the_stream() {
    for bytes in [&b"Content-Length: 9\r\n\r\n{\"id"[..], b"Content-", b""] {
        assert_eq!(send_raw(bytes).await, (vec![], CloseReason::EndOfStream));
    }
}

#[tokio::test]
async fn a_lost_client_ends_its_handlers_and_our_calls() {
    let (held, mut holds) = mpsc::channel::<()>(1);
    let service = script(move |_, _| {
        let guard = held.clone();
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            unreachable!()
        }
        .boxed()
    });
    let (outcome, asked) = oneshot::channel();
    let reason = connected(service, Limits::default(), async |mut client| {
        let call = client.peer.request::<_, Value>("m", &());
        client.request(1, "m").await;
        client.receive().await;
        drop((client.frames, client.write));
        outcome.send(call.await).unwrap();
        assert_eq!(client.peer.notify("m", &()), Err(Closed));
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
    assert!(matches!(asked.await.unwrap(), Err(CallError::Closed)));
    assert_eq!(holds.recv().await, None);
}

#[tokio::test]
async fn a_close_writes_the_queued_messages_first() {
    let service = script(|peer, request| {
        let peer = peer.clone();
        let reply = Reply::result(&request.id, "bye");
        let reply = reply.then(move || peer.close(CloseReason::Done));
        futures::future::ready(reply).boxed()
    });
    let reason = connected(service, Limits::default(), async |mut client| {
        let large = "x".repeat(100_000);
        client.peer.notify("large", &large).unwrap();
        client.request(1, "m").await;
        assert_eq!(client.receive().await.get("params"), Some(&json!(large)));
        assert_eq!(client.receive().await, result(1, "bye"));
        assert_eq!(client.next().await, None);
    })
    .await;
    assert_eq!(reason, CloseReason::Done);
}

#[tokio::test(start_paused = true)]
async fn a_close_waits_a_bounded_time_for_the_reader() {
    let limits = Limits {
        flush_time: Duration::from_secs(2),
        ..Limits::default()
    };
    let started = Instant::now();
    let (finish, finished) = oneshot::channel();
    let (near, far) = tokio::io::duplex(16);
    let (peer, driving) = connect(near, silent(), limits);
    let call = peer.request::<_, Value>("m", &());
    peer.close(CloseReason::Done);
    let waiting = async {
        // Our own calls do not wait for the flush.
        assert!(matches!(call.await, Err(CallError::Closed)));
        assert_eq!(started.elapsed(), Duration::ZERO);
        finished.await.unwrap();
        drop(far);
    };
    let ending = async {
        assert_eq!(driving.await, CloseReason::Done);
        finish.send(()).unwrap();
    };
    tokio::join!(waiting, ending);
    assert_eq!(started.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn a_failing_writer_ends_the_connection() {
    // What is written meets a closed end, while what is read never ends.
    let (_open, endless) = tokio::io::duplex(16);
    let (_, broken) = tokio::io::duplex(16);
    let stream = tokio::io::join(endless, broken);
    let (peer, driving) = connect(stream, silent(), Limits::default());
    let call = peer.request::<_, Value>("m", &());
    assert!(matches!(driving.await, CloseReason::Failed(_)));
    assert!(matches!(call.await, Err(CallError::Closed)));
}

#[tokio::test]
async fn a_dropped_driver_closes_the_peer() {
    for polled in [false, true] {
        let (near, mut far) = tokio::io::duplex(1024);
        let (peer, driving) = connect(near, silent(), Limits::default());
        let mut driving = Box::pin(driving);
        let call = peer.request::<_, Value>("m", &());
        if polled {
            assert!(driving.as_mut().now_or_never().is_none());
        }
        drop(driving);
        assert_eq!(peer.closed().await, CloseReason::Abandoned);
        assert!(matches!(call.await, Err(CallError::Closed)));
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(!read.is_empty(), polled);
    }
}

#[tokio::test]
async fn the_service_gets_the_peer_before_anything_is_read() {
    let (near, mut far) = tokio::io::duplex(1024);
    let (opened, open) = oneshot::channel();
    let serving = serve(near, echo(), Limits::default(), |peer| {
        opened.send(peer).unwrap();
    });
    let client = async {
        let peer = open.await.unwrap();
        peer.close(CloseReason::Done);
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert!(read.is_empty());
    };
    let (reason, ()) = tokio::join!(serving, client);
    assert_eq!(reason, CloseReason::Done);
}
