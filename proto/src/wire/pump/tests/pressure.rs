//! Slow readers, clients with too many requests, and the limits for both.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::poll;

use super::*;
use crate::wire::LogPlace;

/// Polls a future until polling it again changes nothing, giving other tasks their turn.
async fn settle<F: Future + Unpin>(future: &mut F) {
    for _ in 0..200 {
        assert!(poll!(&mut *future).is_pending());
        tokio::task::yield_now().await;
    }
}

/// A message that tells how many of its kind are still held somewhere.
fn counted(class: &Arc<()>, length: usize) -> Bytes {
    struct Counted(
        Vec<u8>,
        #[expect(dead_code, reason = "counts by existing")] Arc<()>,
    );
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Counted(vec![b'1'; length], Arc::clone(class)))
}

#[tokio::test]
async fn a_reader_that_stalls_loses_deltas_and_then_the_connection() {
    let limits = Limits {
        delta_limit: 50_000,
        event_limit: 200_000,
        ..Limits::default()
    };
    let (near, far) = tokio::io::duplex(100);
    let (peer, driving) = connect(near, silent(), limits);
    let mut driving = Box::pin(driving);
    let (deltas, events) = (Arc::new(()), Arc::new(()));
    let held = |of: &Arc<()>| Arc::strong_count(of) - 1;

    for _ in 0..1000 {
        peer.push(Class::Delta, counted(&deltas, 1000)).unwrap();
    }
    settle(&mut driving).await;
    assert!(peer.dropped_deltas() > 900, "{}", peer.dropped_deltas());
    assert!(held(&deltas) * 1000 <= 50_000 + 2000);

    let mut accepted = 0;
    while peer.push(Class::Event, counted(&events, 1000)).is_ok() {
        accepted += 1;
        // Beside the limit, the writer holds one chunk.
        assert!((held(&deltas) + held(&events)) * 1000 <= 200_000 + 70_000);
        assert!(poll!(&mut driving).is_pending());
    }
    assert!(accepted > 100, "{accepted}");
    assert_eq!(driving.await, CloseReason::TooSlow);
    assert_eq!((held(&deltas), held(&events)), (0, 0));
    drop(far);
}

#[tokio::test]
async fn a_reader_that_is_cut_is_told_from_where_on_it_missed_events() {
    let limits = Limits {
        event_limit: 100_000,
        ..Limits::default()
    };
    let (near, far) = tokio::io::duplex(100);
    let (peer, driving) = connect(near, silent(), limits);
    let mut driving = Box::pin(driving);
    peer.set_last_word(|missed| envelope::notification("lagged", missed));
    let event = |log: &str, position| {
        let message = envelope::notification("event", &json!([log, position, "x".repeat(1000)]));
        let place = LogPlace {
            log: log.into(),
            position,
        };
        peer.push_from(Class::Event, message, Some(place))
    };
    event("a", 0).unwrap();
    settle(&mut driving).await;
    let mut position = 0;
    while event("b", position).is_ok() && event("a", position + 1).is_ok() {
        position += 1;
    }
    let mut frames = FrameReader::new(far, 1 << 20, 64);
    let reading = async {
        let mut last = HashMap::new();
        while let Some(frame) = frames.next().await.unwrap() {
            let message: Value = serde_json::from_slice(&frame).unwrap();
            let params = message.get("params").unwrap();
            if message.get("method") == Some(&json!("lagged")) {
                return (last, params.clone());
            }
            let log = params.get(0).unwrap().as_str().unwrap().to_owned();
            last.insert(log, params.get(1).unwrap().as_u64().unwrap());
        }
        unreachable!("the reader was not told");
    };
    let (reason, (last, missed)) = tokio::join!(driving, reading);
    assert_eq!(reason, CloseReason::TooSlow);
    // What was being written when the connection was cut is not missed.
    let next = last.get("a").unwrap() + 1;
    assert_eq!(missed, json!({"a": next, "b": 0}));
}

