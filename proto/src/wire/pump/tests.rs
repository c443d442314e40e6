//! Whole connections over an in-memory stream. The client side uses raw bytes, so that our own code
//! cannot hide its own faults.

use std::sync::Mutex;
use std::task::Poll;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};

use super::super::{Framing, NoMethods, REQUEST_CANCELLED};
use super::*;

mod closing;
mod pressure;
mod refusing;

type Call = dyn Fn(&Peer, Request) -> BoxFuture<'static, Reply> + Send + Sync;

/// A service made of one closure; it remembers the notifications it got.
struct Script {
    call: Box<Call>,
    notices: Mutex<Vec<String>>,
}

fn script<F>(call: F) -> Arc<Script>
where
    F: Fn(&Peer, Request) -> BoxFuture<'static, Reply> + Send + Sync + 'static,
{
    Arc::new(Script {
        call: Box::new(call),
        notices: Mutex::default(),
    })
}

/// Answers each request with its own params, at once.
fn echo() -> Arc<Script> {
    script(|_, request| futures::future::ready(Reply::result(&request.id, &request.params)).boxed())
}

/// Never answers.
fn silent() -> Arc<Script> {
    script(|_, _| std::future::pending().boxed())
}

impl Service for Script {
    fn call(&self, peer: &Peer, request: Request) -> BoxFuture<'static, Reply> {
        (self.call)(peer, request)
    }

    fn notify(&self, _peer: &Peer, notification: Notification) {
        assert_ne!(notification.method, "explode");
        self.notices.lock().unwrap().push(notification.method);
    }
}

/// The raw other end.
struct Client {
    frames: FrameReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    peer: Peer,
}

impl Client {
    async fn raw(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        let mut out = Vec::new();
        Framing::ContentLength.encode(message.to_string().as_bytes(), &mut out);
        self.raw(&out).await;
    }

    async fn request(&mut self, id: impl Into<Value>, method: &str) {
        self.send(json!({ "id": id.into(), "method": method }))
            .await;
    }

    async fn receive(&mut self) -> Value {
        self.next().await.unwrap()
    }

    async fn next(&mut self) -> Option<Value> {
        let frame = self.frames.next().await.unwrap()?;
        Some(serde_json::from_slice(&frame).unwrap())
    }
}

/// Runs the client's part beside a served connection, and returns why the latter ended.
async fn connected(
    service: Arc<dyn Service>,
    limits: Limits,
    part: impl AsyncFnOnce(Client),
) -> CloseReason {
    let (near, far) = tokio::io::duplex(4096);
    let (peer, driving) = connect(near, service, limits);
    let (read, write) = tokio::io::split(far);
    let frames = FrameReader::new(read, 1 << 20, 64);
    let client = Client {
        frames,
        write,
        peer,
    };
    let (reason, ()) = tokio::join!(driving, part(client));
    reason
}

fn error(id: impl Into<Value>, code: i64, message: &str) -> Value {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": id.into(), "error": error })
}

fn result(id: impl Into<Value>, value: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "result": value.into() })
}

#[tokio::test]
async fn replies_use_the_framing_of_the_caller() {
    let service = echo();
    let reason = connected(service, Limits::default(), async |mut client| {
        client.peer.notify("early", &()).unwrap();
        assert_eq!(
            client.receive().await,
            json!({ "jsonrpc": "2.0", "method": "early" })
        );
        client.raw(b"\n{\"id\":\"a\",\"method\":\"m\",\n").await;
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);

    let (near, mut far) = tokio::io::duplex(4096);
    far.write_all(b"{\"id\":1,\"method\":\"m\",\"params\":[2]}\n")
        .await
        .unwrap();
    far.shutdown().await.unwrap();
    let reason = serve(near, echo(), Limits::default(), |_| {}).await;
    assert_eq!(reason, CloseReason::EndOfStream);
    let mut lines = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut far, &mut lines)
        .await
        .unwrap();
    assert_eq!(lines, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[2]}\n");
}

#[tokio::test]
async fn both_sides_send_requests_at_the_same_time() {
    // Each side answers only after it got an answer of its own.
    let service = script(|peer, request| {
        let answer = peer.request::<_, Value>("back", &request.params);
        async move { Reply::result(&request.id, &answer.await.unwrap()) }.boxed()
    });
    let (near, far) = tokio::io::duplex(64);
    let (_, serving) = connect(near, service, Limits::default());
    let (peer, driving) = connect(far, echo(), Limits::default());
    let asking = async {
        let calls = (0..50).map(|number| peer.request::<_, Value>("there", &json!([number])));
        let answers = futures::future::join_all(calls).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(
            answers,
            (0..50).map(|number| json!([number])).collect::<Vec<_>>()
        );
        peer.close(CloseReason::Done);
    };
    let (served, driven, ()) = tokio::join!(serving, driving, asking);
    assert_eq!(
        (served, driven),
        (CloseReason::EndOfStream, CloseReason::Done)
    );
}

