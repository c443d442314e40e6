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
async fn malformed_frames_are_answered_and_end_the_connection() {
    check_refused(
        b"Content-Length: 1001\r\n\r\n",
        INVALID_REQUEST,
        "the frame has 1001 bytes or more, the limit is 1000",
    )
    .await;
    check_refused(
        b"Content-Length: 11\r\n\r\n[[[[[[[[[[[",
        PARSE_ERROR,
        "the message nests deeper than 10 levels",
    )
    .await;
    check_refused(
        b"Content-Length: x\r\n\r\n",
        PARSE_ERROR,
        "the header line `Content-Length: x` is malformed",
    )
    .await;
    check_refused(
        b"Content-Length: 2\r\n\r\n{]",
        PARSE_ERROR,
        "the message is not valid JSON: key must be a string at line 1 column 2",
    )
    .await;
    check_refused(
        b"Content-Length: 2\r\n\r\n[]",
        INVALID_REQUEST,
        "batches are not supported: send each message in a frame of its own",
    )
    .await;
    // What follows a malformed frame is not looked at.
    check_refused(
        b"Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n{}",
        INVALID_REQUEST,
        "the message is not a JSON-RPC 2.0 message: it has neither `method` nor `id`",
    )
    .await;
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