#[tokio::test]
async fn a_reader_that_keeps_up_loses_nothing() {
    let limits = Limits {
        delta_limit: 3000,
        event_limit: 4000,
        ..Limits::default()
    };
    let reason = connected(silent(), limits, async |mut client| {
        for number in 0..1000 {
            let delta = envelope::notification("delta", &[number]);
            client.peer.push(Class::Delta, delta).unwrap();
            client.peer.notify("event", &[number]).unwrap();
            assert_eq!(client.receive().await.get("method"), Some(&json!("delta")));
            assert_eq!(client.receive().await.get("params"), Some(&json!([number])));
        }
        assert_eq!(client.peer.dropped_deltas(), 0);
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
}

#[tokio::test]
async fn unread_replies_stop_the_reading_and_nothing_else() {
    const COUNT: usize = 1000;
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let service = script(move |_, request| {
        counter.fetch_add(1, Ordering::Relaxed);
        futures::future::ready(Reply::result(&request.id, &"x".repeat(1000))).boxed()
    });
    let limits = Limits {
        reply_limit: 10_000,
        ..Limits::default()
    };
    let mut whole = Box::pin(connected(service, limits, async |client| {
        let Client {
            mut frames,
            mut write,
            ..
        } = client;
        let sending = async {
            let mut burst = Vec::new();
            for id in 0..COUNT {
                let request = json!({ "id": id, "method": "m" }).to_string();
                Framing::ContentLength.encode(request.as_bytes(), &mut burst);
            }
            write.write_all(&burst).await.unwrap();
        };
        let mut sending = Box::pin(sending);
        settle(&mut sending).await;
        // 10 waiting, one chunk in the writer's hands, one over the limit, and a few on the stream.
        let started = calls.load(Ordering::Relaxed);
        assert!((11..100).contains(&started), "{started}");
        let receiving = async {
            for expected in 0..COUNT {
                let frame = frames.next().await.unwrap().unwrap();
                let reply: Value = serde_json::from_slice(&frame).unwrap();
                assert_eq!(reply.get("id"), Some(&json!(expected)));
            }
        };
        tokio::join!(sending, receiving);
    }));
    assert_eq!(whole.as_mut().await, CloseReason::EndOfStream);
    assert_eq!(calls.load(Ordering::Relaxed), COUNT);
}

/// A service whose requests wait until the test answers them.
fn manual() -> (Arc<Script>, mpsc::Receiver<oneshot::Sender<()>>) {
    let (mailbox, inbox) = mpsc::channel(100);
    let service = script(move |_, request| {
        let (done, answer) = oneshot::channel();
        mailbox.try_send(done).unwrap();
        async move {
            answer.await.unwrap();
            Reply::result(&request.id, &())
        }
        .boxed()
    });
    (service, inbox)
}

#[tokio::test]
async fn running_requests_are_bounded_and_the_next_one_waits() {
    for limits in [
        Limits {
            incoming_limit: 2,
            ..Limits::default()
        },
        Limits {
            incoming_bytes_limit: 40,
            ..Limits::default()
        },
    ] {
        let (service, mut inbox) = manual();
        connected(service, limits, async |mut client| {
            for id in 1..=4 {
                client.request(id, "m").await;
            }
            let first = inbox.recv().await.unwrap();
            let second = inbox.recv().await.unwrap();
            settle(&mut Box::pin(inbox.recv())).await;
            second.send(()).unwrap();
            assert_eq!(client.receive().await, result(2, Value::Null));
            let third = inbox.recv().await.unwrap();
            settle(&mut Box::pin(inbox.recv())).await;
            first.send(()).unwrap();
            third.send(()).unwrap();
            let fourth = inbox.recv().await.unwrap();
            fourth.send(()).unwrap();
            for _ in 0..3 {
                client.receive().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_is_lost_at_the_limit_is_noticed() {
    let limits = Limits {
        incoming_limit: 1,
        ..Limits::default()
    };
    let reason = connected(silent(), limits, async |mut client| {
        for id in 0..10 {
            client.request(id, "m").await;
        }
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
}

#[tokio::test]
async fn handlers_that_wait_for_the_caller_do_not_block_its_answers() {
    let service = script(|peer, request| {
        let peer = peer.clone();
        async move {
            let answer = peer.request::<_, Value>("question", &());
            Reply::result(&request.id, &answer.await.unwrap())
        }
        .boxed()
    });
    let limits = Limits {
        incoming_limit: 1,
        ..Limits::default()
    };
    connected(service, limits, async |mut client| {
        client.request(1, "m").await;
        client.request(2, "m").await;
        let question = client.receive().await;
        let message = "too many requests are under way; try again later";
        assert_eq!(client.receive().await, error(2, OVERLOADED, message));
        let id = question.get("id").unwrap();
        client.send(json!({ "id": id, "result": "yes" })).await;
        assert_eq!(client.receive().await, result(1, "yes"));
    })
    .await;
}

#[tokio::test]
async fn a_call_started_at_the_limit_lets_the_reading_go_on() {
    let limits = Limits {
        incoming_limit: 1,
        ..Limits::default()
    };
    connected(silent(), limits, async |mut client| {
        client.request(1, "m").await;
        client.request(2, "m").await;
        settle(&mut Box::pin(client.next())).await;
        let call = client.peer.request::<_, Value>("question", &());
        let question = client.receive().await;
        assert_eq!(client.receive().await.get("id"), Some(&json!(2)));
        let id = question.get("id").unwrap();
        client.send(json!({ "id": id, "result": 5 })).await;
        assert_eq!(call.await.unwrap(), json!(5));
    })
    .await;
}

#[tokio::test]
async fn many_cancels_and_unknown_replies_do_no_harm() {
    let reason = connected(echo(), Limits::default(), async |mut client| {
        for id in 0..2000 {
            let cancel = json!({ "method": "$/cancelRequest", "params": { "id": id } });
            client.send(cancel).await;
            client.send(json!({ "id": id, "result": id })).await;
        }
        client.request(1, "m").await;
        assert_eq!(client.receive().await, result(1, Value::Null));
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
}

/// Like [`manual`], with one method that waits for something to happen.
struct Waiting(Arc<Script>);

impl Service for Waiting {
    fn call(&self, peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        self.0.call(peer, request)
    }

    fn notify(&self, peer: &Peer, notification: Notification) {
        self.0.notify(peer, notification);
    }

    fn awaits(&self, method: &str) -> bool {
        method == "wait"
    }
}

#[tokio::test]
async fn requests_that_only_wait_do_not_block_others_and_have_their_own_limit() {
    let (service, mut inbox) = manual();
    let limits = Limits {
        incoming_limit: 1,
        incoming_bytes_limit: 10,
        waiting_limit: 3,
        ..Limits::default()
    };
    connected(Arc::new(Waiting(service)), limits, async |mut client| {
        let mut waits = Vec::new();
        for id in 1..=3 {
            client.request(id, "wait").await;
            waits.push(inbox.recv().await.unwrap());
        }
        client.request(4, "wait").await;
        let refused = client.receive().await;
        assert_eq!(refused.pointer("/error/code"), Some(&json!(OVERLOADED)));
        client.request(5, "m").await;
        inbox.recv().await.unwrap().send(()).unwrap();
        assert_eq!(client.receive().await, result(5, Value::Null));
        waits.remove(0).send(()).unwrap();
        assert_eq!(client.receive().await, result(1, Value::Null));
        client.request(6, "wait").await;
        waits.push(inbox.recv().await.unwrap());
        // A wait can be cancelled, however many there are.
        client
            .send(json!({ "method": "$/cancelRequest", "params": { "id": 2 } }))
            .await;
        let cancelled = client.receive().await;
        assert_eq!(
            cancelled.pointer("/error/code"),
            Some(&json!(REQUEST_CANCELLED))
        );
    })
    .await;
}