#[tokio::test]
async fn handlers_enqueue_in_the_order_of_arrival() {
    const COUNT: u64 = 500;
    let (mailbox, mut inbox) = mpsc::channel(1000);
    let service = script(move |_, request| {
        let mailbox = mailbox.clone();
        async move {
            if request.method == "spin" {
                // Keeps the set of handlers from getting to all of them in one poll.
                std::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    Poll::<()>::Pending
                })
                .await;
            }
            let (done, answer) = oneshot::channel();
            mailbox.send((request.id.clone(), done)).await.unwrap();
            if request.id.as_number().is_some_and(|id| id % 3 == 0) {
                // Uneven costs make the budget of the task run out inside a handler, too.
                coop::consume_budget().await;
            }
            Reply::result(&request.id, &answer.await.unwrap())
        }
        .boxed()
    });
    let limits = Limits {
        incoming_limit: 1000,
        ..Limits::default()
    };
    connected(service, limits, async |mut client| {
        for number in 0..8 {
            client.request(format!("spin {number}"), "spin").await;
        }
        let mut burst = Vec::new();
        for id in 0..COUNT {
            let request = json!({ "id": id, "method": "m" }).to_string();
            Framing::ContentLength.encode(request.as_bytes(), &mut burst);
        }
        client.raw(&burst).await;
        let mut answers = Vec::new();
        for expected in 0..COUNT {
            let (id, done) = inbox.recv().await.unwrap();
            assert_eq!(id.as_number(), Some(expected));
            answers.push(done);
        }
        for done in answers.into_iter().rev() {
            done.send(true).unwrap();
        }
        for _ in 0..COUNT {
            assert_eq!(client.receive().await.get("result"), Some(&json!(true)));
        }
    })
    .await;
}

#[tokio::test]
async fn the_action_after_a_reply_runs_when_it_is_queued() {
    for late in [false, true] {
        let service = script(move |peer, request| {
            let peer = peer.clone();
            async move {
                if late {
                    tokio::task::yield_now().await;
                }
                let reply = Reply::result(&request.id, "first");
                reply.then(move || peer.notify("second", &()).unwrap())
            }
            .boxed()
        });
        connected(service, Limits::default(), async |mut client| {
            client.request(1, "m").await;
            assert_eq!(client.receive().await, result(1, "first"));
            let second = client.receive().await;
            assert_eq!(second.get("method"), Some(&json!("second")));
        })
        .await;
    }
}

#[tokio::test]
async fn a_cancelled_request_is_dropped_and_answered() {
    let (dropped, mut drops) = mpsc::channel::<()>(1);
    let service = script(move |_, request| {
        let guard = dropped.clone();
        async move {
            if request.method == "quick" {
                return Reply::result(&request.id, &());
            }
            std::future::pending::<()>().await;
            drop(guard);
            Reply::result(&request.id, "never")
        }
        .boxed()
    });
    let weak = Arc::downgrade(&service);
    connected(service, Limits::default(), async |mut client| {
        client.request("x", "m").await;
        for params in [
            json!({ "id": "y" }),
            json!({}),
            json!(null),
            json!({ "id": ["x"] }),
        ] {
            let cancel = json!({ "method": "$/cancelRequest", "params": params });
            client.send(cancel).await;
        }
        client.request(2, "quick").await;
        assert_eq!(client.receive().await, result(2, Value::Null));
        let cancel = json!({ "method": "$/cancelRequest", "params": { "id": "x" } });
        client.send(cancel).await;
        let cancelled = error("x", REQUEST_CANCELLED, "the caller cancelled the request");
        assert_eq!(client.receive().await, cancelled);
        // The id is free again.
        client.request("x", "quick").await;
        assert_eq!(client.receive().await, result("x", Value::Null));
    })
    .await;
    assert!(weak.upgrade().is_none());
    assert_eq!(drops.recv().await, None);
}

#[tokio::test]
async fn a_panic_is_answered_and_the_connection_lives_on() {
    let service = script(|_, request| {
        assert_ne!(request.method, "create");
        async move {
            assert_ne!(request.method, "poll");
            tokio::task::yield_now().await;
            assert_ne!(request.method, "late");
            let reply = Reply::result(&request.id, "fine");
            reply.then(move || assert_ne!(request.method, "after"))
        }
        .boxed()
    });
    connected(
        Arc::clone(&service) as _,
        Limits::default(),
        async |mut client| {
            for (id, method) in ["create", "poll", "late"].into_iter().enumerate() {
                client.request(id, method).await;
                let message = format!("Request {method} failed with message: internal error");
                assert_eq!(client.receive().await, error(id, -32603, &message));
            }
            client.send(json!({ "method": "explode" })).await;
            client.request(8, "after").await;
            assert_eq!(client.receive().await, result(8, "fine"));
            client.send(json!({ "method": "notice" })).await;
            client.request(9, "fine").await;
            assert_eq!(client.receive().await, result(9, "fine"));
        },
    )
    .await;
    assert_eq!(*service.notices.lock().unwrap(), ["notice"]);
}

#[tokio::test]
async fn an_id_can_be_running_only_once() {
    connected(silent(), Limits::default(), async |mut client| {
        client.request(1, "m").await;
        client.request("1", "m").await;
        client.request(1, "m").await;
        let refused = error(
            1,
            INVALID_REQUEST,
            "a request with id 1 is already under way",
        );
        assert_eq!(client.receive().await, refused);
        assert!(!client.peer.is_closed());
    })
    .await;
}

#[tokio::test]
async fn a_side_without_methods_replies_method_not_found() {
    connected(
        Arc::new(NoMethods),
        Limits::default(),
        async |mut client| {
            client.send(json!({ "method": "notice" })).await;
            client.request(1, "some.thing").await;
            let refused = error(1, -32601, "Unhandled method some.thing");
            assert_eq!(client.receive().await, refused);
        },
    )
    .await;
}

#[tokio::test]
async fn a_result_that_is_not_json_becomes_an_internal_error() {
    let service = script(|_, request| {
        let not_json = HashMap::from([((1, 2), 3)]);
        futures::future::ready(Reply::result(&request.id, &not_json)).boxed()
    });
    connected(service, Limits::default(), async |mut client| {
        client.request(1, "m").await;
        let message = "the result cannot be written as JSON: key must be a string";
        assert_eq!(client.receive().await, error(1, -32603, message));
    })
    .await;
}
